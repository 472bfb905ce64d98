// Host time of dispatched ops, and where optimizer steps begin and end.
#pragma once

namespace phantora::aten {

void observe();

}  // namespace phantora::aten
