// Reserved addresses, physical memory and mappings of the driver API; memory that two processes share.
//   virtual_memory_test              semantics in one process
//   virtual_memory_test share PATH   starts PATH as a second process and hands it memory, by descriptor and by IPC
//   handle
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "check.h"
#include "cuda.h"

namespace {

constexpr size_t granule = 2u << 20;
constexpr int device_under_test = 1;

CUmemAllocationProp on_device(unsigned handle_types = 0) {
  CUmemAllocationProp properties{};
  properties.type = 1;  // pinned
  properties.requestedHandleTypes = handle_types;
  properties.location = {1, device_under_test};
  return properties;
}

CUmemAccessDesc access(unsigned flags) { return {{1, device_under_test}, flags}; }

size_t free_bytes() {
  size_t free = 0, total = 0;
  CHECK_EQUAL(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr base = 0;
  CHECK_EQUAL(cuMemAddressReserve(&base, bytes, 0, 0, 0), cudaSuccess);
  return base;
}

CUmemGenericAllocationHandle create(size_t bytes, unsigned handle_types = 0) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = on_device(handle_types);
  CHECK_EQUAL(cuMemCreate(&handle, bytes, &properties, 0), cudaSuccess);
  return handle;
}

void map(CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle handle) {
  CUmemAccessDesc whole = access(3);
  CHECK_EQUAL(cuMemMap(at, bytes, 0, handle, 0), cudaSuccess);
  CHECK_EQUAL(cuMemSetAccess(at, bytes, &whole, 1), cudaSuccess);
}

void write(CUdeviceptr at, int value) { CHECK_EQUAL(cuMemcpyHtoD_v2(at, &value, sizeof value), cudaSuccess); }

int read(CUdeviceptr at) {
  int value = -1;
  CHECK_EQUAL(cuMemcpyDtoH_v2(&value, at, sizeof value), cudaSuccess);
  return value;
}

// Memory counts from its creation to the end of its last handle or mapping, whichever is later.
void test_what_counts() {
  size_t before = free_bytes(), smallest = 0;
  CUmemAllocationProp properties = on_device();
  CHECK_EQUAL(cuMemGetAllocationGranularity(&smallest, &properties, 0), cudaSuccess);
  CHECK_EQUAL(smallest, granule);
  CUdeviceptr base = reserve(before * 2 / granule * granule);
  CHECK_EQUAL(free_bytes(), before);
  CUmemGenericAllocationHandle handle = create(10 * granule), none = 0;
  CHECK_EQUAL(before - free_bytes(), 10 * granule);
  map(base + granule, 10 * granule, handle);
  CHECK_EQUAL(before - free_bytes(), 10 * granule);
  CHECK_EQUAL(cuMemRelease(handle), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(handle), cudaErrorInvalidValue);
  CHECK_EQUAL(before - free_bytes(), 10 * granule);
  CHECK_EQUAL(cuMemCreate(&none, before / granule * granule, &properties, 0), cudaErrorMemoryAllocation);
  CHECK_EQUAL(cuMemCreate(&none, granule + 1, &properties, 0), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMemUnmap(base + granule, 10 * granule), cudaSuccess);
  CHECK_EQUAL(free_bytes(), before);
  CHECK_EQUAL(cuMemAddressFree(base, granule), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMemAddressFree(base, before * 2 / granule * granule), cudaSuccess);
}

void test_addresses() {
  CUdeviceptr aligned = 0;
  CHECK_EQUAL(cuMemAddressReserve(&aligned, granule, 64 * granule, 0, 0), cudaSuccess);
  CHECK_EQUAL(aligned % (64 * granule), 0u);
  CHECK_EQUAL(cuMemAddressFree(aligned, granule), cudaSuccess);
  CHECK_EQUAL(cuMemAddressReserve(&aligned, 0, 0, 0, 0), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMemAddressReserve(&aligned, granule, 3 * granule, 0, 0), cudaErrorInvalidValue);

  CUdeviceptr base = reserve(4 * granule);
  CUmemGenericAllocationHandle handle = create(2 * granule);
  CHECK_EQUAL(cuMemMap(base + 3 * granule, 2 * granule, 0, handle, 0), cudaErrorInvalidValue);  // sticks out
  CHECK_EQUAL(cuMemMap(base, 4 * granule, 0, handle, 0), cudaErrorInvalidValue);                // has not so much
  CHECK_EQUAL(cuMemMap(base, 2 * granule, 0, handle + 1000, 0), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMemMap(base, 2 * granule, 0, handle, 0), cudaSuccess);
  CHECK_EQUAL(cuMemMap(base + granule, 2 * granule, 0, handle, 0), cudaErrorInvalidValue);  // is taken
  CHECK_EQUAL(cuMemUnmap(base, granule), cudaErrorInvalidValue);                            // half a mapping
  CHECK_EQUAL(cuMemAddressFree(base, 4 * granule), cudaErrorInvalidValue);                  // in use
  CHECK_EQUAL(cuMemUnmap(base, 2 * granule), cudaSuccess);
  CHECK_EQUAL(cuMemUnmap(base, 2 * granule), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMemRelease(handle), cudaSuccess);
  CHECK_EQUAL(cuMemAddressFree(base, 4 * granule), cudaSuccess);
}

// Two pieces side by side serve as one buffer.
void test_pointers_and_copies_across_pieces() {
  CUdeviceptr base = reserve(8 * granule);
  CUmemGenericAllocationHandle one = create(granule), other = create(granule);
  map(base, granule, one);
  map(base + granule, granule, other);

  CUdeviceptr found = 0;
  size_t bytes = 0;
  CHECK_EQUAL(cuMemGetAddressRange_v2(&found, &bytes, base + granule + 5), cudaSuccess);
  CHECK_EQUAL(found, base + granule);
  CHECK_EQUAL(bytes, granule);
  cudaPointerAttributes attributes{};
  CHECK_EQUAL(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(base + 2 * granule - 1)), cudaSuccess);
  CHECK_EQUAL(attributes.type, 2);
  CHECK_EQUAL(attributes.device, device_under_test);
  CHECK_EQUAL(cudaFree(reinterpret_cast<void*>(base)), cudaErrorInvalidValue);

