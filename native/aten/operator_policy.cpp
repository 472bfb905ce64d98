#include "operator_policy.h"

#include <algorithm>
#include <array>

namespace phantora::aten {
namespace {

template <size_t n>
bool is_in(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view without_overload(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

Policy policy_of(std::string_view name) {
  static constexpr std::array<std::string_view, 2> allocating = {"aten::empty.memory_format", "aten::empty_strided"};
  static constexpr std::array<std::string_view, 8> transparent = {
      "aten::_local_scalar_dense", "aten::resize_",   "aten::resize_as_",    "aten::set_",
      "aten::record_stream",       "aten::is_set_to", "aten::_assert_async", "aten::_fused_sdp_choice",
  };
  static constexpr std::array<std::string_view, 9> readback = {
      "aten::equal",
      "aten::mode",
      "aten::nonzero",
      "aten::nonzero.out",
      "aten::_unique",
      "aten::_unique2",
      "aten::unique_dim",
      "aten::unique_consecutive",
      "aten::unique_dim_consecutive",
  };
  if (is_in(name, allocating)) return Policy::allocate;
  if (is_in(name, readback)) return Policy::readback;
  if (name == "aten::copy_") return Policy::copy;
  if (name.starts_with("aten::_scaled_dot_product_")) return Policy::whole;
  if (is_in(without_overload(name), transparent) || !name.starts_with("aten::")) return Policy::transparent;
  return Policy::compute;
}

Benign benign_of(std::string_view name) {
  std::string_view base = without_overload(name);
  if (base == "aten::all") return Benign::all_true;
  if (base == "aten::any") return Benign::all_false;
  if (base == "aten::topk") return Benign::balanced;
  if (base == "aten::sort") return Benign::permutation;
  return Benign::zeros;
}

bool writes_running_statistics(std::string_view name) {
  static constexpr std::array<std::string_view, 5> names = {
      "aten::native_batch_norm",       "aten::cudnn_batch_norm",
      "aten::batch_norm_gather_stats", "aten::batch_norm_gather_stats_with_counts",
      "aten::batch_norm_update_stats",
  };
  return is_in(without_overload(name), names);
}

bool overwrites(std::string_view name) {
  static constexpr std::array<std::string_view, 16> names = {
      "aten::copy_",          "aten::fill_",          "aten::zero_",          "aten::normal_",
      "aten::uniform_",       "aten::random_",        "aten::bernoulli_",     "aten::cauchy_",
      "aten::exponential_",   "aten::geometric_",     "aten::log_normal_",    "aten::_foreach_copy_",
      "aten::_foreach_zero_", "aten::_cummax_helper", "aten::_cummin_helper", "aten::rrelu_with_noise",
  };
  return is_in(without_overload(name), names);
}

bool moves_elements(std::string_view name) {
  static constexpr std::array<std::string_view, 3> names = {"aten::cat", "aten::copy_", "aten::flip"};
  return is_in(without_overload(name), names);
}

bool launches_for_every_backend(std::string_view name) {
  static constexpr std::array<std::string_view, 3> names = {"aten::copy_", "aten::addr", "aten::ldexp.Tensor"};
  return is_in(name, names);
}

// Its parts are gathers like any other; only its name says that they look tokens up.
bool owns_what_it_calls(std::string_view name) { return name == "aten::embedding"; }

// The collectives' values travel with NCCL; what is in _native is called within an operator of aten, which owns its
// launches.
bool is_ours_to_override(std::string_view name_space) {
  static constexpr std::array<std::string_view, 5> others = {"c10d", "_c10d_functional", "symm_mem", "inductor_prims",
                                                             "_native"};
  return !is_in(name_space, others);
}

}  // namespace phantora::aten
