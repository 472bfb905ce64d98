// The hook's part of a rank's farewell.
#pragma once

namespace phantora::aten {

void report_at_exit();

}  // namespace phantora::aten
