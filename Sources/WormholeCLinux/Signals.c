#include "WormholeCLinux.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

void linux_set_signal(int number, int is_ignored) {
  signal(number, is_ignored ? SIG_IGN : SIG_DFL);
}

int linux_ignores_signal(int number) {
  struct sigaction action;
  return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Signals that a thread waits for, in place of their action. The handler does only what a handler
   may: it sets a bit and posts a semaphore.

   A release restores the action first, and clears the signal's bit in `caught` afterwards. So the
   handler finds that bit, and the signal is left to the thread; or the bit of the signal in
   `pending` is taken either by the release or by the handler, and the signal is raised again. */
enum { greatest = 64 };
static sem_t arrivals;
static uint64_t caught, pending;
/* Signals that were raised again since their last catch. */
static uint64_t raised;
static pid_t owner;
static struct sigaction earlier[greatest + 1];

static uint64_t bit(int number) { return (uint64_t)1 << (number - 1); }

static int add_bit(uint64_t *bits, int number) {
  return (__atomic_fetch_or(bits, bit(number), __ATOMIC_SEQ_CST) & bit(number)) != 0;
}

static int take_bit(uint64_t *bits, int number) {
  return (__atomic_fetch_and(bits, ~bit(number), __ATOMIC_SEQ_CST) & bit(number)) != 0;
}

static int is_caught(int number) {
  return (__atomic_load_n(&caught, __ATOMIC_SEQ_CST) & bit(number)) != 0;
}

static void note(int number);

static void restore(int number) {
  struct sigaction action;
  /* A handler that the program has installed in the meantime stays. */
  if (sigaction(number, NULL, &action) == 0 && action.sa_handler == note)
    sigaction(number, &earlier[number], NULL);
}

/* Raises a signal that no thread waits for, whose earlier action is back in its place.

   The program may have put `note` back since, from a copy of the action that it had made during
   the catch: then the earlier action replaces it. Or a handler of the program calls `note` as the
   handler before it, and has had the signal. A raise alone would lead to `note` again in both
   cases, for ever. The latter handler may be the earlier action too, if it was there at the next
   catch, and nothing shows who has called `note`: so one raise must do until another catch. */
static void pass_on(int number) {
  struct sigaction action;
  if (sigaction(number, NULL, &action) == -1) return;
  int is_note = action.sa_handler == note;
  if (is_note && !is_caught(number)) restore(number);
  if (is_note)
    raise(number);
  else if (action.sa_handler == earlier[number].sa_handler && !add_bit(&raised, number))
    raise(number);
}

static void note(int number) {
  int error = errno;
  if (getpid() != owner) {
    /* In a forked child nobody waits: the signal has its default action once the handler has
       returned. */
    signal(number, SIG_DFL);
    raise(number);
  } else {
    add_bit(&pending, number);
    if (is_caught(number))
      sem_post(&arrivals);
    else if (take_bit(&pending, number))
      pass_on(number);
  }
  errno = error;
}

int linux_begin_awaiting_signals(void) {
  if (owner == getpid()) return 0;
  if (sem_init(&arrivals, 0, 0) == -1) return -1;
  /* A forked child has inherited the handlers, but no thread that waits. */
  for (int number = 1; number <= greatest; number++)
    if (take_bit(&caught, number)) restore(number);
  pending = raised = 0;
  owner = getpid();
  return 0;
}

int linux_catch_signal(int number) {
  if (number < 1 || number > greatest) {
    errno = EINVAL;
    return -1;
  }
  struct sigaction action, found;
  memset(&action, 0, sizeof action);
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  take_bit(&raised, number);
  add_bit(&caught, number);
  if (sigaction(number, &action, &found) == 0) {
    /* `note` is no earlier action, although the program may have put it back. */
    if (found.sa_handler != note) earlier[number] = found;
    return 0;
  }
  take_bit(&caught, number);
  return -1;
}

void linux_release_signal(int number) {
  restore(number);
  take_bit(&caught, number);
  if (take_bit(&pending, number)) kill(getpid(), number);
}

uint64_t linux_await_signals(void) {
  while (sem_wait(&arrivals) == -1 && errno == EINTR) {}
  return __atomic_exchange_n(&pending, 0, __ATOMIC_SEQ_CST);
}

void linux_raise_signals(uint64_t signals) {
  for (int number = 1; number <= greatest; number++)
    if (signals & bit(number)) kill(getpid(), number);
}

void linux_end_awaiting_signals(void) { sem_post(&arrivals); }
