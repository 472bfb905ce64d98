// Entry point of the hook, called once a rank has imported torch.
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
