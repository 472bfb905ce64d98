#include "kernel_description.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "phantora/blocks.h"

namespace phantora::kernels {
namespace {

std::vector<std::string_view> parts(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(mark, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool read_number(std::string_view text, int64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

uint32_t bytes_of(std::string_view dtype) {
  if (dtype.empty()) return 0;
  if (dtype.starts_with("float8") || dtype.starts_with("float4") || dtype == "bool" || dtype.ends_with("int8"))
    return 1;
  if (dtype.ends_with("16")) return 2;
  if (dtype.ends_with("64")) return 8;
  return 4;
}

int64_t scalar_at(const char* data, uint32_t bytes) {
  if (!data) return 0;
  if (bytes == 8) {
    int64_t value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  int32_t value = 0;
  std::memcpy(&value, data, std::min<size_t>(bytes, sizeof value));
  return value;
}

}  // namespace

std::optional<Description> Description::parse(std::string_view text) {
  Description description;
  for (std::string_view line : parts(text, '\n')) {
    if (!line.empty() && !description.add(parts(line, '\t'))) return std::nullopt;
  }
  return description;
}

bool Description::add(const std::vector<std::string_view>& fields) {
  if (fields[0] == "argument" && fields.size() == 5) {
    Argument argument{std::string(fields[1]), 0, 0, std::string(fields[4]), bytes_of(fields[4])};
    arguments_.push_back(argument);
    return read_number(fields[2], arguments_.back().reads) && read_number(fields[3], arguments_.back().writes);
  }
  if (fields.size() != 3) return false;
  Fact fact{std::string(fields[1]), std::string(fields[2])};
  if (fields[0] == "number") {
    int64_t number = 0;
    if (!read_number(fields[2], number)) return false;
    fact.value = number;
  } else if (fields[0] == "scalar") {
    auto named =
        std::find_if(arguments_.begin(), arguments_.end(), [&](const Argument& a) { return a.name == fields[2]; });
    if (named == arguments_.end()) return false;
    fact.value = ScalarOf{static_cast<size_t>(named - arguments_.begin())};
  } else if (fields[0] != "text") {
    return false;
  }
  facts_.push_back(std::move(fact));
  return true;
}

std::string Description::pack(const code::KernelCode& code, const kernels::Arguments& arguments) const {
  wire::Pack pack;
  auto data = [&](size_t i) { return arguments.find(i, code.parameters[i]); };
  size_t tensors = std::count_if(arguments_.begin(), arguments_.end(), [](const Argument& a) { return a.is_tensor(); });
  pack.text("tensors").array(static_cast<uint32_t>(tensors));
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    if (!argument.is_tensor()) continue;
    const void* pointer = reinterpret_cast<const void*>(scalar_at(data(i), 8));
    pack.array(4).text(argument.writes ? "mut" : "in").text(argument.dtype);
    pack.array(1).integer(static_cast<int64_t>(blocks::reach(pointer) / argument.element_bytes)).array(1).integer(1);
  }
  pack.text("code").map(static_cast<uint32_t>(facts_.size() + 2));
  for (auto [key, count] : {std::pair{"reads", &Argument::reads}, std::pair{"writes", &Argument::writes}}) {
    pack.text(key).array(static_cast<uint32_t>(tensors));
    for (const Argument& argument : arguments_) {
      if (argument.is_tensor()) pack.integer(argument.*count);
    }
  }
  for (const Fact& fact : facts_) {
    pack.text(fact.key);
    if (auto* number = std::get_if<int64_t>(&fact.value)) {
      pack.integer(*number);
    } else if (auto* text = std::get_if<std::string>(&fact.value)) {
      pack.text(*text);
    } else {
      size_t i = std::get<ScalarOf>(fact.value).argument;
      pack.integer(scalar_at(data(i), code.parameters[i].bytes));
    }
  }
  return pack.str();
}

}  // namespace phantora::kernels
