#define _GNU_SOURCE
#include "WormholeCFloor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { largest = 1 << 20 };
static const int always = O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;

struct value {
  size_t size;
  union {
    int64_t number;
    char bytes[largest];
  };
};
static _Thread_local struct value value;

static int fail_but_unlock(struct floor_slot *slot) {
  int error = errno;
  flock(slot->lock, LOCK_UN);
  errno = error;
  return -1;
}

static int read_value(struct floor_slot *slot) {
  struct stat status;
  int file = openat(slot->directory, "value.plist", O_RDONLY | O_NONBLOCK | always);
  if (file == -1) return -1;
  int failed = fstat(file, &status) == -1 || status.st_size > largest
               || pread(file, value.bytes, (size_t)status.st_size, 0) != status.st_size;
  value.size = (size_t)status.st_size;
  close(file);
  return failed ? -1 : 0;
}

static int write_value(int directory, const char *name) {
  int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | always, 0600);
  if (file == -1) return -1;
  int failed = write(file, value.bytes, value.size) != (ssize_t)value.size;
  close(file);
  return failed ? -1 : 0;
}

static int make_directory(int parent, const char *name) {
  if (mkdirat(parent, name, 0700) == -1 && errno != EEXIST) return -1;
  return openat(parent, name, O_RDONLY | O_DIRECTORY | always);
}

int floor_open(struct floor_slot *slot, const char *path, size_t size) {
  memset(slot, 0, sizeof *slot);
  slot->directory = make_directory(AT_FDCWD, path);
  if (slot->directory == -1) return -1;
  slot->locks = make_directory(slot->directory, "lock");
  if (slot->locks == -1) return -1;
  slot->lock = openat(slot->locks, "1", O_RDWR | O_CREAT | always, 0600);
  slot->staging = make_directory(slot->locks, "1.d");
  if (slot->lock == -1 || slot->staging == -1) return -1;
  memset(&value, 0, sizeof value);
  value.size = size < sizeof value.number ? sizeof value.number : size;
  if (write_value(slot->directory, "value.plist") == -1 && errno != EEXIST) return -1;
  return 0;
}

void floor_close(struct floor_slot *slot) {
  close(slot->staging);
  close(slot->lock);
  close(slot->locks);
  close(slot->directory);
}

static int lock_and_mark(struct floor_slot *slot) {
  if (flock(slot->lock, LOCK_EX) == -1) return -1;
  slot->mark[4] += 1;
  if (pwrite(slot->lock, slot->mark, sizeof slot->mark, 0) != sizeof slot->mark)
    return fail_but_unlock(slot);
  return 0;
}

int floor_lock(struct floor_slot *slot) {
  return lock_and_mark(slot) == -1 ? -1 : flock(slot->lock, LOCK_UN);
}

int floor_update(struct floor_slot *slot) {
  struct stat status;
  if (flock(slot->lock, LOCK_EX) == -1) return -1;
  if (fstatat(slot->locks, "2", &status, AT_SYMLINK_NOFOLLOW) != -1) return fail_but_unlock(slot);
  slot->mark[4] += 1;
  if (pwrite(slot->lock, slot->mark, sizeof slot->mark, 0) != sizeof slot->mark
      || read_value(slot) == -1)
    return fail_but_unlock(slot);
  value.number += 1;
  if (write_value(slot->staging, "next") == -1
      || renameat2(slot->staging, "next", slot->directory, "value.plist", RENAME_EXCHANGE) == -1
      || unlinkat(slot->staging, "next", 0) == -1)
    return fail_but_unlock(slot);
  return flock(slot->lock, LOCK_UN);
}

int floor_replace(struct floor_slot *slot) {
  if (flock(slot->lock, LOCK_EX) == -1) return -1;
  if (read_value(slot) == -1) return fail_but_unlock(slot);
  value.number += 1;
  if (write_value(slot->staging, "next") == -1
      || renameat(slot->staging, "next", slot->directory, "value.plist") == -1)
    return fail_but_unlock(slot);
  return flock(slot->lock, LOCK_UN);
}

int floor_access(struct floor_slot *slot) {
  if (write_value(slot->staging, "next") == -1
      || renameat(slot->staging, "next", slot->directory, "access") == -1)
    return -1;
  return unlinkat(slot->directory, "access", 0);
}

int64_t floor_number(struct floor_slot *slot) { return read_value(slot) == -1 ? -1 : value.number; }

int floor_bell_open(struct floor_bell *bell, const char *path) {
  bell->directory = make_directory(AT_FDCWD, path);
  if (bell->directory == -1) return -1;
  bell->staging = make_directory(bell->directory, "staging");
  if (bell->staging == -1) return -1;
  memset(&value, 0, sizeof value);
  value.size = sizeof value.number;
  if (write_value(bell->directory, "value.plist") == -1 && errno != EEXIST) return -1;
  bell->notices = inotify_init1(IN_CLOEXEC);
  if (bell->notices == -1) return -1;
  return inotify_add_watch(bell->notices, path, IN_MOVED_TO) == -1 ? -1 : 0;
}

void floor_bell_close(struct floor_bell *bell) {
  close(bell->notices);
  close(bell->staging);
  close(bell->directory);
}

int floor_ring(struct floor_bell *bell, int64_t number) {
  value.number = number;
  value.size = sizeof value.number;
  if (write_value(bell->staging, "next") == -1
      || renameat2(bell->staging, "next", bell->directory, "value.plist", RENAME_EXCHANGE) == -1)
    return -1;
  return unlinkat(bell->staging, "next", 0);
}

int64_t floor_hear(struct floor_bell *bell, int64_t after) {
  struct floor_slot slot = {.directory = bell->directory};
  char notices[4096];
  while (1) {
    if (read(bell->notices, notices, sizeof notices) <= 0 || read_value(&slot) == -1) return -1;
    if (value.number > after) return value.number;
  }
}

int floor_spread(const char *directory) {
  int opened = open(directory, O_RDONLY | O_DIRECTORY | always);
  if (opened == -1) return -1;
  /* The numbers of the calls are those of a long, but the kernel copies an int. */
  int flags = 0;
  int failed = ioctl(opened, FS_IOC_GETFLAGS, &flags) == -1;
  flags |= FS_TOPDIR_FL;
  failed = failed || ioctl(opened, FS_IOC_SETFLAGS, &flags) == -1;
  int error = errno;
  close(opened);
  errno = error;
  return failed ? -1 : 0;
}

int floor_pin(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int each = 0; each < CPU_SETSIZE; each++)
    if (processor < 0 || each == processor) CPU_SET(each, &one);
  if (sched_setaffinity(0, sizeof one, &one) == -1) return -1;
  /* New threads inherit the binding, but the process has older threads too. */
  DIR *threads = opendir("/proc/self/task");
  if (!threads) return -1;
  for (struct dirent *entry; (entry = readdir(threads));) {
    int thread = atoi(entry->d_name);
    /* A thread may have ended since the listing. */
    if (thread > 0) sched_setaffinity(thread, sizeof one, &one);
  }
  return closedir(threads);
}

int floor_last_processor(void) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) == -1) return -1;
  int last = CPU_SETSIZE - 1;
  while (last >= 0 && !CPU_ISSET(last, &all)) last--;
  return last;
}

int floor_processor(int process) {
  cpu_set_t all;
  if (sched_getaffinity(process, sizeof all, &all) == -1 || CPU_COUNT(&all) != 1) return -1;
  int only = 0;
  while (!CPU_ISSET(only, &all)) only++;
  return only;
}
