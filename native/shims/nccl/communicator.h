// A communicator, as one of its members in this process sees it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "nccl/types.h"
#include "phantora/recorder.h"

namespace phantora::nccl {

class Batch;  // of set-ups, see setup.h

// A reduction made by ncclRedOpCreatePreMulSum: inputs are multiplied by `scalar` before the sum.
struct CustomReduction {
  DataType type;
  const void* device_scalar;  // read when the operation runs; null: `scalar` holds it
  uint64_t scalar;
};

class Communicator {
 public:
  // Without members at first; its set-up gives it these.
  Communicator(int device, bool blocking) : device(device), blocking(blocking) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // The simulator's definition, made once for each distinct `packed` pairs of a "collective" (all but "t", "id",
  // "comm").
  uint32_t definition_of(const std::string& packed, uint32_t pairs);

  size_t add_custom(const CustomReduction& reduction);  // its slot

  // Values travel if a message of `bytes` may, by a rule that is the same on all members.
  bool carries(size_t bytes) const;

  // Operations whose values are still under way, counted by those who carry them.
  class Outstanding {
   public:
    explicit Outstanding(Communicator& communicator);
    ~Outstanding();
    Outstanding(const Outstanding&) = delete;
    Outstanding& operator=(const Outstanding&) = delete;

   private:
    Communicator& communicator_;
  };

  // An operation is issued on that stream.
  void uses(StreamId stream);

  // Waits for all that was issued, in the simulation and for values.
  void complete();

  // Ends what is pending: exchanges that wait for this communicator are given up.
  void abort();
  bool aborted() const { return end_ == End::aborted; }

  // From now on nothing can be issued on it. Throws Error if that is so already.
  void finalize();
  void destroy() { end_ = End::destroyed; }

  void check_usable() const;  // throws Error
  void check_replay() const;  // in the launch of a CUDA graph that captured a call on it: ends the rank

  const int device;
  const bool blocking;

  // Set by the set-up, then constant.
  std::string uid;      // the same bytes on all members
  std::string name;     // as the caller calls it, for messages
  uint64_t number = 0;  // of the uid, for DATA frames
  int size = 0;
  int index = -1;
  bool within_process = false;  // all members live here
  uint32_t definition = 0;      // the simulator's

  // Guarded by `mutex`, which is held while an operation is issued, so that the order is one for simulator and values.
  std::mutex mutex;
  uint64_t collectives = 0;                 // issued so far
  std::unordered_map<int, uint64_t> sends;  // so far, by peer
  std::unordered_map<int, uint64_t> receives;
  std::vector<std::optional<CustomReduction>> custom;
  uint64_t splits = 0;
  void* buffers = nullptr;  // device memory that NCCL would hold
  size_t buffer_bytes = 0;
  std::shared_ptr<Batch> setup;  // while it is under way

  std::string text() const;  // for messages

 private:
  enum class End : uint8_t { none, finalized, destroyed, aborted };

  const char* end_text() const;
  std::set<StreamId> streams();
  void release_observers();

  std::unordered_map<std::string, uint32_t> definitions_;
  std::atomic<End> end_{End::none};
  std::mutex outstanding_mutex_;
  std::condition_variable changed_;
  int outstanding_ = 0;
  std::set<StreamId> streams_;  // that operations were issued on
};

using CommunicatorPtr = std::shared_ptr<Communicator>;

// The handles that callers hold (ncclComm_t).
using Handle = Communicator*;

Handle publish(CommunicatorPtr communicator);
CommunicatorPtr find(Handle handle);      // throws Error for what is no handle
CommunicatorPtr withdraw(Handle handle);  // the handle is void from now on: what finds it says so

// Like find(), and waits for its set-up; for use in operations.
CommunicatorPtr find_ready(Handle handle);

}  // namespace phantora::nccl
