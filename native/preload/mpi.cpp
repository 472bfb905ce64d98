// MPI in the ranks of a job. Its processes wait for one another in real time; what a rank may see of that:
//
// - Collectives on the hosts: the clocks of all members become that of the last one to come (phantora_meet), whatever
// MPI
//   would have let go on before. The members meet in front of the call, in a barrier of MPI's own, so that MPI goes on
//   with messages that are under way while the simulator finds out when that was.
// - Other waits, for messages and requests, take no virtual time. The simulator is told of them for its diagnoses.
// - MPI spins while it waits, and yields; here it sleeps a little instead. So the cores are free for the ranks that it
// waits
//   for, and the simulator sees that nothing moves.
//
// Handles are ints in MPICH and pointers in Open MPI, and some constants differ; the calling convention of both
// machines that we run on passes either as one word, and it is handed on as it came.
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hidden.h"
#include "launched_rank.h"
#include "library_set.h"
#include "message.h"

namespace {

using phantora::preload::fail;
using phantora::preload::hidden;
using phantora::preload::is_launched_rank;

using Word = uintptr_t;

constexpr const char* libraries[] = {"libmpi.so.40", "libmpi.so.12"};  // Open MPI; MPICH's ABI
constexpr int success = 0;
constexpr int64_t ns_per_s = 1'000'000'000;

// Of MPI. Python opens libmpi for itself alone.
void* find(const char* name, void* where) {
  void* found = dlsym(where, name);
  for (const char* library : libraries) {
    if (!found) found = hidden(library, name);
  }
  return found;
}

template <typename Result = int, typename... Words>
Result call(const char* name, Words... words) {
  void* found = find(name, RTLD_NEXT);
  if (!found) fail("no MPI library is loaded that has this function", name, "link the program to libmpi");
  return reinterpret_cast<Result (*)(Words...)>(found)(words...);
}

// --- waiting

constexpr int yields_before_sleep = 100;
constexpr timespec nap = {.tv_sec = 0, .tv_nsec = 200'000};

__attribute__((tls_model("initial-exec"))) thread_local int depth = 0;
__attribute__((tls_model("initial-exec"))) thread_local int yields = 0;

// While a thread is in MPI, what MPI calls by its public names is its own affair.
class Inside {
 public:
  Inside() {
    ++depth;
    yields = 0;
  }
  ~Inside() { --depth; }
};

// --- the simulator

struct Runtime {
  template <typename Function>
  static Function find(const char* name) {
    phantora::preload::open_all();  // an MPI program need not be linked to CUDA
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }

  int (*active)() = find<int (*)()>("phantora_active");
  int64_t (*now_ns)() = find<int64_t (*)()>("phantora_now_ns");
  void (*outside)(const char*) = find<void (*)(const char*)>("phantora_outside");
  uint64_t (*meet)(const char*, const int*, int) = find<uint64_t (*)(const char*, const int*, int)>("phantora_meet");
  void (*met)(uint64_t) = find<void (*)(uint64_t)>("phantora_met");
};

const Runtime& runtime() {
  static const Runtime functions;
  return functions;
}

bool is_rank() { return is_launched_rank() && runtime().active(); }

// --- members

// MPI_COMM_WORLD of Open MPI, null in others. A program may hold a copy of it, which then is the one that counts.
void* world_of_open_mpi() { return find("ompi_mpi_comm_world", RTLD_DEFAULT); }

Word world() {
  constexpr Word of_mpich = 0x44000000;
  void* of_open_mpi = world_of_open_mpi();
  return of_open_mpi ? reinterpret_cast<Word>(of_open_mpi) : of_mpich;
}

int shared_memory() { return world_of_open_mpi() ? 0 : 1; }  // MPI_COMM_TYPE_SHARED

// Their ranks in MPI_COMM_WORLD, which are those of the job.
class Members {
 public:
  explicit Members(Word communicator) {
    Word group = 0, all = 0;
    call("PMPI_Comm_group", communicator, &group);
    call("PMPI_Comm_group", world(), &all);
    call("PMPI_Group_size", group, &count_);
    ranks_ = static_cast<int*>(malloc(2 * sizeof(int) * static_cast<size_t>(count_)));
    if (!ranks_) fail("no memory for the members of an MPI communicator", "malloc", "is this machine out of memory?");
    int* indices = ranks_ + count_;
    for (int index = 0; index < count_; ++index) indices[index] = index;
    call("PMPI_Group_translate_ranks", group, Word{static_cast<unsigned>(count_)}, indices, all, ranks_);
    call("PMPI_Group_free", &group);
    call("PMPI_Group_free", &all);
  }
  ~Members() { free(ranks_); }
  Members(const Members&) = delete;

  const int* ranks() const { return ranks_; }
  int count() const { return count_; }

 private:
  int count_ = 0;
  int* ranks_ = nullptr;
};

int meet(const char* what, Word communicator) {
  if (depth > 0 || !is_rank()) return success;
  const Inside inside;
  const Members members(communicator);
  uint64_t meeting = runtime().meet(what, members.ranks(), members.count());
  int result = call("PMPI_Barrier", communicator);
  runtime().met(meeting);
  return result;
}

template <typename... Words>
int collective(const char* name, Word communicator, Words... words) {
  int result = meet(name, communicator);
  if (result != success) return result;
  const Inside inside;
  return call(name, words...);
}

template <typename... Words>
int wait(const char* name, Words... words) {
  bool tells = depth == 0 && is_rank();
  const Inside inside;
  if (tells) runtime().outside(name);
  int result = call(name, words...);
  if (tells) runtime().outside("");
  return result;
}

// Nobody is a rank to the simulator before all are.
template <typename... Words>
int begin(const char* name, Words... words) {
  int result;
  {
    const Inside inside;
    result = call(name, words...);
  }
  return result == success ? meet(name, world()) : result;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// MPI yields while it spins; its libraries call this by the name.
EXPORT int sched_yield() {
  static auto real_yield = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "sched_yield"));
  if (depth == 0 || !is_launched_rank() || ++yields < yields_before_sleep) return real_yield();
  nanosleep(&nap, nullptr);
  return 0;
}

EXPORT int MPI_Init(Word argc, Word argv) { return begin(__func__, argc, argv); }
EXPORT int MPI_Init_thread(Word argc, Word argv, Word required, Word provided) {
  return begin(__func__, argc, argv, required, provided);
}
EXPORT int MPI_Finalize() {
  meet(__func__, world());
  const Inside inside;
  return call(__func__);
}

// --- collectives

EXPORT int MPI_Barrier(Word comm) { return collective(__func__, comm, comm); }
EXPORT int MPI_Bcast(Word buffer, Word count, Word type, Word root, Word comm) {
  return collective(__func__, comm, buffer, count, type, root, comm);
}
EXPORT int MPI_Gather(Word send, Word sent, Word send_type, Word receive, Word received, Word receive_type, Word root,
                      Word comm) {
  return collective(__func__, comm, send, sent, send_type, receive, received, receive_type, root, comm);
}
EXPORT int MPI_Gatherv(Word send, Word sent, Word send_type, Word receive, Word received, Word offsets,
                       Word receive_type, Word root, Word comm) {
  return collective(__func__, comm, send, sent, send_type, receive, received, offsets, receive_type, root, comm);
}
EXPORT int MPI_Scatter(Word send, Word sent, Word send_type, Word receive, Word received, Word receive_type, Word root,
                       Word comm) {
  return collective(__func__, comm, send, sent, send_type, receive, received, receive_type, root, comm);
}
EXPORT int MPI_Scatterv(Word send, Word sent, Word offsets, Word send_type, Word receive, Word received,
                        Word receive_type, Word root, Word comm) {
  return collective(__func__, comm, send, sent, offsets, send_type, receive, received, receive_type, root, comm);
}
EXPORT int MPI_Allgather(Word send, Word sent, Word send_type, Word receive, Word received, Word receive_type,
                         Word comm) {
  return collective(__func__, comm, send, sent, send_type, receive, received, receive_type, comm);
}
EXPORT int MPI_Allgatherv(Word send, Word sent, Word send_type, Word receive, Word received, Word offsets,
                          Word receive_type, Word comm) {
  return collective(__func__, comm, send, sent, send_type, receive, received, offsets, receive_type, comm);
}
EXPORT int MPI_Alltoall(Word send, Word sent, Word send_type, Word receive, Word received, Word receive_type,
                        Word comm) {
  return collective(__func__, comm, send, sent, send_type, receive, received, receive_type, comm);
}
EXPORT int MPI_Alltoallv(Word send, Word sent, Word send_offsets, Word send_type, Word receive, Word received,
                         Word receive_offsets, Word receive_type, Word comm) {
  return collective(__func__, comm, send, sent, send_offsets, send_type, receive, received, receive_offsets,
                    receive_type, comm);
}
EXPORT int MPI_Alltoallw(Word send, Word sent, Word send_offsets, Word send_types, Word receive, Word received,
                         Word receive_offsets, Word receive_types, Word comm) {
  return collective(__func__, comm, send, sent, send_offsets, send_types, receive, received, receive_offsets,
                    receive_types, comm);
}
EXPORT int MPI_Reduce(Word send, Word receive, Word count, Word type, Word op, Word root, Word comm) {
  return collective(__func__, comm, send, receive, count, type, op, root, comm);
}
EXPORT int MPI_Allreduce(Word send, Word receive, Word count, Word type, Word op, Word comm) {
  return collective(__func__, comm, send, receive, count, type, op, comm);
}
EXPORT int MPI_Reduce_scatter(Word send, Word receive, Word counts, Word type, Word op, Word comm) {
  return collective(__func__, comm, send, receive, counts, type, op, comm);
}
EXPORT int MPI_Reduce_scatter_block(Word send, Word receive, Word count, Word type, Word op, Word comm) {
  return collective(__func__, comm, send, receive, count, type, op, comm);
}
EXPORT int MPI_Scan(Word send, Word receive, Word count, Word type, Word op, Word comm) {
  return collective(__func__, comm, send, receive, count, type, op, comm);
}
EXPORT int MPI_Exscan(Word send, Word receive, Word count, Word type, Word op, Word comm) {
  return collective(__func__, comm, send, receive, count, type, op, comm);
}
EXPORT int MPI_Comm_dup(Word comm, Word made) { return collective(__func__, comm, comm, made); }
EXPORT int MPI_Comm_create(Word comm, Word group, Word made) { return collective(__func__, comm, comm, group, made); }
EXPORT int MPI_Comm_split(Word comm, Word color, Word key, Word made) {
  return collective(__func__, comm, comm, color, key, made);
}

// Memory is shared within an emulated node, although MPI could share more.
EXPORT int MPI_Comm_split_type(Word comm, Word type, Word key, Word info, Word made) {
  if (depth > 0 || !is_launched_rank() || static_cast<int>(type) != shared_memory()) {
    return collective(__func__, comm, comm, type, key, info, made);
  }
  return collective("MPI_Comm_split", comm, comm, Word{static_cast<unsigned>(phantora::preload::launched_node())}, key,
                    made);
}

// --- other waits

EXPORT int MPI_Send(Word buffer, Word count, Word type, Word to, Word tag, Word comm) {
  return wait(__func__, buffer, count, type, to, tag, comm);
}
EXPORT int MPI_Ssend(Word buffer, Word count, Word type, Word to, Word tag, Word comm) {
  return wait(__func__, buffer, count, type, to, tag, comm);
}
EXPORT int MPI_Recv(Word buffer, Word count, Word type, Word from, Word tag, Word comm, Word status) {
  return wait(__func__, buffer, count, type, from, tag, comm, status);
}
EXPORT int MPI_Mrecv(Word buffer, Word count, Word type, Word message, Word status) {
  return wait(__func__, buffer, count, type, message, status);
}
EXPORT int MPI_Sendrecv(Word send, Word sent, Word send_type, Word to, Word send_tag, Word receive, Word received,
                        Word receive_type, Word from, Word receive_tag, Word comm, Word status) {
  return wait(__func__, send, sent, send_type, to, send_tag, receive, received, receive_type, from, receive_tag, comm,
              status);
}
EXPORT int MPI_Probe(Word from, Word tag, Word comm, Word status) { return wait(__func__, from, tag, comm, status); }
EXPORT int MPI_Mprobe(Word from, Word tag, Word comm, Word message, Word status) {
  return wait(__func__, from, tag, comm, message, status);
}
EXPORT int MPI_Wait(Word request, Word status) { return wait(__func__, request, status); }
EXPORT int MPI_Waitall(Word count, Word requests, Word statuses) { return wait(__func__, count, requests, statuses); }
EXPORT int MPI_Waitany(Word count, Word requests, Word index, Word status) {
  return wait(__func__, count, requests, index, status);
}
EXPORT int MPI_Waitsome(Word count, Word requests, Word done, Word indices, Word statuses) {
  return wait(__func__, count, requests, done, indices, statuses);
}

// --- what a rank sees of its machine

EXPORT double MPI_Wtime() {
  if (!is_rank()) return call<double>(__func__);
  return static_cast<double>(runtime().now_ns()) / ns_per_s;
}

EXPORT int MPI_Get_processor_name(char* name, int* length) {
  if (!is_launched_rank()) return call(__func__, name, length);
  constexpr size_t shortest_limit = 128;  // of MPI_MAX_PROCESSOR_NAME, in MPICH; 256 in Open MPI
  gethostname(name, shortest_limit);
  *length = static_cast<int>(strlen(name));
  return success;
}

#undef EXPORT
