// Module time. Each replacement asks whether it is to show virtual time, and passes everything else to the original.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "callers.h"
#include "clock.h"
#include "patch.h"

namespace phantora::pytime {

namespace {

// Real time that a virtual sleep takes: a loop that polls for something real must not burn a core. Side threads poll in
// idle loops for the whole job, the main thread rarely.
constexpr int64_t main_thread_rest_ns = 1'000'000;
constexpr int64_t side_thread_rest_ns = 20'000'000;

bool shows_virtual() { return is_virtual() && !caller_waits(); }

PyObject* seconds(int64_t ns) { return PyFloat_FromDouble(static_cast<double>(ns) * 1e-9); }

// --- readings

struct Reading {
  const char* name;
  PyObject* (*read)();
  PyCFunction replacement;
  PyCFunction original = nullptr;
};

template <int index>
PyObject* read_clock(PyObject* self, PyObject* none);

Reading readings[] = {
    {"time", [] { return seconds(wall_ns()); }, read_clock<0>},
    {"time_ns", [] { return PyLong_FromLongLong(wall_ns()); }, read_clock<1>},
    {"monotonic", [] { return seconds(monotonic_ns()); }, read_clock<2>},
    {"monotonic_ns", [] { return PyLong_FromLongLong(monotonic_ns()); }, read_clock<3>},
    {"perf_counter", [] { return seconds(monotonic_ns()); }, read_clock<4>},
    {"perf_counter_ns", [] { return PyLong_FromLongLong(monotonic_ns()); }, read_clock<5>},
};

template <int index>
PyObject* read_clock(PyObject* self, PyObject* none) {
  const Reading& reading = readings[index];
  return shows_virtual() ? reading.read() : reading.original(self, none);
}

// --- clock_gettime, which takes the clock's number alone or in a tuple, by version

struct ClockReading {
  const char* name;
  PyObject* (*from_ns)(int64_t);
  PyCFunction replacement;
  PyCFunction original = nullptr;
};

template <int index>
PyObject* read_numbered_clock(PyObject* self, PyObject* argument);

ClockReading clock_readings[] = {
    {"clock_gettime", seconds, read_numbered_clock<0>},
    {"clock_gettime_ns", [](int64_t ns) { return PyLong_FromLongLong(ns); }, read_numbered_clock<1>},
};

template <int index>
PyObject* read_numbered_clock(PyObject* self, PyObject* argument) {
  const ClockReading& reading = clock_readings[index];
  PyObject* number = PyTuple_Check(argument) && PyTuple_Size(argument) == 1 ? PyTuple_GetItem(argument, 0) : argument;
  if (!PyLong_Check(number) || !shows_virtual()) return reading.original(self, argument);
  switch (PyLong_AsLong(number)) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return reading.from_ns(wall_ns());
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return reading.from_ns(monotonic_ns());
    default:  // CPU time of processes and threads
      PyErr_Clear();
      return reading.original(self, argument);
  }
}

// --- calendar functions, which read the clock when no time is given

struct Calendar {
  const char* name;
  Py_ssize_t given;  // how many arguments come before the time
  bool takes_struct;
  PyCFunction replacement;
  PyCFunction original = nullptr;
};

template <int index>
PyObject* read_calendar(PyObject* self, PyObject* arguments);

Calendar calendars[] = {
    {"localtime", 0, false, read_calendar<0>}, {"gmtime", 0, false, read_calendar<1>},
    {"ctime", 0, false, read_calendar<2>},     {"asctime", 0, true, read_calendar<3>},
    {"strftime", 1, true, read_calendar<4>},
};
const Calendar& localtime_function = calendars[0];

bool lacks_time(const Calendar& calendar, PyObject* arguments) {
  Py_ssize_t count = PyTuple_Size(arguments);
  if (count == calendar.given) return true;
  return !calendar.takes_struct && count == 1 && PyTuple_GetItem(arguments, 0) == Py_None;
}

// New reference to the time that the calendar function would have read itself.
PyObject* present(const Calendar& calendar, PyObject* self) {
  PyObject* now = seconds(wall_ns());
  if (!now || !calendar.takes_struct) return now;
  PyObject* arguments = PyTuple_Pack(1, now);
  Py_DECREF(now);
  if (!arguments) return nullptr;
  PyObject* fields = localtime_function.original(self, arguments);
  Py_DECREF(arguments);
  return fields;
}

template <int index>
PyObject* read_calendar(PyObject* self, PyObject* arguments) {
  const Calendar& calendar = calendars[index];
  if (!lacks_time(calendar, arguments) || !shows_virtual()) return calendar.original(self, arguments);
  PyObject* now = present(calendar, self);
  if (!now) return nullptr;
  PyObject* completed =
      calendar.given == 0 ? PyTuple_Pack(1, now) : PyTuple_Pack(2, PyTuple_GetItem(arguments, 0), now);
  Py_DECREF(now);
  if (!completed) return nullptr;
  PyObject* result = calendar.original(self, completed);
  Py_DECREF(completed);
  return result;
}

// --- sleep

PyCFunction original_sleep = nullptr;

bool is_main_thread() {
  static const unsigned long main_ident = PyThread_get_thread_ident();  // first asked by patch_time, on the main thread
  return PyThread_get_thread_ident() == main_ident;
}

// False for what is not a finite number from 0: the original says what is wrong with it.
bool to_ns(PyObject* duration, int64_t* ns) {
  double value = PyFloat_AsDouble(duration);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  if (!std::isfinite(value) || value < 0 || value > 1e9) return false;
  *ns = static_cast<int64_t>(std::llround(value * 1e9));
  return true;
}

PyObject* sleep(PyObject* self, PyObject* duration) {
  int64_t ns = 0;
  if (!shows_virtual() || !to_ns(duration, &ns)) return original_sleep(self, duration);
  sleep_ns(ns);
  PyObject* rest = seconds(std::min(ns, is_main_thread() ? main_thread_rest_ns : side_thread_rest_ns));
  if (!rest) return nullptr;
  PyObject* result = original_sleep(self, rest);
  Py_DECREF(rest);
  return result;
}

// --- patching

PyMethodDef* find(PyObject* module, const char* name) {
  PyObject* function = PyObject_GetAttrString(module, name);
  if (!function) return nullptr;
  PyMethodDef* definition = nullptr;
  if (PyCFunction_GetFunction(function)) definition = reinterpret_cast<BuiltinFunction*>(function)->definition;
  Py_DECREF(function);  // the module keeps it
  return definition;
}

bool refuse(const char* name) {
  if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "time.%s of this Python cannot be made virtual", name);
  return false;
}

}  // namespace

bool patch_time(PyObject* module) {
  is_main_thread();
  for (Reading& reading : readings) {
    PyMethodDef* found = find(module, reading.name);
    if (!found || !replace(found, METH_NOARGS, reading.replacement, &reading.original)) return refuse(reading.name);
  }
  for (ClockReading& reading : clock_readings) {
    PyMethodDef* found = find(module, reading.name);
    int convention = found && found->ml_flags & METH_O ? METH_O : METH_VARARGS;
    if (!found || !replace(found, convention, reading.replacement, &reading.original)) return refuse(reading.name);
  }
  for (Calendar& calendar : calendars) {
    PyMethodDef* found = find(module, calendar.name);
    if (!found || !replace(found, METH_VARARGS, calendar.replacement, &calendar.original)) return refuse(calendar.name);
  }
  PyMethodDef* found = find(module, "sleep");
  if (!found || !replace(found, METH_O, static_cast<PyCFunction>(sleep), &original_sleep)) return refuse("sleep");
  return true;
}

}  // namespace phantora::pytime
