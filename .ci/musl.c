/* What WormholeCLinux does in its own way where the C library is Musl: prints what is wrong. */
#define _GNU_SOURCE
#include "WormholeCLinux.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int failures;

static void expect(int holds, const char *what) {
  if (holds) return;
  printf("error: %s\n", what);
  failures++;
}

static void *note(void *argument) {
  *(uintptr_t *)argument = linux_current_thread();
  return NULL;
}

/* Whether a child has the descriptor. */
static int inherits(int number, int closes_others) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", number);
  char *words[] = {"test", "-e", path, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (closes_others) expect(linux_close_others(&actions) == 0, "the others cannot be closed");
  pid_t child;
  int status = -1;
  expect(posix_spawn(&child, "/usr/bin/test", &actions, NULL, words, environ) == 0, "no child");
  waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  return status == 0;
}

int main(void) {
  int one = open("one", O_CREAT | O_WRONLY, 0600);
  expect(write(one, "1", 1) == 1 && close(open("two", O_CREAT, 0600)) == 0, "no files");
  expect(linux_renameat2(AT_FDCWD, "one", AT_FDCWD, "two", linux_rename_noreplace) == -1,
         "a file is replaced");
  expect(linux_renameat2(AT_FDCWD, "one", AT_FDCWD, "two", linux_rename_exchange) == 0,
         "two files are not exchanged");
  char byte = 0;
  expect(pread(open("two", O_RDONLY), &byte, 1, 0) == 1 && byte == '1', "the wrong file");
  expect(inherits(one, 0), "no descriptor is inherited at all");
  expect(!inherits(one, 1), "a descriptor is inherited");
  uintptr_t thread = 0, noted = 0;
  expect(linux_start_thread(&thread, note, &noted) == 0, "no thread");
  linux_join_thread(thread);
  expect(noted == thread && thread != linux_current_thread(), "another thread");
  return failures != 0;
}
