#define _GNU_SOURCE
#include "WormholeCLinux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

const int linux_open_path = O_PATH, linux_open_temporary = O_TMPFILE;
const int linux_open_directory = O_DIRECTORY, linux_open_nofollow = O_NOFOLLOW;
const int linux_open_noatime = O_NOATIME;
const uint32_t linux_rename_noreplace = RENAME_NOREPLACE, linux_rename_exchange = RENAME_EXCHANGE;

static _Thread_local const void *thread_mark;
const void *linux_thread_mark(void) { return thread_mark; }
void linux_set_thread_mark(const void *mark) { thread_mark = mark; }

char **linux_environment(void) { return environ; }

int linux_renameat2(int from, const char *old, int to, const char *new_, uint32_t flags) {
  return (int)syscall(SYS_renameat2, from, old, to, new_, flags);
}

int linux_openat2(int directory, const char *path, uint64_t flags, uint64_t mode, int beneath) {
  struct open_how how;
  memset(&how, 0, sizeof how);
  how.flags = flags;
  how.mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? mode : 0;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | (beneath ? RESOLVE_BENEATH : 0);
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

static struct flock whole_file(int kind) {
  struct flock lock;
  memset(&lock, 0, sizeof lock);
  lock.l_type = kind == 0 ? F_UNLCK : kind == 1 ? F_RDLCK : F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

int linux_ofd_lock(int descriptor, int kind) {
  struct flock lock = whole_file(kind);
  return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int linux_ofd_query(int descriptor, int kind) {
  struct flock lock = whole_file(kind);
  if (fcntl(descriptor, F_OFD_GETLK, &lock) == -1) return -1;
  return lock.l_type != F_UNLCK;
}

int linux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int linux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static int control_epoll(int set, int operation, int descriptor, uint64_t key) {
  struct epoll_event event;
  memset(&event, 0, sizeof event);
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = key;
  return epoll_ctl(set, operation, descriptor, &event);
}

int linux_epoll_add(int set, int descriptor, uint64_t key) {
  return control_epoll(set, EPOLL_CTL_ADD, descriptor, key);
}

int linux_epoll_renew(int set, int descriptor, uint64_t key) {
  return control_epoll(set, EPOLL_CTL_MOD, descriptor, key);
}

int linux_epoll_wait(int set, uint64_t *key, int milliseconds) {
#ifdef FAULT_POINTS
  if (turnstile_plays()) return turnstile_epoll(set, key, milliseconds);
#endif
  struct epoll_event event;
  int count = epoll_wait(set, &event, 1, milliseconds);
  if (count == 1) *key = event.data.u64;
  return count;
}

int linux_pipe(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) == -1) return -1;
  /* In a process with closed standard streams, a child would take an end for a stream. */
  for (int end = 0; end < 2; end++) {
    if (ends[end] > 2) continue;
    int copy = linux_duplicate(ends[end]);
    int error = errno;
    close(ends[end]);
    if (copy == -1) {
      close(ends[1 - end]);
      errno = error;
      return -1;
    }
    ends[end] = copy;
  }
  return 0;
}

ssize_t linux_getdents(int directory, void *buffer, size_t size) {
  ssize_t count = syscall(SYS_getdents64, directory, buffer, size);
#ifdef FAULT_POINTS
  if (turnstile_plays() && count > 0) turnstile_sort(buffer, count);
#endif
  return count;
}

static char **arguments;

/* Runs before main, with main's arguments: if /proc is missing, Swift cannot find the arguments. */
__attribute__((constructor)) static void keep_arguments(int count, char **words) {
  (void)count;
  arguments = words;
}

char **linux_arguments(void) { return arguments; }

int linux_is_main_thread(void) { return gettid() == getpid(); }

int linux_set_modified(int directory, const char *name, int64_t nanoseconds) {
  struct timespec times[2] = {
      {.tv_sec = 0, .tv_nsec = UTIME_OMIT},
      {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
  return name == NULL ? futimens(directory, times)
                      : utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
}

int linux_start_writing(int descriptor) {
  return sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int linux_fstatfs(int descriptor, struct linux_file_system *into) {
  struct statfs status;
  int result = fstatfs(descriptor, &status);
  if (result == 0) {
    into->type = (int64_t)status.f_type;
    into->block_size = (uint64_t)status.f_bsize;
    into->free_blocks = status.f_bavail;
    into->inodes = status.f_files;
    into->free_inodes = status.f_ffree;
    into->read_only = (status.f_flags & ST_RDONLY) != 0;
  }
  return result;
}

int linux_clone_file(int to, int from) { return ioctl(to, FICLONE, from); }

int linux_fallocate(int descriptor, off_t size) { return fallocate(descriptor, 0, 0, size); }

off_t linux_next_data(int descriptor, off_t from) { return lseek(descriptor, from, SEEK_DATA); }

off_t linux_next_hole(int descriptor, off_t from) { return lseek(descriptor, from, SEEK_HOLE); }

int linux_duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 3); }

int linux_close_others(void *file_actions) {
#ifdef __GLIBC__
  return posix_spawn_file_actions_addclosefrom_np(file_actions, 3);
#else
  /* Closes what is open now: what another thread opens later, without close-on-exec, is inherited.
     A descriptor that is closed by then is none to fail for. */
  DIR *open = opendir("/proc/self/fd");
  if (open == NULL) return errno;
  int failure = 0;
  for (struct dirent *entry; failure == 0 && (entry = readdir(open)) != NULL;) {
    int number = atoi(entry->d_name);
    if (number > 2) failure = posix_spawn_file_actions_addclose(file_actions, number);
  }
  closedir(open);
  return failure;
#endif
}

const int linux_spawn_session = POSIX_SPAWN_SETSID;

#ifdef FAULT_POINTS
/* The body of a thread that is a player of a schedule. */
struct scheduled_body {
  void *(*body)(void *);
  void *argument;
  int32_t player;
};

static void *run_scheduled(void *argument) {
  struct scheduled_body scheduled = *(struct scheduled_body *)argument;
  free(argument);
  turnstile_begin_thread(scheduled.player);
  void *result = scheduled.body(scheduled.argument);
  turnstile_end_thread();
  return result;
}

static int start_scheduled(pthread_t *handle, void *(*body)(void *), void *argument) {
  struct scheduled_body *scheduled = malloc(sizeof *scheduled);
  if (scheduled == NULL) return EAGAIN;
  scheduled->body = body;
  scheduled->argument = argument;
  int32_t player = scheduled->player = turnstile_expect_thread();
  int result = pthread_create(handle, NULL, run_scheduled, scheduled);
  turnstile_start_thread(player, result, result == 0 ? *handle : (pthread_t)0);
  if (result != 0) free(scheduled);
  return result;
}
#endif

int linux_start_thread(uintptr_t *thread, void *(*body)(void *), void *argument) {
  pthread_t handle;
  int result;
#ifdef FAULT_POINTS
  if (turnstile_plays()) {
    result = start_scheduled(&handle, body, argument);
  } else
#endif
    result = pthread_create(&handle, NULL, body, argument);
  if (result == 0) *thread = (uintptr_t)handle;
  return result;
}

void linux_join_thread(uintptr_t thread) {
#ifdef FAULT_POINTS
  turnstile_join((pthread_t)thread);
#endif
  pthread_join((pthread_t)thread, NULL);
}

void linux_detach_thread(uintptr_t thread) { pthread_detach((pthread_t)thread); }

uintptr_t linux_current_thread(void) { return (uintptr_t)pthread_self(); }

/* The kernel stores fifteen characters. */
void linux_name_thread(const char *name) {
  char kept[16];
  strncpy(kept, name, sizeof kept - 1);
  kept[sizeof kept - 1] = 0;
  pthread_setname_np(pthread_self(), kept);
#ifdef FAULT_POINTS
  turnstile_name_thread(kept);
#endif
}
