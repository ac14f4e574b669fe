#define _GNU_SOURCE
#include "CForking.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

int forking_do(int by_clone, void (*body)(void)) {
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
