/* The baseline of an update, its minimum cost: the system calls of an update, and nothing else.
   Every function returns -1 with errno set when a call fails, and 0 otherwise. */
#ifndef WORMHOLE_CFLOOR_H
#define WORMHOLE_CFLOOR_H

#include <stddef.h>
#include <stdint.h>

#include "CFloorMail.h"
#include "CFloorPeers.h"

/* A directory with the layout of a slot: value.plist, and lock/, which contains 1 and 1.d. */
struct floor_slot {
  int directory, locks, lock, staging;
  uint64_t mark[8];
};

/* Opens the directory and makes missing files, with a number and padding up to the requested
   number of bytes. */
int floor_open(struct floor_slot *slot, const char *path, size_t size);
void floor_close(struct floor_slot *slot);

/* Takes the lock, writes the heartbeat, and releases the lock. */
int floor_lock(struct floor_slot *slot);
/* Adds one to the number with the system calls that the library makes if several processes write,
   in the same order. */
int floor_update(struct floor_slot *slot);
/* Adds one to the number by renaming a new file over the old file, without heartbeats and
   generations. */
int floor_replace(struct floor_slot *slot);

/* Writes a new file, renames the file into another directory, and unlinks it. */
int floor_access(struct floor_slot *slot);

/* Returns the current number; -1 if the file cannot be read. */
int64_t floor_number(struct floor_slot *slot);

/* A number whose changes notify another process: value.plist in a watched directory. */
struct floor_bell {
  int directory, staging, notices;
};

int floor_bell_open(struct floor_bell *bell, const char *path);
void floor_bell_close(struct floor_bell *bell);
/* Writes the number to a new file, swaps it with value.plist atomically, and unlinks the old
   file. */
int floor_ring(struct floor_bell *bell, int64_t number);
/* Waits for notices until the number is greater than `after`, and returns the number; -1 for an
   error. */
int64_t floor_hear(struct floor_bell *bell, int64_t after);
/* Has ext4 place each new directory of the given directory far from the others. Other file systems
   may refuse. */
int floor_spread(const char *directory);
/* Binds all threads of the process to one processor; a negative number removes the binding. */
int floor_pin(int processor);
/* Returns the last processor on which the calling thread may run; -1 for an error. */
int floor_last_processor(void);
/* Returns the processor to which the first thread of a process is bound; -1 if there are several,
   or for an error. */
int floor_processor(int process);

#endif
