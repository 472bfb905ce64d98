// Entry point of the hook, called once a rank has imported torch.
//
// All sources of this folder are compiled as one translation unit, because reading torch's headers is most of the work,
// with -std=c++20 -O2 -fvisibility=hidden -DNDEBUG, and linked with torch_cpu, c10 and phantora_rt. Nothing here
// includes CUDA's or Python's headers: a user need not have them. Where torch's own do, cuda_headers/ stands in.
#include "call_site.h"
#include "figures.h"
#include "gloo.h"
#include "observer.h"
#include "overrides.h"
#include "phantora/recorder.h"
#include "phantora/values.h"

extern "C" __attribute__((visibility("default"))) void phantora_aten_install() {
  if (!phantora::recorder::active()) return;
  static const bool once = [] {
    phantora::aten::override_operators();
    phantora::aten::synchronise_gloo();
    phantora::aten::observe();
    phantora::values::set_call_site(phantora::aten::call_site);
    phantora::aten::report_at_exit();
    return true;
  }();
  static_cast<void>(once);
}
