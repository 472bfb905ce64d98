/* Plain C entry points of libphantora_rt.so, for callers that find them with dlsym or ctypes. Times are nanoseconds of
 * virtual time since the start of the job. All are safe to call in any process and thread; in processes that are not
 * ranks the clock runs with real time and nothing is recorded. */
#ifndef PHANTORA_CAPI_H_
#define PHANTORA_CAPI_H_

#include <pthread.h>
#include <stdint.h>

#include "phantora/export.h"

#ifdef __cplusplus
extern "C" {
#endif

struct PhantoraOpScope; /* phantora::OpScope */

PHANTORA_EXPORT int phantora_active(void);
PHANTORA_EXPORT int64_t phantora_now_ns(void);   /* never falls on one thread */
PHANTORA_EXPORT int64_t phantora_epoch_ns(void); /* wall-clock time of virtual time 0 */
PHANTORA_EXPORT void phantora_advance_ns(int64_t ns);
PHANTORA_EXPORT void phantora_sleep_ns(int64_t ns);

PHANTORA_EXPORT void phantora_push_op(struct PhantoraOpScope* scope);
PHANTORA_EXPORT void phantora_pop_op(struct PhantoraOpScope* scope);

/* An optimizer's step ended (1) or began (2); `stream` is the CUDA stream (handle) that it uses, `optimizer` a number
 * of the caller's for it (0: not known). */
PHANTORA_EXPORT void phantora_mark_step(void* stream, int what, uint64_t optimizer);
/* PyTorch's allocated and reserved bytes on the current device. */
PHANTORA_EXPORT void phantora_memory(uint64_t allocated_bytes, uint64_t reserved_bytes);

/* Figures of counters.h by name: 1 and *value, or 0. */
PHANTORA_EXPORT int phantora_counter(const char* name, uint64_t* value);
/* What the calling thread waits for outside CUDA and NCCL, "" when it has come (recorder.h, go_outside). */
PHANTORA_EXPORT void phantora_outside(const char* what);
/* The calling thread is about to do `what` together with these ranks of the job (`size` of them, in the same order on
 * all); the clocks of all become that of the last one to come, at phantora_met. In between it calls nothing else here.
 */
PHANTORA_EXPORT uint64_t phantora_meet(const char* what, const int* ranks, int size);
PHANTORA_EXPORT void phantora_met(uint64_t meeting);
/* What the compiler of a generated kernel tells of it (kernel_description.h); `function` is its CUfunction. 1 if it
 * fits the kernel, else 0. */
PHANTORA_EXPORT int phantora_describe_kernel(const void* function, const char* text);
/* Sends what is buffered. */
PHANTORA_EXPORT void phantora_flush(void);

/* For watchdogs.h: a thread for a watchdog is about to be created; it begins; it ends. It is about to sleep, and has
 * woken up; 1 if it must look at its work, whether the time is up or not. */
PHANTORA_EXPORT void phantora_watchdog_starts(void);
PHANTORA_EXPORT void phantora_watchdog_begins(void);
PHANTORA_EXPORT void phantora_watchdog_ends(void);
PHANTORA_EXPORT int phantora_watchdog_sleeps(pthread_cond_t* condition);
PHANTORA_EXPORT int phantora_watchdog_wakes(void);

#ifdef __cplusplus
}
#endif
#endif /* PHANTORA_CAPI_H_ */
