// phantora_pytime: makes this Python's clocks show virtual time.
#include <Python.h>

#include "callers.h"
#include "clock.h"
#include "patch.h"

using namespace phantora;

namespace {

const char start_doc[] =
    "start(epoch_ns, waiting_packages, /)\n--\n\n"
    "Makes time and datetime show virtual time from now on; virtual time 0 is epoch_ns after 1970. Code of the\n"
    "waiting packages keeps real time. Raises RuntimeError if this Python is one whose clocks cannot be replaced.";

PyObject* start(PyObject*, PyObject* arguments) {
  long long epoch_ns = 0;
  PyObject* packages = nullptr;
  if (!PyArg_ParseTuple(arguments, "LO", &epoch_ns, &packages)) return nullptr;
  if (!pytime::set_waiting_packages(packages)) return nullptr;
  PyObject* time_module = PyImport_ImportModule("time");
  PyObject* datetime_module = time_module ? PyImport_ImportModule("_datetime") : nullptr;
  bool done = datetime_module && pytime::patch_time(time_module) && pytime::patch_datetime(datetime_module);
  Py_XDECREF(datetime_module);
  Py_XDECREF(time_module);
  if (!done) return nullptr;
  pytime::start_clock(epoch_ns);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"start", start, METH_VARARGS, start_doc}, {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "phantora_pytime",
    "Virtual time for Python's clocks.",
    -1,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_phantora_pytime() { return PyModule_Create(&definition); }