  std::string text(4096, '\0'), back(text.size(), '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
  CUdeviceptr middle = base + granule - text.size() / 2;
  CHECK_EQUAL(cuMemcpyHtoD_v2(middle, text.data(), text.size()), cudaSuccess);
  CHECK_EQUAL(cuMemcpyDtoD_v2(base + 64, middle, text.size()), cudaSuccess);
  CHECK_EQUAL(cuMemcpyDtoH_v2(back.data(), base + 64, back.size()), cudaSuccess);
  CHECK(back == text);
  CHECK_EQUAL(cuMemsetD8_v2(middle, 9, text.size()), cudaSuccess);
  CHECK_EQUAL(read(base + granule - 2), 0x09090909);

  CHECK_EQUAL(cuMemUnmap(base, granule), cudaSuccess);
  CHECK_EQUAL(cuMemcpyHtoD_v2(base + granule - 4, text.data(), 4), cudaErrorInvalidValue);
  CHECK_EQUAL(read(base + granule), 0x09090909);
  CHECK_EQUAL(cuMemUnmap(base + granule, granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(one), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(other), cudaSuccess);
  CHECK_EQUAL(cuMemAddressFree(base, 8 * granule), cudaSuccess);
}

void test_access_and_handles() {
  size_t before = free_bytes();
  CUdeviceptr base = reserve(granule);
  CUmemGenericAllocationHandle handle = create(granule, 1), same = 0;
  CHECK_EQUAL(cuMemMap(base, granule, 0, handle, 0), cudaSuccess);
  CUmemLocation here{1, device_under_test}, elsewhere{1, 0};
  unsigned long long flags = 7;
  CHECK_EQUAL(cuMemGetAccess(&flags, &here, base), cudaSuccess);
  CHECK_EQUAL(flags, 0u);
  CUmemAccessDesc both[2] = {access(3), {elsewhere, 1}};
  CHECK_EQUAL(cuMemSetAccess(base, granule, both, 2), cudaSuccess);
  CHECK_EQUAL(cuMemGetAccess(&flags, &here, base + 100), cudaSuccess);
  CHECK_EQUAL(flags, 3u);
  CHECK_EQUAL(cuMemGetAccess(&flags, &elsewhere, base), cudaSuccess);
  CHECK_EQUAL(flags, 1u);
  CHECK_EQUAL(cuMemGetAccess(&flags, &here, base + granule), cudaErrorInvalidValue);

  CUmemAllocationProp properties{};
  CHECK_EQUAL(cuMemRetainAllocationHandle(&same, reinterpret_cast<void*>(base + 8)), cudaSuccess);
  CHECK_EQUAL(cuMemGetAllocationPropertiesFromHandle(&properties, same), cudaSuccess);
  CHECK_EQUAL(properties.location.id, device_under_test);
  CHECK_EQUAL(properties.requestedHandleTypes, 1u);
  CHECK_EQUAL(cuMemUnmap(base, granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(handle), cudaSuccess);
  CHECK_EQUAL(before - free_bytes(), granule);
  CHECK_EQUAL(cuMemRelease(same), cudaSuccess);
  CHECK_EQUAL(free_bytes(), before);
  CHECK_EQUAL(cuMemAddressFree(base, granule), cudaSuccess);
}

// One piece at two addresses: what is written through one is read through the other.
void test_two_addresses_of_one_piece() {
  CUdeviceptr base = reserve(2 * granule);
  CUmemGenericAllocationHandle handle = create(granule);
  map(base, granule, handle);
  write(base + 12, 34);
  map(base + granule, granule, handle);
  CHECK_EQUAL(read(base + granule + 12), 34);
  write(base + granule + 16, 56);
  CHECK_EQUAL(read(base + 16), 56);
  CHECK_EQUAL(cuMemsetD32_v2(base, 0, granule / 4), cudaSuccess);
  CHECK_EQUAL(read(base + granule + 16), 0);
  CHECK_EQUAL(cuMemUnmap(base, 2 * granule), cudaSuccess);
  map(base, granule, handle);
  write(base, 1);
  CHECK_EQUAL(read(base), 1);
  CHECK_EQUAL(cuMemUnmap(base, granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(handle), cudaSuccess);
  CHECK_EQUAL(cuMemAddressFree(base, 2 * granule), cudaSuccess);
}

// --- two processes

struct Parcel {
  cudaIpcMemHandle_t block;
};

void send_parcel(int channel, const Parcel& parcel, int descriptor) {
  iovec part{const_cast<Parcel*>(&parcel), sizeof parcel};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  CHECK_EQUAL(sendmsg(channel, &message, 0), static_cast<ssize_t>(sizeof parcel));
}

Parcel receive_parcel(int channel, int* descriptor) {
  Parcel parcel{};
  iovec part{&parcel, sizeof parcel};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof *descriptor)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  CHECK_EQUAL(recvmsg(channel, &message, 0), static_cast<ssize_t>(sizeof parcel));
  std::memcpy(descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *descriptor);
  return parcel;
}

void take_turns(int channel) {
  char turn = 0;
  CHECK_EQUAL(::write(channel, &turn, 1), 1);
  CHECK_EQUAL(::read(channel, &turn, 1), 1);
}

void give(int channel) {
  CUdeviceptr base = reserve(granule);
  CUmemGenericAllocationHandle handle = create(granule, 1);
  map(base, granule, handle);
  write(base + 40, 41);
  void *first = nullptr, *block = nullptr, *opened = nullptr;
  CHECK_EQUAL(cudaMalloc(&first, 4096), cudaSuccess);
  CHECK_EQUAL(cudaMalloc(&block, 4096), cudaSuccess);
  CUdeviceptr memory = reinterpret_cast<CUdeviceptr>(block);
  write(memory + 8, 42);

  int descriptor = -1;
  Parcel parcel{};
  CHECK_EQUAL(cuMemExportToShareableHandle(&descriptor, handle, 1, 0), cudaSuccess);
  CHECK_EQUAL(cuMemExportToShareableHandle(&descriptor, handle, 8, 0), cudaErrorInvalidValue);  // not asked for
  CHECK_EQUAL(cudaIpcGetMemHandle(&parcel.block, block), cudaSuccess);
  CHECK_EQUAL(cudaIpcOpenMemHandle(&opened, parcel.block, 1), cudaErrorDeviceUninitialized);  // our own
  CHECK_EQUAL(read(memory + 8), 42);
  send_parcel(channel, parcel, descriptor);
  close(descriptor);
  take_turns(channel);
  CHECK_EQUAL(read(base + 44), 141);
  CHECK_EQUAL(read(memory + 12), 142);
  CHECK_EQUAL(cudaFree(block), cudaSuccess);
  CHECK_EQUAL(cudaFree(first), cudaSuccess);
  CHECK_EQUAL(cuMemUnmap(base, granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(handle), cudaSuccess);
  take_turns(channel);
}

void take(int channel) {
  size_t before = free_bytes();
  int descriptor = -1;
  Parcel parcel = receive_parcel(channel, &descriptor);
  CUmemGenericAllocationHandle handle = 0;
  auto as_pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(descriptor));
  CHECK_EQUAL(cuMemImportFromShareableHandle(&handle, as_pointer, 1), cudaSuccess);
  close(descriptor);
  CUmemAllocationProp properties{};
  CHECK_EQUAL(cuMemGetAllocationPropertiesFromHandle(&properties, handle), cudaSuccess);
  CHECK_EQUAL(properties.location.id, device_under_test);
  CUdeviceptr base = reserve(granule);
  map(base, granule, handle);
  CHECK_EQUAL(read(base + 40), 41);
  write(base + 44, 141);

  void* block = nullptr;
  CHECK_EQUAL(cudaIpcOpenMemHandle(&block, parcel.block, 1), cudaSuccess);
  CUdeviceptr memory = reinterpret_cast<CUdeviceptr>(block);
  CHECK_EQUAL(read(memory + 8), 42);
  write(memory + 12, 142);
  CHECK_EQUAL(free_bytes(), before);  // it counts where it was created
  take_turns(channel);
  take_turns(channel);
  CHECK_EQUAL(read(base + 40), 41);  // the owner has let go of it
  CHECK_EQUAL(cudaIpcCloseMemHandle(block), cudaSuccess);
  CHECK_EQUAL(cudaIpcCloseMemHandle(block), cudaErrorInvalidValue);
  CHECK(cudaIpcOpenMemHandle(&block, parcel.block, 1) != cudaSuccess);  // its owner has freed it
  CHECK_EQUAL(cuMemUnmap(base, granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(handle), cudaSuccess);
}

void share(const char* program) {
  int ends[2];
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    execl(program, program, "take", std::to_string(ends[1]).c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  cudaSetDevice(device_under_test);
  give(ends[0]);
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "share") {
    share(arguments[2]);
    return checks_failed();
  }
  cudaSetDevice(device_under_test);
  if (count == 3) {
    take(std::stoi(arguments[2]));
    return checks_failed();
  }
  test_what_counts();
  test_addresses();
  test_pointers_and_copies_across_pieces();
  test_access_and_handles();
  test_two_addresses_of_one_piece();
  return checks_failed();
}
