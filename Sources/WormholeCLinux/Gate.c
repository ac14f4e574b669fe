#include "WormholeCLinux.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

struct linux_gate {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  /* The numbers of the process that uses the gate, and of the process that made the gate: see
     linux_copy_number. */
  uint32_t user, maker;
};

/* Set in a gate's user while a forked child takes the gate over. */
enum { taking_over = 0x80000000 };

static void set_up(struct linux_gate *gate) {
  pthread_mutex_init(&gate->mutex, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&gate->condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

struct linux_gate *linux_gate_make(void) {
  struct linux_gate *gate = malloc(sizeof *gate);
  if (gate == NULL) abort();
  set_up(gate);
  gate->user = gate->maker = linux_copy_number();
  return gate;
}

/* In a forked child, an inherited gate may be locked by a thread, or waited for by a thread, that
   does not exist in the child: the child would wait forever. So the child initializes the gate
   again. */
static void take_over(struct linux_gate *gate) {
  uint32_t here = linux_copy_number(), user;
  while ((user = __atomic_load_n(&gate->user, __ATOMIC_ACQUIRE)) != here) {
    if (user == (here | taking_over)) {
      sched_yield();
    } else if (__atomic_compare_exchange_n(
                   &gate->user, &user, here | taking_over, 0, __ATOMIC_ACQ_REL,
                   __ATOMIC_ACQUIRE)) {
      set_up(gate);
      __atomic_store_n(&gate->user, here, __ATOMIC_RELEASE);
      return;
    }
  }
}

static inline int is_in_use_here(struct linux_gate *gate) {
  return __atomic_load_n(&gate->user, __ATOMIC_ACQUIRE) == linux_copy_number();
}

void linux_gate_free(struct linux_gate *gate) {
#ifdef FAULT_POINTS
  turnstile_forget_lock(&gate->mutex);
#endif
  if (is_in_use_here(gate)) {
    pthread_cond_destroy(&gate->condition);
    pthread_mutex_destroy(&gate->mutex);
  }
  free(gate);
}

void linux_gate_lock(struct linux_gate *gate) {
  if (!is_in_use_here(gate)) take_over(gate);
#ifdef FAULT_POINTS
  if (turnstile_plays()) {
    turnstile_lock(&gate->mutex);
    return;
  }
#endif
  pthread_mutex_lock(&gate->mutex);
}

void linux_gate_unlock(struct linux_gate *gate) {
  pthread_mutex_unlock(&gate->mutex);
#ifdef FAULT_POINTS
  if (turnstile_plays()) turnstile_unlocked(&gate->mutex);
#endif
}

void linux_gate_broadcast(struct linux_gate *gate) {
  if (!is_in_use_here(gate)) take_over(gate);
  pthread_cond_broadcast(&gate->condition);
#ifdef FAULT_POINTS
  if (turnstile_plays()) turnstile_broadcast(&gate->condition);
#endif
}

int linux_gate_is_inherited(struct linux_gate *gate) { return gate->maker != linux_copy_number(); }

int linux_gate_wait(struct linux_gate *gate, int64_t until) {
#ifdef FAULT_POINTS
  if (turnstile_plays()) {
    turnstile_wait(&gate->condition, &gate->mutex, until);
    return 1;
  }
#endif
  if (linux_gate_is_inherited(gate)) return 0;
  if (until < 0) {
    pthread_cond_wait(&gate->condition, &gate->mutex);
    return 1;
  }
  struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
  pthread_cond_timedwait(&gate->condition, &gate->mutex, &time);
  return 1;
}
