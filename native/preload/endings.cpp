// What a process of the job learns of the end of its children. A launcher of MPI programs keeps to itself how a rank
// has ended; the C library's waits are where it hears it. Failures are noted in the run's folder, one line "PID CODE"
// each, the code negative for a signal (phantora_py/endings.py).
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Empty outside a run. Found before main(): a wait may come from a signal handler, where getenv must not be called.
char file[PATH_MAX];

__attribute__((constructor)) void find_file() {
  const char* folder = getenv("PHANTORA_RUN_DIR");
  if (folder && snprintf(file, sizeof file, "%s/endings", folder) >= static_cast<int>(sizeof file)) file[0] = '\0';
}

// Best effort: where it cannot be written the report does not know the code, and says so.
void note(pid_t pid, int code) {
  int caller_errno = errno;
  int target = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (target >= 0) {
    char line[32];
    int length = snprintf(line, sizeof line, "%d %d\n", pid, code);
    ssize_t written = write(target, line, static_cast<size_t>(length));
    static_cast<void>(written);
    close(target);
  }
  errno = caller_errno;
}

pid_t noted(pid_t pid, const int* status) {
  if (pid <= 0 || !file[0]) return pid;
  if (WIFSIGNALED(*status)) note(pid, -WTERMSIG(*status));
  if (WIFEXITED(*status) && WEXITSTATUS(*status) != 0) note(pid, WEXITSTATUS(*status));
  return pid;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) pid_t wait4(pid_t pid, int* status, int options, rusage* usage) {
  static auto real = next<pid_t (*)(pid_t, int*, int, rusage*)>("wait4");
  int own;
  if (!status) status = &own;
  return noted(real(pid, status, options, usage), status);
}

__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int* status, int options) {
  return wait4(pid, status, options, nullptr);
}

__attribute__((visibility("default"))) pid_t wait(int* status) { return wait4(-1, status, 0, nullptr); }

__attribute__((visibility("default"))) pid_t wait3(int* status, int options, rusage* usage) {
  return wait4(-1, status, options, usage);
}

__attribute__((visibility("default"))) int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  static auto real = next<int (*)(idtype_t, id_t, siginfo_t*, int)>("waitid");
  int result = real(type, id, info, options);
  if (result != 0 || !info || !info->si_pid || !file[0]) return result;
  if (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED) note(info->si_pid, -info->si_status);
  if (info->si_code == CLD_EXITED && info->si_status != 0) note(info->si_pid, info->si_status);
  return result;
}

}  // extern "C"
