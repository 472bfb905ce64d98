#include "phantora/device.h"

#include "phantora/config.h"

namespace phantora::device {

namespace {
thread_local int current_device = 0;
}

int count() { return config().device_count; }

int current() { return current_device; }

bool set_current(int device) {
  if (device < 0 || device >= count()) return false;
  current_device = device;
  return true;
}

}  // namespace phantora::device
