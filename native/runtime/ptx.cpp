// .visible .entry name(
//     .param .u64 name_param_0,
//     .param .align 8 .b8 name_param_1[24]
// )
#include "ptx.h"

#include <charconv>
#include <string_view>

namespace phantora::code {
namespace {

// Bits of a type such as .u64 or .b8; 0 if it is none.
uint32_t bits_of(std::string_view type) {
  if (type.size() < 3 || type[0] != '.' || std::string_view("usbf").find(type[1]) == std::string_view::npos) return 0;
  uint32_t bits = 0;
  std::from_chars(type.data() + 2, type.data() + type.size(), bits);
  return bits;
}

uint32_t number_after(std::string_view text, char mark) {
  uint32_t number = 0;
  size_t at = text.find(mark);
  if (at != std::string_view::npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
  return number;
}

constexpr std::string_view spaces = " \t\r\n";

// The next word of `text`, which is taken off.
std::string_view take_word(std::string_view& text) {
  size_t begin = std::min(text.find_first_not_of(spaces), text.size());
  size_t end = std::min(text.find_first_of(spaces, begin), text.size());
  std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

// One declaration, placed behind those before it.
Parameter parameter(std::string_view declaration, uint32_t end_of_last) {
  uint32_t element = 0, alignment = 0;
  uint32_t count = number_after(declaration, '[');
  for (std::string_view rest = declaration, word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (word == ".align" && element == 0) alignment = number_after(rest, ' ');
    if (element == 0) element = bits_of(word) / 8;
  }
  if (alignment == 0) alignment = std::max<uint32_t>(element, 1);
  uint32_t offset = (end_of_last + alignment - 1) / alignment * alignment;
  return {offset, element * std::max<uint32_t>(count, 1)};
}

KernelCode kernel(std::string_view declarations) {
  KernelCode code;
  uint32_t end = 0;
  while (declarations.find(".param") != std::string_view::npos) {
    std::string_view one = declarations.substr(0, declarations.find(','));
    declarations.remove_prefix(std::min(one.size() + 1, declarations.size()));
    code.parameters.push_back(parameter(one, end));
    end = code.parameters.back().offset + code.parameters.back().bytes;
  }
  return code;
}

}  // namespace

void Ptx::read(const char* text, Image& image) {
  constexpr std::string_view entry = ".entry";
  std::string_view rest = text;
  if (rest.find(".target") == std::string_view::npos) return;
  image.known_ = true;
  for (size_t at = rest.find(entry); at != std::string_view::npos; at = rest.find(entry)) {
    rest.remove_prefix(at + entry.size());
    std::string_view name = rest.substr(0, rest.find_first_of("({"));
    bool takes_some = name.size() < rest.size() && rest[name.size()] == '(';
    std::string_view declarations = takes_some ? rest.substr(name.size() + 1, rest.find(')') - name.size() - 1) : "";
    image.kernels_.try_emplace(std::string(take_word(name)), kernel(declarations));
  }
}

}  // namespace phantora::code
