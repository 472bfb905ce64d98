// The emulated devices of this process, and the calling thread's current one.
#pragma once
#include "phantora/export.h"

namespace phantora {
namespace device PHANTORA_EXPORT {

int count();
int current();                 // of the calling thread; 0 at first
bool set_current(int device);  // false if there is no such device

}  // namespace device PHANTORA_EXPORT
}  // namespace phantora
