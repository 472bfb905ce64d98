/* A rank of an MPI program: works for as many virtual ms as its number says, and meets the others. Prints what it then
 * sees of its machine and of the time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "phantora/capi.h"

extern char ompi_mpi_comm_world[8];
int MPI_Init(int* argc, char*** argv);
int MPI_Barrier(void* comm);
int MPI_Recv(void* buffer, int count, void* type, int from, int tag, void* comm, void* status);
int MPI_Bcast_c(void* buffer, long count, void* type, int root, void* comm);
int MPI_Comm_split_type(void* comm, int type, int key, void* info, int* made);
int MPI_Finalize(void);
double MPI_Wtime(void);
int MPI_Get_processor_name(char* name, int* length);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  phantora_sleep_ns(atoi(getenv("PHANTORA_RANK")) * INT64_C(1000000));
  MPI_Barrier(ompi_mpi_comm_world);
  MPI_Bcast_c(0, 0, 0, 0, ompi_mpi_comm_world);
  int node = -1;
  MPI_Comm_split_type(ompi_mpi_comm_world, 0 /* MPI_COMM_TYPE_SHARED */, 0, 0, &node);
  int64_t met_ns = phantora_now_ns();
  MPI_Recv(0, 0, 0, 0, 0, ompi_mpi_comm_world, 0);
  char name[256];
  int length;
  MPI_Get_processor_name(name, &length);
  printf("%s %d %s %lld %d\n", name, node, getenv("PHANTORA_LOCAL_RANK"), (long long)met_ns,
         MPI_Wtime() == (double)met_ns / 1e9);
  MPI_Finalize();
  return 0;
}
