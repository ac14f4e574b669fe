/* What an update costs at least: the system calls of one, and nothing else.
   Every function returns -1 with errno set when a call fails, and 0 otherwise. */
#ifndef WORMHOLE_CFLOOR_H
#define WORMHOLE_CFLOOR_H

#include <stddef.h>
#include <stdint.h>

#include "CFloorMail.h"

/* A directory laid out like a slot's: value.plist, and lock/ with 1 and 1.d in it. */
struct floor_slot {
  int directory, locks, lock, staging;
  uint64_t mark[8];
};

/* Opens it; what is missing is made, with a number and as many bytes in all as are asked for. */
int floor_open(struct floor_slot *slot, const char *path, size_t size);
void floor_close(struct floor_slot *slot);

/* Takes the lock, leaves a mark, gives it back. */
int floor_lock(struct floor_slot *slot);
/* Adds one to the number by the calls that ours makes where others write too, in the same order. */
int floor_update(struct floor_slot *slot);
/* The same by renaming a new file over the old one, without marks and generations. */
int floor_replace(struct floor_slot *slot);

/* Writes a new file, renames it into another directory, unlinks it. */
int floor_access(struct floor_slot *slot);

/* What the number is now; -1 if it cannot be read. */
int64_t floor_number(struct floor_slot *slot);

/* A number that another process hears of: value.plist in a directory that is watched. */
struct floor_bell {
  int directory, staging, notices;
};

int floor_bell_open(struct floor_bell *bell, const char *path);
void floor_bell_close(struct floor_bell *bell);
/* Writes the number to a new file, exchanges it in and unlinks the old one. */
int floor_ring(struct floor_bell *bell, int64_t number);
/* Waits for a notice of the number that comes after this one, and reads it; -1 for an error. */
int64_t floor_hear(struct floor_bell *bell, int64_t after);
/* Keeps the process on one processor; on any again if that is negative. */
int floor_pin(int processor);

#endif
