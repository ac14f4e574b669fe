/* A few calls and constants of Linux that Glibc's Swift module hides. Every function returns the
   result of the call and leaves its error in errno. */
#ifndef WORMHOLE_CLINUX_H
#define WORMHOLE_CLINUX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "Turnstile.h"

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
extern const int linux_open_noatime;
extern const uint32_t linux_rename_noreplace, linux_rename_exchange;

int linux_renameat2(int from, const char *old, int to, const char *new_, uint32_t flags);
/* Follows no symbolic link; with beneath, does not leave the directory either. */
int linux_openat2(int directory, const char *path, uint64_t flags, uint64_t mode, int beneath);
/* kind: 0 unlock, 1 shared, 2 exclusive; never waits. */
int linux_ofd_lock(int descriptor, int kind);
/* kind: 1 shared, 2 exclusive. 1: another description's lock refuses it; 0: none; -1: error. */
int linux_ofd_query(int descriptor, int kind);
int linux_eventfd(void);
int linux_epoll_create(void);
/* Reports to one waiting thread, once, that the descriptor has become readable. */
int linux_epoll_add(int set, int descriptor, uint64_t key);
/* Reports again if the descriptor is still readable. */
int linux_epoll_renew(int set, int descriptor, uint64_t key);
/* 1 and the key of a descriptor that has become readable; 0: the time is up; -1: error. */
int linux_epoll_wait(int set, uint64_t *key, int milliseconds);
int linux_pipe(int ends[2]);
/* A socket for TCP that never blocks. */
int linux_socket(int is_version_six);
/* Begins a connection to a port of this host; 0: begun, or made already. */
int linux_connect_loopback(int descriptor, int is_version_six, uint16_t port);
/* The kind of an address in digits: bit 0 for loopback, bit 1 for version 6; -1: no address. */
int linux_address_kind(const char *text);
/* Listens at an address in digits, and never blocks; the port 0 stands for any free port. */
int linux_listen(const char *text, uint16_t port, uint16_t *actual);
/* The next connection, which never blocks and waits for no acknowledgement. */
int linux_accept(int descriptor);
ssize_t linux_receive(int descriptor, void *buffer, size_t size);
/* Without the signal that a closed connection would cause. */
ssize_t linux_send(int descriptor, const void *bytes, size_t size);
/* Sends a datagram to a socket that a file, or an @ at the beginning of the path, names. */
int linux_notify(const void *path, size_t length, const void *text, size_t size);
/* Waits until one descriptor is readable, or the first one writable if the caller writes. A number
   below 0 is ignored. */
int linux_poll_two(int first, int writes, int second, int milliseconds);
/* Makes a pseudo-terminal: this process's end and the program's end, both closed on exec. For
   output only: bytes arrive as they were written, and reading at this process's end never waits. */
int linux_pseudo_terminal(int rows, int columns, int for_output, int ends[2]);
ssize_t linux_getdents(int directory, void *buffer, size_t size);
char **linux_environment(void);
/* The command-line arguments, the program's name first, a null pointer last. */
char **linux_arguments(void);
/* Whether the thread that asks is the one that main runs on. */
int linux_is_main_thread(void);
/* Sets the time of the last change of an entry's content, and no other time. */
int linux_set_modified(int directory, const char *name, int64_t nanoseconds);

/* Begins to write a file's content to disk. */
int linux_start_writing(int descriptor);

int linux_fstatfs(int descriptor, struct linux_file_system *into);
int linux_clone_file(int to, int from);
int linux_fallocate(int descriptor, off_t size);
/* The offset where data, or a hole, begins: at the given offset or behind it. Both calls move the
   current offset. */
off_t linux_next_data(int descriptor, off_t from);
off_t linux_next_hole(int descriptor, off_t from);
int linux_duplicate(int descriptor);
/* Makes posix_spawn close all descriptors of the new process but the first three. */
int linux_close_others(void *file_actions);
/* Gives it a session of its own. */
extern const int linux_spawn_session;
/* Starts a program in a session of its own, with /dev/null on the three standard descriptors and no
   other, each signal as it is by default, the umask 022, the nice value 0 where this process may
   lower its own, and soft limits that are the same whatever this process has: none on processor
   time, the size of files and of memory, 8 MiB of stack, 1024 descriptors, no core file. Hard
   limits stay, and no soft limit is above them. Returns 0 or the error. */
int linux_spawn_alone(
    pid_t *process, const char *program, char *const words[], char *const settings[],
    const char *directory);
/* A thread as a number, which is a pointer in some C libraries. Started or not: an error number. */
int linux_start_thread(uintptr_t *thread, void *(*body)(void *), void *argument);
void linux_join_thread(uintptr_t thread);
void linux_detach_thread(uintptr_t thread);
uintptr_t linux_current_thread(void);
void linux_name_thread(const char *name);

/* A pointer that each thread stores separately. */
const void *linux_thread_mark(void);
void linux_set_thread_mark(const void *mark);

/* The number of this process among its copies. A process never has the number of an ancestor whose
   copy it is, whether fork or a bare clone made the copy. The number is stored in memory that the
   kernel wipes in a copy, so that reading it costs no system call; if the kernel has no such
   memory, the number is wiped only in copies made by fork. */
extern uint32_t *linux_copy_page;
uint32_t linux_find_copy_number(void);
static inline uint32_t linux_copy_number(void) {
  uint32_t *page = __atomic_load_n(&linux_copy_page, __ATOMIC_ACQUIRE);
  uint32_t number = page == NULL ? 0 : __atomic_load_n(page, __ATOMIC_RELAXED);
  return number != 0 ? number : linux_find_copy_number();
}
/* Continues as if the kernel had no such memory; for tests. */
void linux_number_copies_by_hand(void);

/* Descriptors that are replaced by a harmless one in a forked child. To open one: count the forks,
   open, note. */
int linux_count_forks(unsigned *count);
/* 1: noted; 0: a fork happened since the count, so close the file and start again; -1: error. */
int linux_note_for_forks(int descriptor, unsigned count);
/* Closes a noted descriptor. */
int linux_close_noted(int descriptor);

/* A lock with a condition. A forked child may use an inherited lock too: in the child the lock is
   free, whatever thread held it, and a wait ends at once. */
struct linux_gate;
struct linux_gate *linux_gate_make(void);
void linux_gate_free(struct linux_gate *gate);
void linux_gate_lock(struct linux_gate *gate);
void linux_gate_unlock(struct linux_gate *gate);
void linux_gate_broadcast(struct linux_gate *gate);
/* Waits for a broadcast, or until a time of the monotonic clock, in nanoseconds; below 0: forever.
   Returns 0 if the gate is inherited: the child has no thread to wait for. */
int linux_gate_wait(struct linux_gate *gate, int64_t until);
int linux_gate_is_inherited(struct linux_gate *gate);

/* Sets a signal to its default action, or ignores it. */
void linux_set_signal(int number, int is_ignored);
int linux_ignores_signal(int number);
/* Precedes the thread that awaits signals; once in each process, also after a fork. */
int linux_begin_awaiting_signals(void);
/* Catches a signal in place of its action, until its release. Not for several threads at once. */
int linux_catch_signal(int number);
/* Gives a signal its earlier action. One that has arrived, and that no wait has returned, is sent
   again. */
void linux_release_signal(int number);
/* Waits for caught signals, and returns a bit for each, the lowest for signal 1; no bit after the
   last call below. */
uint64_t linux_await_signals(void);
/* Sends the signals of a result to this process again. */
void linux_raise_signals(uint64_t signals);
void linux_end_awaiting_signals(void);

#endif
