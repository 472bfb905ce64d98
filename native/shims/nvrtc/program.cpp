// Run-time compilation, of which nothing is compiled: an emulated kernel is never executed, only its name counts, and
// the driver takes any image and finds any name in it. A program that NVRTC would refuse passes here unnoticed.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <set>
#include <string>

namespace {

enum class Result : int {
  success = 0,
  invalid_input = 3,
  invalid_program = 4,
  no_names_after_compilation = 8,
  no_lowered_names_before_compilation = 9,
  name_not_valid = 10,
};

struct Program {
  std::set<std::string> names;  // the expressions that kernels are asked for by; their addresses stay
  bool compiled = false;
};

constexpr char image[] = "// emulated: no code\n";
constexpr int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};  // of CUDA 13.0

Result give_size(const Program* program, size_t bytes, size_t* out) {
  if (program == nullptr) return Result::invalid_program;
  if (out == nullptr) return Result::invalid_input;
  *out = bytes;
  return Result::success;
}

Result give(const Program* program, const char* text, size_t bytes, char* out) {
  if (program == nullptr) return Result::invalid_program;
  if (out == nullptr) return Result::invalid_input;
  std::memcpy(out, text, bytes);
  return Result::success;
}

}  // namespace

extern "C" {

Result nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                          const char* const*) {
  if (program == nullptr || source == nullptr) return Result::invalid_input;
  *program = new Program;
  return Result::success;
}
Result nvrtcDestroyProgram(Program** program) {
  if (program == nullptr || *program == nullptr) return Result::invalid_program;
  delete *program;
  *program = nullptr;
  return Result::success;
}
Result nvrtcCompileProgram(Program* program, int, const char* const*) {
  if (program == nullptr) return Result::invalid_program;
  program->compiled = true;
  return Result::success;
}

Result nvrtcAddNameExpression(Program* program, const char* expression) {
  if (program == nullptr) return Result::invalid_program;
  if (expression == nullptr) return Result::invalid_input;
  if (program->compiled) return Result::no_names_after_compilation;
  program->names.insert(expression);
  return Result::success;
}
Result nvrtcGetLoweredName(Program* program, const char* expression, const char** name) {
  if (program == nullptr) return Result::invalid_program;
  if (expression == nullptr || name == nullptr) return Result::invalid_input;
  if (!program->compiled) return Result::no_lowered_names_before_compilation;
  const auto found = program->names.find(expression);
  if (found == program->names.end()) return Result::name_not_valid;
  *name = found->c_str();
  return Result::success;
}

Result nvrtcGetCUBINSize(const Program* program, size_t* bytes) { return give_size(program, sizeof image, bytes); }
Result nvrtcGetCUBIN(const Program* program, char* out) { return give(program, image, sizeof image, out); }
Result nvrtcGetPTXSize(const Program* program, size_t* bytes) { return give_size(program, sizeof image, bytes); }
Result nvrtcGetPTX(const Program* program, char* out) { return give(program, image, sizeof image, out); }
Result nvrtcGetProgramLogSize(const Program* program, size_t* bytes) { return give_size(program, 1, bytes); }
Result nvrtcGetProgramLog(const Program* program, char* out) { return give(program, "", 1, out); }

Result nvrtcGetNumSupportedArchs(int* count) {
  if (count == nullptr) return Result::invalid_input;
  *count = static_cast<int>(std::size(architectures));
  return Result::success;
}
Result nvrtcGetSupportedArchs(int* out) {
  if (out == nullptr) return Result::invalid_input;
  std::copy(std::begin(architectures), std::end(architectures), out);
  return Result::success;
}

const char* nvrtcGetErrorString(Result result) {
  switch (result) {
    case Result::success:
      return "NVRTC_SUCCESS";
    case Result::invalid_input:
      return "NVRTC_ERROR_INVALID_INPUT";
    case Result::invalid_program:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case Result::no_names_after_compilation:
      return "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    case Result::no_lowered_names_before_compilation:
      return "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case Result::name_not_valid:
      return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
  }
  return "NVRTC_ERROR unknown";
}

}  // extern "C"
