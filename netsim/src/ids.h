// Typed ids and the two containers that are indexed by them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace phantora::netsim {

enum class RankId : uint32_t {};
enum class LaneId : uint32_t {};  // slot of a lane within its rank
enum class StreamId : uint32_t {};
enum class LinkId : uint32_t {};
enum class FlowId : uint32_t {};
enum class DeviceId : uint32_t {};  // dense index of a device on which kernels and communication slow each other
enum class CommId : uint32_t {};  // dense index of a communicator, in the order of definition: never an order of events
enum class HostGroupId : uint32_t {};  // likewise
enum class OperationId : uint32_t {};  // a collective under way
enum class TransferId : uint32_t {};   // a send and the receive that it meets
enum class LaunchId : uint32_t {};     // one rank's group of sends and receives
enum class RecordingId : uint32_t {};  // slot of a recording within its rank
enum class WaitId : uint32_t {};       // slot of a request within its rank

template <class Id>
constexpr size_t index(Id id) {
  return static_cast<size_t>(id);
}

// A vector indexed by a typed id.
template <class Id, class T>
class Table {
 public:
  T& operator[](Id id) { return items_[index(id)]; }
  const T& operator[](Id id) const { return items_[index(id)]; }
  bool contains(Id id) const { return index(id) < items_.size(); }
  size_t size() const { return items_.size(); }
  void resize(size_t size) { items_.resize(size); }
  Id add(T item) {
    items_.push_back(std::move(item));
    return Id(items_.size() - 1);
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

// Items with ids that are given back and used again. Ids say nothing about order.
template <class Id, class T>
class Slab {
 public:
  T& operator[](Id id) { return items_[index(id)]; }
  const T& operator[](Id id) const { return items_[index(id)]; }
  size_t live() const { return items_.size() - free_.size(); }

  // All slots, those given back too: as T{}.
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  Id add(T item) {
    if (free_.empty()) {
      items_.push_back(std::move(item));
      return Id(items_.size() - 1);
    }
    const Id id = free_.back();
    free_.pop_back();
    items_[index(id)] = std::move(item);
    return id;
  }

  void remove(Id id) {
    items_[index(id)] = T{};
    free_.push_back(id);
  }

 private:
  std::vector<T> items_;
  std::vector<Id> free_;
};

}  // namespace phantora::netsim
