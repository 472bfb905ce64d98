// Max-min fair rates by progressive filling.
//
// Find rates r_f such that on every link  sum over its flows of w_fl * r_f <= capacity_l,  r_f <= cap_f, and no r_f can
// be raised without lowering another that is not greater. Filling: raise all open flows' common rate until a link is
// full (at rate room_l / weight_l) or a flow's cap is reached; what is stopped by it is closed at that rate and its use
// is taken from its links' room; repeat. The rate of successive stops never falls, so a heap of links by their last
// known stop, looked at again when popped, finds the least one.
//
// Only the part of a component whose rates may change is filled anew (network.cc, first_change): flows with rates below
// the component's level, and those outside, keep them. What these leave of a link is its room when filling starts.
//
// To the last bit the result depends on the component alone: links are taken by rate, equal ones in an order that
// follows from theirs in the component, the flows of a link and those that reach equal caps in the order of their
// serials.
#pragma once

#include "flow.h"

namespace phantora::netsim {

// Sets the rates of the component's flows, which are open, and the levels of its links. False, and neither means
// anything, if that would take from a flow outside the component.
bool fill(const Component& component, Table<LinkId, Link>& links, const Table<FlowId, Demand>& demands,
          Table<FlowId, Grant>& grants);

}  // namespace phantora::netsim
