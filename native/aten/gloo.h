// Collectives between the CPUs of ranks (gloo), as synchronisation of the ranks' host clocks.
#pragma once

namespace phantora::aten {

// Every synchronous collective of c10d on CPU tensors makes the clocks of its group meet: they go on at the latest
// one's time plus a cost. Asynchronous ones and sends do not move clocks.
void synchronise_gloo();

}  // namespace phantora::aten
