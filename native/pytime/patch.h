// Replaces the C function behind a builtin function or method object, in its method table: so the name shows virtual
// time wherever it was imported to, and however early.
#pragma once
#include <Python.h>

namespace phantora::pytime {

// The beginnings of CPython's function objects (PyCFunctionObject, PyMethodDescrObject), the same from 3.10 on.
struct BuiltinFunction {
  PyObject head;
  PyMethodDef* definition;
};
struct MethodDescriptor {
  PyObject head;
  PyTypeObject* type;
  PyObject* name;
  PyObject* qualified_name;
  PyMethodDef* definition;
};

inline constexpr int convention_mask = METH_VARARGS | METH_KEYWORDS | METH_NOARGS | METH_O | METH_FASTCALL;

// Puts `replacement` in the place of the function of `definition`, which must have `convention`, and remembers the old
// one. False if another convention is in use: a Python that we do not know.
template <typename Function>
bool replace(PyMethodDef* definition, int convention, Function replacement, Function* original) {
  if ((definition->ml_flags & convention_mask) != convention) return false;
  if (*original) return true;  // done before
  *original = reinterpret_cast<Function>(reinterpret_cast<void*>(definition->ml_meth));
  definition->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(replacement));
  return true;
}

using FastFunction = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords);

// Each returns false with an exception set.
bool patch_time(PyObject* time_module);
bool patch_datetime(PyObject* datetime_module);

}  // namespace phantora::pytime
