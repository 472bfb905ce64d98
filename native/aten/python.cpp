#include "python.h"

#include <dlfcn.h>

namespace phantora::aten {
namespace {

// Python's stable C API.
struct PythonFunctions {
  int (*is_initialized)();
  int (*ensure)();
  void (*release)(int);
  void* (*this_thread)();
  void* (*current_frame)();
  void* (*back)(void*);
  int (*line)(void*);
  void* (*code)(void*);
  void* (*attribute)(void*, const char*);
  void* (*value)(void*, const char*);
  void* (*item)(void*, intptr_t);
  const char* (*utf8)(void*);
  void (*incref)(void*);
  void (*decref)(void*);
  void (*clear_error)();

  template <typename Function>
  static void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }

  PythonFunctions() {
    find(is_initialized, "Py_IsInitialized");
    find(ensure, "PyGILState_Ensure");
    find(release, "PyGILState_Release");
    find(this_thread, "PyGILState_GetThisThreadState");
    find(current_frame, "PyEval_GetFrame");
    find(back, "PyFrame_GetBack");
    find(line, "PyFrame_GetLineNumber");
    find(code, "PyFrame_GetCode");
    find(attribute, "PyObject_GetAttrString");
    find(value, "PyMapping_GetItemString");
    find(item, "PySequence_GetItem");
    find(utf8, "PyUnicode_AsUTF8");
    find(incref, "Py_IncRef");
    find(decref, "Py_DecRef");
    find(clear_error, "PyErr_Clear");
  }

  bool usable() const { return is_initialized && back && utf8 && this_thread && is_initialized(); }
};

const PythonFunctions& python() {
  static const auto* functions = new PythonFunctions;
  return *functions;
}

Python::Reference own(void* object) {
  return {object, [](void* held) { python().decref(held); }};
}

// What an API function made, or null instead of an exception.
Python::Reference own_if_made(void* object) {
  if (!object) python().clear_error();
  return own(object);
}

}  // namespace

Python::Python() : held_(python().usable() && python().this_thread()) {
  if (held_) state_ = python().ensure();
}

Python::~Python() {
  if (held_) python().release(state_);
}

Python::Reference Python::current_frame() const {
  void* frame = python().current_frame();
  if (frame) python().incref(frame);
  return own(frame);
}

Python::Reference Python::back(const Reference& frame) const { return own(python().back(frame.get())); }

int Python::line(const Reference& frame) const { return python().line(frame.get()); }

std::string Python::file(const Reference& frame) const {
  Reference name = attribute(own(python().code(frame.get())), "co_filename");
  const char* text = name ? python().utf8(name.get()) : nullptr;
  if (text) return text;
  python().clear_error();
  return "";
}

Python::Reference Python::attribute(const Reference& object, const char* name) const {
  return own_if_made(object ? python().attribute(object.get(), name) : nullptr);
}

Python::Reference Python::value(const Reference& mapping, const char* key) const {
  return own_if_made(mapping ? python().value(mapping.get(), key) : nullptr);
}

Python::Reference Python::first(const Reference& sequence) const {
  return own_if_made(sequence ? python().item(sequence.get(), 0) : nullptr);
}

}  // namespace phantora::aten
