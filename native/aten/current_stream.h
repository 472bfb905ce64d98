// The stream that the calling thread issues to.
#pragma once
#include <c10/core/impl/VirtualGuardImpl.h>

#include "phantora/streams.h"

namespace phantora::aten {

inline void* current_stream_handle() {
  c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  return guard.getStreamNativeHandle(guard.getStream(guard.getDevice()));
}

inline StreamId current_stream() { return streams::enter_or_fail(current_stream_handle(), "ATen hook"); }

}  // namespace phantora::aten
