#define _GNU_SOURCE
#include "WormholeCLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Descriptors that a forked child of this process must not have.

   The mutex is taken before a fork and released on both sides after the fork, so no fork happens
   in the middle of a change made here. No slow call runs under the mutex: a file is opened first
   and noted afterwards, and if a fork happened in between, the file has to be opened again. The
   child runs only dup3 and stores to this table: a child of a process with threads may do no
   more. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *noted;       /* by descriptor: whether it is noted */
static size_t room;          /* the number of descriptors that fit into the table */
static unsigned forks;       /* the number of forks so far */
static int harmless = -1;    /* a handle without rights, for the numbers in the child */
static int is_installed;

/* The number of this process among its copies: see linux_copy_number. */
uint32_t *linux_copy_page;
static uint32_t unwiped;     /* if no memory is wiped on fork: wiped by the child itself */
static uint32_t latest;      /* the highest number of this process and its ancestors */

static void before_fork(void) {
  pthread_mutex_lock(&mutex);
  forks++;
}

static void after_fork_in_parent(void) { pthread_mutex_unlock(&mutex); }

static void after_fork_in_child(void) {
  int error = errno;
  unwiped = 0;
  for (size_t i = 0; i < room; i++) {
    if (!noted[i]) continue;
    /* The number stays taken, so that a close of the number in the child closes no unrelated
       file. */
    if (dup3(harmless, (int)i, O_CLOEXEC) == -1) close((int)i);
    noted[i] = 0;
  }
  errno = error;
  pthread_mutex_unlock(&mutex);
}

static int install(void) {
  if (is_installed) return 0;
  int error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (error != 0) {
    errno = error;
    return -1;
  }
  is_installed = 1;
  return 0;
}

/* Releases the mutex, and preserves errno. */
static int unlocked(int result) {
  int error = errno;
  pthread_mutex_unlock(&mutex);
  errno = error;
  return result;
}

int linux_count_forks(unsigned *count) {
  pthread_mutex_lock(&mutex);
  if (harmless == -1) harmless = open("/", O_PATH | O_CLOEXEC);
  if (harmless == -1 || install() == -1) return unlocked(-1);
  *count = forks;
  return unlocked(0);
}

int linux_note_for_forks(int descriptor, unsigned count) {
  pthread_mutex_lock(&mutex);
  if (count != forks) return unlocked(0);
  if ((size_t)descriptor >= room) {
    size_t wider = room < 64 ? 64 : room;
    while ((size_t)descriptor >= wider) wider *= 2;
    uint8_t *table = realloc(noted, wider);
    if (table == NULL) return unlocked(-1);
    memset(table + room, 0, wider - room);
    noted = table;
    room = wider;
  }
  noted[descriptor] = 1;
  return unlocked(1);
}

int linux_close_noted(int descriptor) {
  /* Closing a file may take as long as its file system likes, and no fork must wait for that. So
     dup3 first replaces the file by one that closes at once. */
  int result = dup3(harmless, descriptor, O_CLOEXEC) == -1 ? -1 : 0;
  int error = errno;
  pthread_mutex_lock(&mutex);
  if (descriptor >= 0 && (size_t)descriptor < room) noted[descriptor] = 0;
  int is_closed = close(descriptor) == 0;
  pthread_mutex_unlock(&mutex);
  errno = error;
  return is_closed ? 0 : result;
}

static uint32_t *wiped_page(void) {
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (madvise(page, size, MADV_WIPEONFORK) == 0) return page;
  munmap(page, size);
  return NULL;
}

static uint32_t *number_by_hand(void) {
  pthread_mutex_lock(&mutex);
  install();
  pthread_mutex_unlock(&mutex);
  return &unwiped;
}

uint32_t linux_find_copy_number(void) {
  int error = errno;
  uint32_t *page = __atomic_load_n(&linux_copy_page, __ATOMIC_ACQUIRE);
  if (page == NULL) {
    uint32_t *made = wiped_page();
    if (made == NULL) made = number_by_hand();
    /* If several threads get here, one is first; an unused page does no harm. */
    if (__atomic_compare_exchange_n(
            &linux_copy_page, &page, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      page = made;
  }
  /* Incremented before use: a child forked in between continues the count. */
  uint32_t number = __atomic_add_fetch(&latest, 1, __ATOMIC_ACQ_REL), none = 0;
  errno = error;
  return __atomic_compare_exchange_n(page, &none, number, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
             ? number : none;
}

/* Runs before any thread is started: if two threads made the first call at once, one would take
   the second number, which marks a forked child. */
__attribute__((constructor)) static void number_this_process(void) { linux_find_copy_number(); }

void linux_number_copies_by_hand(void) {
  uint32_t number = linux_copy_number();
  __atomic_store_n(number_by_hand(), number, __ATOMIC_RELEASE);
  __atomic_store_n(&linux_copy_page, &unwiped, __ATOMIC_RELEASE);
}
