// datetime.datetime.now and utcnow. date.today and datetime.today ask time.time by themselves.
#include <cstring>

#include "callers.h"
#include "clock.h"
#include "patch.h"

namespace phantora::pytime {

namespace {

FastFunction original_now = nullptr;
PyCFunction original_utcnow = nullptr;
PyObject* utc = nullptr;

bool shows_virtual() { return is_virtual() && !caller_waits(); }

// The present as an instance of `type`, in `zone` (None: local time without zone). Whole microseconds are exact in a
// double of this size, and fromtimestamp rounds to the nearest.
PyObject* present(PyObject* type, PyObject* zone) {
  double microseconds = static_cast<double>(wall_ns() / 1000);
  return PyObject_CallMethod(type, "fromtimestamp", "dO", microseconds / 1e6, zone);
}

// The only argument of now(), borrowed; None if absent; nullptr if the call is wrong.
PyObject* zone_argument(PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  if (count + named == 0) return Py_None;
  if (count + named != 1) return nullptr;
  if (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "tz") != 0) return nullptr;
  return arguments[0];
}

PyObject* now(PyObject* type, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  PyObject* zone = zone_argument(arguments, count, keywords);
  if (!zone || !shows_virtual()) return original_now(type, arguments, count, keywords);
  return present(type, zone);
}

PyObject* utcnow(PyObject* type, PyObject* none) {
  if (!shows_virtual()) return original_utcnow(type, none);
  PyObject* aware = present(type, utc);
  if (!aware) return nullptr;
  PyObject* replace_method = PyObject_GetAttrString(aware, "replace");
  PyObject* no_arguments = PyTuple_New(0);
  PyObject* keywords = Py_BuildValue("{sO}", "tzinfo", Py_None);
  PyObject* naive = nullptr;
  if (replace_method && no_arguments && keywords) naive = PyObject_Call(replace_method, no_arguments, keywords);
  Py_XDECREF(keywords);
  Py_XDECREF(no_arguments);
  Py_XDECREF(replace_method);
  Py_DECREF(aware);
  return naive;
}

PyMethodDef* find(PyObject* type, const char* name) {
  PyObject* attributes = PyObject_GetAttrString(type, "__dict__");
  PyObject* descriptor = attributes ? PyMapping_GetItemString(attributes, name) : nullptr;
  Py_XDECREF(attributes);
  if (!descriptor) return nullptr;
  PyMethodDef* definition = nullptr;
  if (Py_IS_TYPE(descriptor, &PyClassMethodDescr_Type)) {
    definition = reinterpret_cast<MethodDescriptor*>(descriptor)->definition;
  }
  Py_DECREF(descriptor);  // the type keeps it
  return definition;
}

bool refuse(const char* name) {
  if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "datetime.%s of this Python cannot be made virtual", name);
  return false;
}

bool patch_type(PyObject* type) {
  PyMethodDef* found = find(type, "now");
  if (!found || !replace(found, METH_FASTCALL | METH_KEYWORDS, now, &original_now)) return refuse("now");
  found = find(type, "utcnow");
  if (!found || !replace(found, METH_NOARGS, static_cast<PyCFunction>(utcnow), &original_utcnow))
    return refuse("utcnow");
  return true;
}

}  // namespace

bool patch_datetime(PyObject* module) {
  PyObject* timezone = PyObject_GetAttrString(module, "timezone");
  if (!utc && timezone) utc = PyObject_GetAttrString(timezone, "utc");
  Py_XDECREF(timezone);
  PyObject* type = PyObject_GetAttrString(module, "datetime");
  bool done = type && utc && patch_type(type);
  Py_XDECREF(type);
  return done;
}

}  // namespace phantora::pytime
