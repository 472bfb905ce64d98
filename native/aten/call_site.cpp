#include "call_site.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "python.h"

namespace phantora::aten {
namespace {

// Inductor's output: a file of its cache is named by a long hash, in a folder named by that one's second and third
// letters.
bool is_generated(std::string_view file) {
  std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos || slash < 3 || file.size() - slash < 40) return false;
  return file.substr(slash - 3, 3) == std::string("/") + std::string(file.substr(slash + 2, 2));
}

// PyTorch's own, what it calls itself through (`with` blocks of its generators), and what torch.fx and Inductor write.
bool is_torch(std::string_view file) {
  return file.find("/torch/") != std::string_view::npos || file.ends_with("/contextlib.py") ||
         file.starts_with("<eval_with_key>") || is_generated(file);
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
