#include "callers.h"

namespace phantora::pytime {

namespace {

PyObject* answers = nullptr;  // dict: module name → whether it waits
PyObject* name_key = nullptr;

// A name counts if it or a package above it is in the set: "multiprocessing.queues" for "multiprocessing".
bool look_up_packages(PyObject* name) {
  PyObject* dot = PyUnicode_FromString(".");
  PyObject* rest = Py_NewRef(name);
  bool found = false;
  while (dot && rest && PyUnicode_GetLength(rest) > 0) {
    PyObject* answer = PyDict_GetItemWithError(answers, rest);
    if (answer) {
      found = answer == Py_True;
      break;
    }
    PyObject* parts = PyUnicode_RPartition(rest, dot);
    Py_DECREF(rest);
    rest = parts ? Py_XNewRef(PyTuple_GetItem(parts, 0)) : nullptr;
    Py_XDECREF(parts);
  }
  Py_XDECREF(rest);
  Py_XDECREF(dot);
  PyErr_Clear();
  return found;
}

}  // namespace

bool set_waiting_packages(PyObject* packages) {
  PyObject* fresh = PyDict_New();
  PyObject* iterator = PyObject_GetIter(packages);
  if (!name_key) name_key = PyUnicode_InternFromString("__name__");
  if (!fresh || !iterator || !name_key) {
    Py_XDECREF(fresh);
    Py_XDECREF(iterator);
    return false;
  }
  while (PyObject* name = PyIter_Next(iterator)) {
    int failed = PyDict_SetItem(fresh, name, Py_True);
    Py_DECREF(name);
    if (failed) break;
  }
  Py_DECREF(iterator);
  PyObject* old = answers;
  answers = fresh;
  Py_XDECREF(old);
  return !PyErr_Occurred();
}

bool caller_waits() {
  PyObject* globals = PyEval_GetGlobals();
  if (!globals || !answers) return false;
  PyObject* name = PyDict_GetItemWithError(globals, name_key);
  if (!name || !PyUnicode_Check(name)) return false;
  PyObject* answer = PyDict_GetItemWithError(answers, name);
  if (answer) return answer == Py_True;
  bool waits = look_up_packages(name);
  if (PyDict_SetItem(answers, name, waits ? Py_True : Py_False)) PyErr_Clear();
  return waits;
}

}  // namespace phantora::pytime
