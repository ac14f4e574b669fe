/* What Glibc's Swift module hides: a few calls and constants of Linux.
   Every function returns what the call returns and leaves its error in errno. */
#ifndef WORMHOLE_CLINUX_H
#define WORMHOLE_CLINUX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct linux_file_system {
  int64_t type;
  uint64_t block_size, free_blocks, inodes, free_inodes;
  int read_only;
};

struct linux_directory_entry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};

extern const int linux_open_path, linux_open_temporary, linux_open_directory, linux_open_nofollow;
extern const uint32_t linux_rename_noreplace, linux_rename_exchange;

int linux_renameat2(int from, const char *old, int to, const char *new_, uint32_t flags);
/* Through no symbolic link; beneath: nor out of the directory. */
int linux_openat2(int directory, const char *path, uint64_t flags, uint64_t mode, int beneath);
/* kind: 0 unlock, 1 shared, 2 exclusive; never waits. */
int linux_ofd_lock(int descriptor, int kind);
/* 1: somebody else's lock stands in the way of an exclusive one; 0: none; -1: error. */
int linux_ofd_query(int descriptor);
int linux_eventfd(void);
int linux_epoll_create(void);
/* Tells one waiting thread, once, that the descriptor has become readable. */
int linux_epoll_add(int set, int descriptor, uint64_t key);
/* Tells it again if it is readable still. */
int linux_epoll_renew(int set, int descriptor, uint64_t key);
/* 1 and the key of a descriptor that has become readable; 0: time is up; -1: error. */
int linux_epoll_wait(int set, uint64_t *key, int milliseconds);
int linux_pipe(int ends[2]);
ssize_t linux_getdents(int directory, void *buffer, size_t size);
/* The words of the command line, the program's name first, a null pointer last. */
char **linux_arguments(void);
/* Has the kernel kill this process when the thread that has started it ends. */
void linux_end_with_parent(void);
int linux_fstatfs(int descriptor, struct linux_file_system *into);
int linux_clone_file(int to, int from);
ssize_t linux_copy_file_range(int from, int to, size_t count);
/* Stops a file system as a power cut would, without flushing. Root only; for tests. */
int linux_shutdown_file_system(int descriptor);
int linux_fallocate(int descriptor, off_t size);
/* Where data, or a hole, begins: at an offset or behind it. Both move the present offset. */
off_t linux_next_data(int descriptor, off_t from);
off_t linux_next_hole(int descriptor, off_t from);
int linux_duplicate(int descriptor);
/* Lets a process that posix_spawn starts keep no descriptor but the first three. */
int linux_close_others(void *file_actions);
/* Lets it begin in that directory. */
int linux_begin_in(void *file_actions, const char *directory);
/* Gives it a session of its own. */
extern const int linux_spawn_session;
void linux_name_thread(const char *name);

/* A pointer that each thread has for itself. */
const void *linux_thread_mark(void);
void linux_set_thread_mark(const void *mark);
/* One byte that other processes, or the next one after a death, read as it was stored last. */
static inline uint8_t linux_load_byte(const void *from) {
  return __atomic_load_n((const uint8_t *)from, __ATOMIC_ACQUIRE);
}
static inline void linux_store_byte(void *to, uint8_t byte) {
  __atomic_store_n((uint8_t *)to, byte, __ATOMIC_RELEASE);
}

/* Which copy this is: a process has a number that none has which it is a copy of, whoever made the
   copy: fork, or a bare clone. It lies in memory that the kernel wipes in a copy, so that to look
   costs no system call; where there is no such memory, it is wiped in copies that fork makes. */
extern uint32_t *linux_copy_page;
uint32_t linux_find_copy_number(void);
static inline uint32_t linux_copy_number(void) {
  uint32_t *page = __atomic_load_n(&linux_copy_page, __ATOMIC_ACQUIRE);
  uint32_t number = page == NULL ? 0 : __atomic_load_n(page, __ATOMIC_RELAXED);
  return number != 0 ? number : linux_find_copy_number();
}
/* Goes on as if there were no such memory; for tests. */
void linux_number_copies_by_hand(void);

/* Descriptors that a forked child gets a harmless one in the place of.
   To open one: count the forks, open, note. */
int linux_count_forks(unsigned *count);
/* 1: noted; 0: there was a fork since they were counted, so close it and begin anew; -1: error. */
int linux_note_for_forks(int descriptor, unsigned count);
/* Closes one that was noted. */
int linux_close_noted(int descriptor);

/* A lock with a condition. A copy of the process may use it too: there it is free, whoever had it,
   and nobody is waited for. */
struct linux_gate;
struct linux_gate *linux_gate_make(void);
void linux_gate_free(struct linux_gate *gate);
void linux_gate_lock(struct linux_gate *gate);
void linux_gate_unlock(struct linux_gate *gate);
void linux_gate_broadcast(struct linux_gate *gate);
/* Waits for a broadcast, or until a moment of the monotonic clock, in nanoseconds; below 0: for
   ever. 0: it is inherited, and nobody is there to wait for. */
int linux_gate_wait(struct linux_gate *gate, int64_t until);
int linux_gate_is_inherited(struct linux_gate *gate);

#endif
