/* As much of an MPI library as a rank of tests/native/test_mpi.py calls, under Open MPI's name. Its barrier waits for
 * nobody; every communicator holds all ranks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void* Handle;

char ompi_mpi_comm_world[8];

int MPI_Init(int* argc, char*** argv) { return 0; }
int MPI_Finalize(void) { return 0; }
int MPI_Barrier(Handle comm) { return 0; }
int PMPI_Barrier(Handle comm) { return 0; }
int PMPI_Comm_group(Handle comm, Handle* group) {
  *group = comm;
  return 0;
}
int PMPI_Group_size(Handle group, int* size) {
  *size = atoi(getenv("FAKE_MPI_SIZE"));
  return 0;
}
int PMPI_Group_translate_ranks(Handle group, int count, const int* ranks, Handle other, int* others) {
  memcpy(others, ranks, sizeof(int) * (size_t)count);
  return 0;
}
int PMPI_Group_free(Handle* group) { return 0; }
int MPI_Recv(void* buffer, int count, Handle type, int from, int tag, Handle comm, void* status) {
  usleep(1000);
  return 0;
}
int MPI_Bcast_c(void* buffer, long count, Handle type, int root, Handle comm) { return 0; }
/* Makes a communicator that only holds its color. */
int MPI_Comm_split(Handle comm, int color, int key, int* made) {
  *made = color;
  return 0;
}
int MPI_Comm_split_type(Handle comm, int type, int key, Handle info, int* made) { return 1; }

/* The two that the rank's own answers stand before. */
double MPI_Wtime(void) { return -1; }
int MPI_Get_processor_name(char* name, int* length) { return 1; }
