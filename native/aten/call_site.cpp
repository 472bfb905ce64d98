#include "call_site.h"

#include <dlfcn.h>

#include <string_view>

namespace phantora::aten {
namespace {

// The few functions of Python's stable C API that are needed, found in the process: the hook is built without its
// headers.
struct Python {
  using Object = void;
  int (*is_initialized)();
  int (*ensure)();
  void (*release)(int);
  Object* (*this_thread)();
  Object* (*current_frame)();
  Object* (*back)(Object*);
  int (*line)(Object*);
  Object* (*code)(Object*);
  Object* (*attribute)(Object*, const char*);
  const char* (*utf8)(Object*);
  void (*incref)(Object*);
  void (*decref)(Object*);
  void (*clear_error)();

  template <typename Function>
  static void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }

  Python() {
    find(is_initialized, "Py_IsInitialized");
    find(ensure, "PyGILState_Ensure");
    find(release, "PyGILState_Release");
    find(this_thread, "PyGILState_GetThisThreadState");
    find(current_frame, "PyEval_GetFrame");
    find(back, "PyFrame_GetBack");
    find(line, "PyFrame_GetLineNumber");
    find(code, "PyFrame_GetCode");
    find(attribute, "PyObject_GetAttrString");
    find(utf8, "PyUnicode_AsUTF8");
    find(incref, "Py_IncRef");
    find(decref, "Py_DecRef");
    find(clear_error, "PyErr_Clear");
  }

  bool usable() const { return is_initialized && back && utf8 && this_thread && is_initialized(); }
};

std::string file_of(const Python& python, Python::Object* frame) {
  Python::Object* code = python.code(frame);
  Python::Object* name = python.attribute(code, "co_filename");
  const char* text = name ? python.utf8(name) : nullptr;
  std::string file = text ? text : "";
  if (!text) python.clear_error();
  if (name) python.decref(name);
  python.decref(code);
  return file;
}

bool is_torch(std::string_view file) { return file.find("/torch/") != std::string_view::npos; }

std::string innermost_of_script(const Python& python) {
  Python::Object* frame = python.current_frame();
  if (frame) python.incref(frame);
  std::string site;
  while (frame) {
    std::string file = file_of(python, frame);
    std::string here = file.substr(file.rfind('/') + 1) + ":" + std::to_string(python.line(frame));
    if (site.empty() || !is_torch(file)) site = here;
    Python::Object* outer = is_torch(file) ? python.back(frame) : nullptr;
    python.decref(frame);
    frame = outer;
  }
  return site;
}

}  // namespace

std::string call_site() {
  static const Python* python = new Python;
  if (!python->usable() || !python->this_thread()) return "";
  int state = python->ensure();
  std::string site = innermost_of_script(*python);
  python->release(state);
  return site;
}

}  // namespace phantora::aten
