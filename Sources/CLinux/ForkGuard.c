#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Descriptors that a forked copy of this process must not have.

   The mutex is taken before a fork and given back on both sides of it, so no fork comes between
   the opening of a descriptor and its being noted here, or between its closing and its being
   forgotten. What runs in the child is dup3 and stores to this table: a child of a process with
   threads may do no more. */
enum { capacity = 1024 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int noted[capacity];  /* the descriptor and one; 0: free */
static int used;             /* beyond this, all are free */
static int harmless = -1;    /* a name without rights, for the numbers in the child */
static int is_installed;

static void before_fork(void) { pthread_mutex_lock(&mutex); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&mutex); }

static void after_fork_in_child(void) {
  int error = errno;
  for (int i = 0; i < used; i++) {
    if (noted[i] == 0) continue;
    /* The number stays taken, so that whoever closes it here closes nobody else's file. */
    if (dup3(harmless, noted[i] - 1, O_CLOEXEC) == -1) close(noted[i] - 1);
    noted[i] = 0;
  }
  used = 0;
  errno = error;
  pthread_mutex_unlock(&mutex);
}

static int install(void) {
  if (harmless == -1) harmless = open("/", O_PATH | O_CLOEXEC);
  if (harmless == -1) return -1;
  if (is_installed) return 0;
  int error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (error != 0) {
    errno = error;
    return -1;
  }
  is_installed = 1;
  return 0;
}

int linux_keep_forks_out(void) {
  pthread_mutex_lock(&mutex);
  if (install() == 0) return 0;
  int error = errno;
  pthread_mutex_unlock(&mutex);
  errno = error;
  return -1;
}

void linux_let_forks_in(void) { pthread_mutex_unlock(&mutex); }

int linux_note_for_forks(int descriptor) {
  for (int i = 0; i < capacity; i++) {
    if (noted[i] != 0) continue;
    noted[i] = descriptor + 1;
    if (i >= used) used = i + 1;
    return 0;
  }
  errno = EMFILE;
  return -1;
}

void linux_forget_for_forks(int descriptor) {
  for (int i = 0; i < used; i++) {
    if (noted[i] == descriptor + 1) noted[i] = 0;
  }
}

void *linux_wiped_in_copies(void) {
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (madvise(page, size, MADV_WIPEONFORK) == 0) return page;
  int error = errno;
  munmap(page, size);
  errno = error;
  return NULL;
}
