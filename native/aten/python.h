// What the hook asks of the script's interpreter. The few functions of Python's stable C API that it takes are found in
// the process: the hook is built without its headers.
#pragma once
#include <memory>
#include <string>

namespace phantora::aten {

class Python {
 public:
  // A reference to some object, which is given back; null if there is none.
  using Reference = std::unique_ptr<void, void (*)(void*)>;

  // Holds the interpreter while it lives, for a thread that runs Python; else it is no interpreter to be asked.
  Python();
  ~Python();
  Python(const Python&) = delete;
  Python& operator=(const Python&) = delete;

  explicit operator bool() const { return held_; }

  static Reference nothing() {
    return {nullptr, [](void*) {}};
  }

  Reference current_frame() const;
  Reference back(const Reference& frame) const;
  std::string file(const Reference& frame) const;
  int line(const Reference& frame) const;
  // Null if there is no such thing.
  Reference attribute(const Reference& object, const char* name) const;
  Reference value(const Reference& mapping, const char* key) const;
  Reference first(const Reference& sequence) const;

 private:
  bool held_;
  int state_ = 0;
};

}  // namespace phantora::aten
