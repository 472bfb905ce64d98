// Reserved addresses, physical memory and mappings of the driver API; memory that two processes share.
//   virtual_memory_test              semantics in one process
//   virtual_memory_test refuse       on a machine without multicast
//   virtual_memory_test share PATH   starts PATH as a second process and hands it memory, by descriptor and by IPC
//   handle, and a multicast object
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

CUmulticastObjectProp multicast_of(unsigned devices, size_t bytes) { return {devices, bytes, 1, 0}; }

CUmemGenericAllocationHandle create_multicast(unsigned devices, size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  CUmulticastObjectProp properties = multicast_of(devices, bytes);
  CHECK_EQUAL(cuMulticastCreate(&handle, &properties), cudaSuccess);
  return handle;
}

int is_multicast_supported() {
  int supported = -1;
  CHECK_EQUAL(cudaDeviceGetAttribute(&supported, 132, device_under_test), cudaSuccess);
  return supported;
}

void test_what_a_multicast_object_takes() {
  size_t before = free_bytes(), smallest = 0;
  CUmulticastObjectProp properties = multicast_of(2, 3 * granule), odd = multicast_of(2, 3),
                        many = multicast_of(99, granule);
  CUmemGenericAllocationHandle none = 0, object = create_multicast(2, 3 * granule), memory = create(2 * granule, 1),
                               unshared = create(granule);
  CHECK_EQUAL(is_multicast_supported(), 1);
  CHECK_EQUAL(cuMulticastGetGranularity(&smallest, &properties, 0), cudaSuccess);
  CHECK_EQUAL(smallest, granule);
  CHECK_EQUAL(before - free_bytes(), 3 * granule);  // of the memory alone
  CHECK_EQUAL(cuMulticastCreate(&none, &odd), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMulticastCreate(&none, &many), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMulticastBindMem(object, 0, memory, 0, granule, 0), cudaErrorInvalidValue);  // device not added
  CHECK_EQUAL(cuMulticastAddDevice(object, device_under_test), cudaSuccess);
  CHECK_EQUAL(cuMulticastAddDevice(object, device_under_test), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMulticastAddDevice(object, 0), cudaSuccess);
  CHECK_EQUAL(cuMulticastAddDevice(object, 2), cudaErrorInvalidValue);  // of two
  CHECK_EQUAL(cuMulticastAddDevice(memory, 2), cudaErrorInvalidValue);

  CHECK_EQUAL(cuMulticastBindMem(object, 0, memory, 0, 3 * granule, 0), cudaErrorInvalidValue);  // has not so much
  CHECK_EQUAL(cuMulticastBindMem(object, 2 * granule, memory, 0, 2 * granule, 0), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMulticastBindMem(object, 0, object, 0, granule, 0), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMulticastBindMem(object, 0, unshared, 0, granule, 0), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMulticastBindMem(object, granule, memory, 0, 2 * granule, 0), cudaSuccess);
  CHECK_EQUAL(cuMulticastBindMem(object, 2 * granule, memory, 0, granule, 0), cudaErrorInvalidValue);  // is taken
  CHECK_EQUAL(cuMulticastUnbind(object, device_under_test, 0, granule), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMulticastUnbind(object, device_under_test, granule, 2 * granule), cudaSuccess);
  CHECK_EQUAL(cuMulticastUnbind(object, device_under_test, granule, 2 * granule), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMemRelease(object), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(object), cudaErrorInvalidValue);
  CHECK_EQUAL(cuMemRelease(memory), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(unshared), cudaSuccess);
  CHECK_EQUAL(free_bytes(), before);
}

