// Multicast objects: what is stored through them reaches memory of several devices. All processes that hold an object
// see one roster of its devices and of what they bound, in the file of the process that created it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "physical.h"

namespace phantora::multicast {

inline constexpr int32_t no_device = -1;  // physical::Card::device of an object

// Memory that a device contributes to [offset, offset + bytes) of an object.
struct Binding {
  int32_t device;  // physical ordinal
  uint64_t offset;
  uint64_t bytes;
  physical::Place memory;
  uint64_t memory_offset;
};

class Object {
 public:
  static std::shared_ptr<Object> create(size_t bytes, unsigned devices);
  explicit Object(const physical::Extent& extent);  // made by create(), here or elsewhere
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  const physical::Extent& extent() const { return extent_; }

  // False: CUDA refuses it.
  bool add_device(int physical_device);
  bool has_device(int physical_device) const;
  void wait_for_devices() const;  // until as many were added as it was created for
  bool bind(const Binding& binding);
  bool unbind(int physical_device, uint64_t offset, uint64_t bytes);

  // Something was stored there: all that is bound to it is unknown. Nothing that stores through multicast addresses is
  // computed, and the loads that they are for (multimem) are not either.
  void stored(uint64_t offset, uint64_t bytes);

 private:
  struct Roster;

  uint8_t* states_of(const physical::Place& place);

  physical::Extent extent_;
  Roster* roster_;
  std::mutex mutex_;
  std::map<std::tuple<int32_t, int32_t, uint64_t>, uint8_t*> states_;  // of memory bound, by its place; kept for good
};

}  // namespace phantora::multicast
