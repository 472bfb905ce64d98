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
#include <sched.h>
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

struct Library {
  const char* name;
  Word world;              // MPI_COMM_WORLD; 0: an object, below
  unsigned shared_memory;  // MPI_COMM_TYPE_SHARED
};

constexpr Library libraries[] = {
    {"libmpi.so.40", 0, 0},           // Open MPI
    {"libmpi.so.12", 0x44000000, 1},  // MPICH and those of its ABI
    {"libmpi_abi.so.0", 0x101, 221},  // MPI 5's own ABI
    {"libmpi_abi.so.1", 0x101, 221},
};
constexpr const char* world_of_open_mpi = "ompi_mpi_comm_world";
constexpr int success = 0;
constexpr int64_t ns_per_s = 1'000'000'000;

// Of MPI. Python opens libmpi for itself alone.
void* find(const char* name, void* where) {
  void* found = dlsym(where, name);
  for (const Library& library : libraries) {
    if (!found) found = hidden(library.name, name);
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
constexpr timespec nap = {.tv_sec = 0, .tv_nsec = 1'000'000};

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

const Library& library() {
  for (const Library& each : libraries) {
    if (hidden(each.name, "MPI_Init")) return each;
  }
  fail("a rank uses an MPI library that is none of Open MPI, MPICH and their like", "libmpi",
       "docs/running.md, \"MPI\"");
}

// A program may hold a copy of Open MPI's, which then is the one that counts.
Word world() {
  Word handle = library().world;
  return handle ? handle : reinterpret_cast<Word>(find(world_of_open_mpi, RTLD_DEFAULT));
}

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
int meet_and_call(const char* what, const char* name, Word communicator, Words... words) {
  int result = meet(what, communicator);
  if (result != success) return result;
  const Inside inside;
  return call(name, words...);
}

// The communicator comes last.
template <typename... Words>
int collective(const char* what, const char* name, Words... words) {
  const Word all[] = {words...};
  return meet_and_call(what, name, all[sizeof...(words) - 1], words...);
}

// The communicator comes first.
template <typename... Words>
int creation(const char* name, Word communicator, Words... words) {
  return meet_and_call(name, name, communicator, communicator, words...);
}

// A wait of which no record tells.
class Outside {
 public:
  explicit Outside(const char* what) : tells_(depth == 0 && is_rank()) {
    if (tells_) runtime().outside(what);
  }
  ~Outside() {
    if (tells_) runtime().outside("");
  }
  Outside(const Outside&) = delete;

 private:
  const bool tells_;
  const Inside inside_;
};

template <typename... Words>
int wait(const char* name, Words... words) {
  const Outside outside(name);
  return call(name, words...);
}

// Asks for a message until it has come: MPICH's own wait for one does not yield.
template <typename Ask>
int probe(const char* name, const Ask& ask) {
  const Outside outside(name);
  int found = 0;
  int result = ask(&found);
  while (result == success && !found) {
    sched_yield();
    result = ask(&found);
  }
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

// --- collectives and other waits, by their number of arguments. What has counts has a second function from MPI 4 on,
// for larger ones, which may meet the first.

#define PARAMETERS_1 Word a
#define PARAMETERS_2 PARAMETERS_1, Word b
#define PARAMETERS_3 PARAMETERS_2, Word c
#define PARAMETERS_4 PARAMETERS_3, Word d
#define PARAMETERS_5 PARAMETERS_4, Word e
#define PARAMETERS_6 PARAMETERS_5, Word f
#define PARAMETERS_7 PARAMETERS_6, Word g
#define PARAMETERS_8 PARAMETERS_7, Word h
#define PARAMETERS_9 PARAMETERS_8, Word i
#define PARAMETERS_12 PARAMETERS_9, Word j, Word k, Word l
#define ARGUMENTS_1 a
#define ARGUMENTS_2 ARGUMENTS_1, b
#define ARGUMENTS_3 ARGUMENTS_2, c
#define ARGUMENTS_4 ARGUMENTS_3, d
#define ARGUMENTS_5 ARGUMENTS_4, e
#define ARGUMENTS_6 ARGUMENTS_5, f
#define ARGUMENTS_7 ARGUMENTS_6, g
#define ARGUMENTS_8 ARGUMENTS_7, h
#define ARGUMENTS_9 ARGUMENTS_8, i
#define ARGUMENTS_12 ARGUMENTS_9, j, k, l

#define COLLECTIVE(name, count)                                                               \
  EXPORT int name(PARAMETERS_##count) { return collective(#name, #name, ARGUMENTS_##count); } \
  EXPORT int name##_c(PARAMETERS_##count) { return collective(#name, #name "_c", ARGUMENTS_##count); }

#define WAIT(name, count) \
  EXPORT int name(PARAMETERS_##count) { return wait(#name, ARGUMENTS_##count); }

EXPORT int MPI_Barrier(Word comm) { return collective(__func__, __func__, comm); }
COLLECTIVE(MPI_Bcast, 5)
COLLECTIVE(MPI_Gather, 8)
COLLECTIVE(MPI_Gatherv, 9)
COLLECTIVE(MPI_Scatter, 8)
COLLECTIVE(MPI_Scatterv, 9)
COLLECTIVE(MPI_Allgather, 7)
COLLECTIVE(MPI_Allgatherv, 8)
COLLECTIVE(MPI_Alltoall, 7)
COLLECTIVE(MPI_Alltoallv, 9)
COLLECTIVE(MPI_Alltoallw, 9)
COLLECTIVE(MPI_Reduce, 7)
COLLECTIVE(MPI_Allreduce, 6)
COLLECTIVE(MPI_Reduce_scatter, 6)
COLLECTIVE(MPI_Reduce_scatter_block, 6)
COLLECTIVE(MPI_Scan, 6)
COLLECTIVE(MPI_Exscan, 6)

WAIT(MPI_Send, 6)
WAIT(MPI_Send_c, 6)
WAIT(MPI_Ssend, 6)
WAIT(MPI_Ssend_c, 6)
WAIT(MPI_Recv, 7)
WAIT(MPI_Recv_c, 7)
WAIT(MPI_Mrecv, 5)
WAIT(MPI_Mrecv_c, 5)
WAIT(MPI_Sendrecv, 12)
WAIT(MPI_Sendrecv_c, 12)
WAIT(MPI_Wait, 2)
WAIT(MPI_Waitall, 3)
WAIT(MPI_Waitany, 4)
WAIT(MPI_Waitsome, 5)

EXPORT int MPI_Probe(Word from, Word tag, Word comm, Word status) {
  return probe(__func__, [&](int* found) { return call("MPI_Iprobe", from, tag, comm, found, status); });
}
EXPORT int MPI_Mprobe(Word from, Word tag, Word comm, Word message, Word status) {
  return probe(__func__, [&](int* found) { return call("MPI_Improbe", from, tag, comm, found, message, status); });
}

EXPORT int MPI_Comm_dup(Word comm, Word made) { return creation(__func__, comm, made); }
EXPORT int MPI_Comm_create(Word comm, Word group, Word made) { return creation(__func__, comm, group, made); }
EXPORT int MPI_Comm_split(Word comm, Word color, Word key, Word made) {
  return creation(__func__, comm, color, key, made);
}

// Memory is shared within an emulated node, although MPI could share more.
EXPORT int MPI_Comm_split_type(Word comm, Word type, Word key, Word info, Word made) {
  if (depth > 0 || !is_launched_rank() || static_cast<unsigned>(type) != library().shared_memory) {
    return creation(__func__, comm, type, key, info, made);
  }
  return creation("MPI_Comm_split", comm, Word{static_cast<unsigned>(phantora::preload::launched_node())}, key, made);
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
