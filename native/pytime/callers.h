// Whose clock it is: code whose business is waiting for others really waits, and so needs the real time.
#pragma once
#include <Python.h>

namespace phantora::pytime {

// `packages`: a set of module names; what lies below one of them counts as well. Returns false with an exception set.
bool set_waiting_packages(PyObject* packages);

// Whether the Python code that is calling us belongs to one of them.
bool caller_waits();

}  // namespace phantora::pytime
