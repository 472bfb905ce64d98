#include "lane.h"

#include <pthread.h>
#include <unistd.h>

#include <string_view>

#include "recorder_core.h"

namespace phantora {

namespace {

// A thread tells what it is by its name, which PyTorch gives before the thread's first CUDA call.
Role role_of_this_thread() {
  if (gettid() == getpid()) return Role::main;
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  std::string_view text(name);
  if (text.starts_with("pt_autograd_")) return Role::main;
  if (text.starts_with("pt_nccl_")) return Role::observer;
  return Role::side;
}

}  // namespace

ThreadState::ThreadState() : role(role_of_this_thread()) {}

ThreadState::~ThreadState() {
  if (own && own->open) Recorder::instance().end_lane(*own);
}

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

}  // namespace phantora
