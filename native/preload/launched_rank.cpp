// mpirun, mpiexec and srun tell each process in its environment which rank it is. They start all of them on this one
// machine; here the ranks fill the emulated nodes one after another, before the program reads its environment, and are
// told what their launcher would have told them there.
//
// PHANTORA_RANKS_PER_NODE says how many a node takes. It is absent where torchrun's front has placed the ranks.
#include "launched_rank.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

namespace {

using phantora::preload::fail;

// What a launcher calls things. Null: it does not tell.
struct Convention {
  const char* rank;
  const char* size;
  const char* local_rank[2];
  const char* local_size;
  const char* node;
};

// phantora_launcher/rank_conventions.py has the names of rank and local rank, too.
constexpr Convention conventions[] = {
    // Open MPI
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK"},
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr},
    // MPICH, Intel MPI and others with the process manager hydra
    {"PMI_RANK", "PMI_SIZE", {"MPI_LOCALRANKID", nullptr}, "MPI_LOCALNRANKS", nullptr},
    // Slurm's srun
    {"SLURM_PROCID", "SLURM_NTASKS", {"SLURM_LOCALID", nullptr}, nullptr, "SLURM_NODEID"},
};

// Of the launched rank; -1 for any other process.
int node_of_rank = -1;

int number(const char* name, int least) {
  const char* text = getenv(name);
  char* end;
  long value = strtol(text, &end, 10);
  if (*text && !*end && value >= least && value <= INT_MAX) return static_cast<int>(value);
  fail("no whole number of the allowed size", name, "it is set by the launcher of the ranks; was it set by hand?");
}

void set(const char* name, int value) {
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

void correct(const char* name, int value) {
  if (name && getenv(name)) set(name, value);
}

// Node names end in the node's number: "dgx-h100-1".
void set_host_name(int node) {
  const char* any = getenv("PHANTORA_HOSTNAME");
  const char* dash = any ? strrchr(any, '-') : nullptr;
  if (!dash) return;
  char name[256];
  snprintf(name, sizeof name, "%.*s-%d", static_cast<int>(dash - any), any, node);
  setenv("PHANTORA_HOSTNAME", name, 1);
}

void place(const Convention& convention, int per_node) {
  int rank = number(convention.rank, 0);
  int size = number(convention.size, rank + 1);
  int node = rank / per_node, local = rank % per_node;
  int on_node = size - node * per_node < per_node ? size - node * per_node : per_node;
  set("PHANTORA_RANK", rank);
  set("PHANTORA_NODE", node);
  set("PHANTORA_LOCAL_RANK", local);
  set("PHANTORA_WORLD_SIZE", size);
  set_host_name(node);
  for (const char* name : convention.local_rank) correct(name, local);
  correct(convention.local_size, on_node);
  correct(convention.node, node);
  node_of_rank = node;
}

__attribute__((constructor)) void place_launched_rank() {
  if (!getenv("PHANTORA_RUN_DIR") || !getenv("PHANTORA_RANKS_PER_NODE")) return;
  for (const Convention& convention : conventions) {
    if (!getenv(convention.rank) || !getenv(convention.size)) continue;
    return place(convention, number("PHANTORA_RANKS_PER_NODE", 1));
  }
}

}  // namespace

namespace phantora::preload {

bool is_launched_rank() { return node_of_rank >= 0; }
int launched_node() { return node_of_rank; }

}  // namespace phantora::preload
