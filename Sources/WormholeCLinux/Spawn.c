/* Starting a program that belongs to no terminal and inherits as little as can be.
   posix_spawn can set neither the umask nor the nice value nor limits, and set in this process they
   would be in force for its other threads for a while. */
#define _GNU_SOURCE
#include "WormholeCLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a soft limit is set to; a process may not raise its hard limits. */
static void set_limit(int resource, rlim_t wanted) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) == -1) return;
  limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
  setrlimit(resource, &limit);
}

static void close_from(unsigned first) {
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  /* Kernels before 5.9, and sandboxes. */
  struct rlimit limit;
  rlim_t end = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
  for (rlim_t next = first; next < end && next < 1 << 20; next++) close((int)next);
}

/* Makes this process, just copied, what the program begins with; returns only if that fails. */
static void become(
    const char *program, char *const words[], char *const settings[], const char *directory) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  if (setsid() == -1 || chdir(directory) == -1) return;
  int nothing = open("/dev/null", O_RDWR | O_NOCTTY);
  if (nothing == -1) return;
  for (int number = 0; number < 3; number++)
    if (dup2(nothing, number) == -1) return;
  if (nothing > 2) close(nothing);
  umask(022);
  /* Only with privilege can it become nicer to itself. */
  setpriority(PRIO_PROCESS, 0, 0);
  set_limit(RLIMIT_CPU, RLIM_INFINITY);
  set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
  set_limit(RLIMIT_DATA, RLIM_INFINITY);
  set_limit(RLIMIT_AS, RLIM_INFINITY);
  set_limit(RLIMIT_STACK, 8 << 20);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_NOFILE, 1024);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execve(program, words, settings);
}

/* vfork, as no memory is copied then and no handler of fork runs. Until exec the child shares this
   process's memory, and so makes system calls alone; signals are held back, so that no handler of
   this process runs in it. How it failed comes through a pipe, also where vfork is made a fork. */
int linux_spawn_alone(
    pid_t *process, const char *program, char *const words[], char *const settings[],
    const char *directory) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) == -1) return errno;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pid_t child = vfork();
  if (child == 0) {
    /* Behind what the program keeps, and before all that is closed. */
    int report = ends[1];
    if (report == 3 || dup3(report, 3, O_CLOEXEC) == 3) {
      report = 3;
      close_from(4);
      become(program, words, settings, directory);
    }
    int reason = errno;
    ssize_t written = write(report, &reason, sizeof reason);
    (void)written;
    _exit(127);
  }
  int failure = child == -1 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(ends[1]);
  if (child > 0) {
    ssize_t count;
    do count = read(ends[0], &failure, sizeof failure);
    while (count == -1 && errno == EINTR);
    if (count != sizeof failure) failure = 0;
    if (failure != 0) while (waitpid(child, NULL, 0) == -1 && errno == EINTR) {}
  }
  close(ends[0]);
  *process = child;
  return failure;
}
