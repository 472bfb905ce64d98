// Max-min fair rates by progressive filling.
//
// Find rates r_f such that on every link  sum over its flows of w_fl * r_f <= capacity_l,  r_f <= cap_f, and no r_f can
// be raised without lowering another that is not greater. Filling: raise all open flows' common rate until a link is
// full (at rate room_l / weight_l) or a flow's cap is reached; what is stopped by it is closed at that rate and its use
// is taken from its links' room; repeat. The rate of successive stops never falls, so a heap of links by their last
// known stop, looked at again when popped, finds the least one.
//
// The result depends on the component alone, to the last bit: links are taken by (rate, id), the flows of a link and
// those that reach equal caps in the order of their serials.
#pragma once

#include "flow.h"

namespace phantora::netsim {

// Sets next_rate of each flow of the component.
void fill(const Component& component, Table<LinkId, Link>& links, Slab<FlowId, Flow>& flows);

}  // namespace phantora::netsim
