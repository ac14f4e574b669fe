#define _GNU_SOURCE
#include "WormholeCTesting.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void wait_for_the_end(void) {
  alarm(60);
  for (;;) pause();
}

int forking_copy(void) {
  int process = fork();
  if (process != 0) return process;
  wait_for_the_end();
  return 0;
}

int forking_copy_after(void (*body)(void)) {
  int process = fork();
  if (process != 0) return process;
  body();
  wait_for_the_end();
  return 0;
}

int forking_copy_of_copy(int number, const char *path) {
  int ends[2], process = -1;
  if (pipe(ends) == -1) return -1;
  int copy = fork();
  if (copy == 0) {
    int file = open(path, O_RDONLY);
    dup2(file, number);
    process = fork();
    if (process == 0) wait_for_the_end();
    write(ends[1], &process, sizeof process);
    _exit(0);
  }
  close(ends[1]);
  if (read(ends[0], &process, sizeof process) != sizeof process) process = -1;
  close(ends[0]);
  return process;
}

/* Whether each other thread of this process sleeps; also true where /proc cannot tell. */
static int others_sleep(void) {
  DIR *threads = opendir("/proc/self/task");
  if (!threads) return 1;
  int sleep = 1;
  for (struct dirent *thread; sleep && (thread = readdir(threads));) {
    char path[64], text[512];
    long number = strtol(thread->d_name, NULL, 10);
    if (number == 0 || number == syscall(SYS_gettid)) continue;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", number);
    int file = open(path, O_RDONLY);
    ssize_t length = file == -1 ? 0 : read(file, text, sizeof text - 1);
    if (file != -1) close(file);
    text[length > 0 ? length : 0] = 0;
    char *name = strrchr(text, ')');
    sleep = !name || strncmp(name, ") R", 3) != 0;
  }
  closedir(threads);
  return sleep;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Until the other threads have slept for a hundredth of a second, for two seconds at most: a thread
   that runs may have a lock of the Swift runtime, which no thread of the copy would give back. */
static void wait_for_others(void) {
  double begin = seconds(), rest = begin;
  while (seconds() - begin < 2 && seconds() - rest < 0.01) {
    if (!others_sleep()) rest = seconds();
    sched_yield();
  }
}

int forking_do(int by_clone, void (*body)(void)) {
  wait_for_others();
  int process = by_clone ? (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
  if (process == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  if (process == -1 || waitpid(process, &status, 0) != process) return -1;
  return status == 0 ? 0 : -1;
}

int forking_become(unsigned user, unsigned group) {
  if (setgroups(0, NULL) == -1 || setresgid(group, group, group) == -1) return -1;
  return setresuid(user, user, user);
}

int forking_refuse(int error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static int limit(int resource, unsigned long count) {
  struct rlimit limit = {.rlim_cur = count, .rlim_max = count};
  return setrlimit(resource, &limit);
}

int forking_limit_descriptors(unsigned long count) { return limit(RLIMIT_NOFILE, count); }

int forking_limit_threads(unsigned long count) { return limit(RLIMIT_NPROC, count); }

void testing_end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

int testing_cut_file_system(const char *path) {
  /* XFS_IOC_GOINGDOWN and EXT4_IOC_SHUTDOWN have the same number; 2: do not flush the log. */
  uint32_t without_flushing = 2;
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory == -1) return -1;
  int result = ioctl(directory, _IOR('X', 125, uint32_t), &without_flushing);
  close(directory);
  return result;
}
