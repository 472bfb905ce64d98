#include "call_site.h"

#include <string_view>
#include <utility>

#include "python.h"

namespace phantora::aten {
namespace {

// PyTorch's own, what it calls itself through (`with` blocks of its generators), and what torch.fx writes.
bool is_torch(std::string_view file) {
  return file.find("/torch/") != std::string_view::npos || file.ends_with("/contextlib.py") ||
         file.starts_with("<eval_with_key>");
}

}  // namespace

std::string call_site() {
  Python python;
  if (!python) return "";
  std::string site;
  for (Python::Reference frame = python.current_frame(); frame; frame = python.back(frame)) {
    std::string file = python.file(frame);
    if (site.empty() || !is_torch(file)) {
      site = file.substr(file.rfind('/') + 1) + ":" + std::to_string(python.line(frame));
    }
    if (!is_torch(file)) break;
  }
  return site;
}

}  // namespace phantora::aten
