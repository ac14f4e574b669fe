/* System calls that only tests make: forks behind the package's back, limits, lost file systems. */
#ifndef WORMHOLE_CTESTING_H
#define WORMHOLE_CTESTING_H

#include <stdint.h>

/* A copy of this process with copies of its descriptors, which does nothing until it is ended, or
   a minute has passed. Returns its number, or -1. */
int forking_copy(void);

/* The same, after it has done something. */
int forking_copy_after(void (*body)(void));

/* A copy of a copy, which was made after the first copy had opened the file under that number.
   Returns its number, or -1; the first copy has ended. */
int forking_copy_of_copy(int number, const char *path);

/* Makes a copy of this process that runs the body and ends, and waits for its end. The copy is made
   by fork, or by a bare clone, of which the C library knows nothing, once the other threads sleep:
   a lock of the Swift runtime that one of them had would never be free in the copy. -1 if the copy
   did not come to its end. */
int forking_do(int by_clone, void (*body)(void));

/* Makes this process one of that user and of that group alone, for good; -1 if it may not. */
int forking_become(unsigned user, unsigned group);

/* Refuses openat2 and renameat2 with that error to this thread and to what it starts, for good, as
   sandboxes refuse calls that they do not know; -1 where that cannot be. */
int forking_refuse(int error);
/* Refuses new threads and processes to this thread, as where there are too many; -1 where that
   cannot be. This binds root too. */
int forking_refuse_threads(void);
/* Limit the descriptors of this process, and the threads of all processes of its user, for good;
   -1 if that cannot be. The second does not bind root. */
int forking_limit_descriptors(unsigned long count);
int forking_limit_threads(unsigned long count);

/* Listens on a free port of the loopback interface; returns the socket, which never blocks, or
   -1. */
int testing_listen(int is_version_six, unsigned short *port);
/* The next connection, which never blocks; -1 if there is none. */
int testing_accept(int listener);
/* Makes the close of a connection discard what was not sent, and report an error to the other
   end. */
void testing_reset_at_close(int connection);

/* Keep a signal's action, and put it back later; -1 if that cannot be. */
int testing_keep_action(int number);
int testing_put_back_action(int number);
/* Gives a signal a handler that counts the signals, and calls the handler before it for each; -1 if
   that cannot be. */
int testing_chain_signal(int number);
int testing_chained_signals(void);

/* The processor time of this thread, or of all threads of this process, in nanoseconds. */
int64_t testing_time_of_thread(void);
int64_t testing_time_of_process(void);

/* Has the kernel kill this process when the thread that has started it ends. */
void testing_end_with_parent(void);

/* Stops the file system of that directory as a power cut would: data that is not on disk is lost,
   and every later call on the file system fails. Returns 0, or -1; for root. */
int testing_cut_file_system(const char *directory);

/* Whether a program could listen at that port of 127.0.0.1 now. */
int testing_port_is_free(int port);

/* A connection to an IPv4 address, made in the network namespace of that file, or in this process's
   own (NULL). Returns its descriptor, or -1. */
int testing_connect(const char *network, const char *address, int port, int milliseconds);

/* Waits until the descriptor has bytes, or its end. 1, or 0 after that time, or -1. */
int testing_wait_for_bytes(int descriptor, int milliseconds);

/* Moves this thread to the network namespace of that file, and returns a descriptor of the
   namespace that the thread was in, for `testing_leave_network`; -1 if that cannot be. */
int testing_enter_network(const char *network);
int testing_leave_network(int descriptor);

/* Gives the jobs of Swift's tasks to a function, in place of Swift's own threads. Any thread may
   run a job. */
void testing_take_jobs(void (*take)(void *job));
void testing_run_job(void *job);

#endif
