#include "WormholeCTesting.h"

#include <stddef.h>
#include <stdint.h>

/* Swift's runtime calls the hook for each job of a task that may run on any thread. */

#define SWIFT_CALL __attribute__((swiftcall))

typedef SWIFT_CALL void (*enqueue_job)(void *job);
extern SWIFT_CALL void (*swift_task_enqueueGlobal_hook)(void *job, enqueue_job original);
extern SWIFT_CALL void swift_job_run(void *job, void *executor, uintptr_t implementation);

static void (*taker)(void *);

static SWIFT_CALL void take_job(void *job, enqueue_job original) {
  (void)original;
  taker(job);
}

void testing_take_jobs(void (*take)(void *job)) {
  taker = take;
  swift_task_enqueueGlobal_hook = take_job;
}

void testing_run_job(void *job) { swift_job_run(job, NULL, 0); }