// What is stored through it makes that of all who are bound unknown (which reads as 0), there and nowhere else.
void test_stores_through_a_multicast_address() {
  CUdeviceptr memory = reserve(2 * granule), all = reserve(2 * granule);
  CUmemGenericAllocationHandle object = create_multicast(1, 2 * granule), piece = create(2 * granule, 1);
  map(memory, 2 * granule, piece);
  CHECK_EQUAL(cuMulticastAddDevice(object, device_under_test), cudaSuccess);
  map(all, 2 * granule, object);
  CHECK_EQUAL(cuMulticastBindAddr(object, 0, memory + granule, granule, 0), cudaSuccess);
  write(memory + granule + 8, 5);
  write(memory + granule + 16, 6);
  write(memory + 8, 7);
  write(all + 8, 50);
  CHECK_EQUAL(read(memory + granule + 8), 0);
  CHECK_EQUAL(read(memory + granule + 16), 6);
  CHECK_EQUAL(read(memory + 8), 7);
  CHECK_EQUAL(read(all + 8), 0);
  CHECK_EQUAL(cuMemsetD8_v2(all, 1, granule), cudaSuccess);
  CHECK_EQUAL(read(memory + granule + 16), 0);
  write(memory + granule + 8, 9);
  CHECK_EQUAL(cuMulticastUnbind(object, device_under_test, 0, granule), cudaSuccess);
  write(all + 8, 51);
  CHECK_EQUAL(read(memory + granule + 8), 9);
  CHECK_EQUAL(cuMemUnmap(all, 2 * granule), cudaSuccess);
  CHECK_EQUAL(cuMemUnmap(memory, 2 * granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(object), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(piece), cudaSuccess);
}

void refuse() {
  CUmemGenericAllocationHandle none = 0;
  CUmulticastObjectProp properties = multicast_of(2, granule);
  CHECK_EQUAL(is_multicast_supported(), 0);
  CHECK_EQUAL(cuMulticastCreate(&none, &properties), 801);
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

// Two processes, each with a device of its own.
void give_multicast(int channel) {
  CUdeviceptr base = reserve(granule);
  CUmemGenericAllocationHandle object = create_multicast(2, granule), memory = create(granule, 1);
  int descriptor = -1;
  CHECK_EQUAL(cuMulticastAddDevice(object, device_under_test), cudaSuccess);
  CHECK_EQUAL(cuMemExportToShareableHandle(&descriptor, object, 1, 0), cudaSuccess);
  send_parcel(channel, {}, descriptor);
  close(descriptor);
  map(base, granule, memory);
  write(base + 8, 5);
  write(base + 16, 6);
  CHECK_EQUAL(cuMulticastBindMem(object, 0, memory, 0, granule, 0), cudaSuccess);
  take_turns(channel);  // bound
  take_turns(channel);  // the other has stored
  CHECK_EQUAL(read(base + 8), 0);
  CHECK_EQUAL(read(base + 16), 6);
  CHECK_EQUAL(cuMulticastUnbind(object, device_under_test, 0, granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(object), cudaSuccess);
}

void take_multicast(int channel) {
  int descriptor = -1;
  receive_parcel(channel, &descriptor);
  CUmemGenericAllocationHandle object = 0;
  CUmemAllocationProp properties{};
  auto as_pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(descriptor));
  CHECK_EQUAL(cuMemImportFromShareableHandle(&object, as_pointer, 1), cudaSuccess);
  close(descriptor);
  CHECK_EQUAL(cuMemGetAllocationPropertiesFromHandle(&properties, object), cudaErrorInvalidValue);  // no memory
  CHECK_EQUAL(cuMulticastAddDevice(object, device_under_test), cudaErrorInvalidValue);  // the giver has added it
  CHECK_EQUAL(cuMulticastAddDevice(object, 0), cudaSuccess);
  CUdeviceptr all = reserve(granule);
  map(all, granule, object);
  take_turns(channel);
  write(all + 8, 50);
  take_turns(channel);
  CHECK_EQUAL(cuMemUnmap(all, granule), cudaSuccess);
  CHECK_EQUAL(cuMemRelease(object), cudaSuccess);
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
  give_multicast(ends[0]);
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
    take_multicast(std::stoi(arguments[2]));
    return checks_failed();
  }
  if (count == 2) {
    refuse();
    return checks_failed();
  }
  test_what_counts();
  test_addresses();
  test_pointers_and_copies_across_pieces();
  test_access_and_handles();
  test_two_addresses_of_one_piece();
  test_what_a_multicast_object_takes();
  test_stores_through_a_multicast_address();
  return checks_failed();
}
