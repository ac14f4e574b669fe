/* What no program of ours does, and what its libraries may do behind its back. */
#ifndef WORMHOLE_CFORKING_H
#define WORMHOLE_CFORKING_H

/* A copy of this process with copies of its descriptors, which does nothing until it is ended, or
   a minute has passed. Returns its number, or -1. */
int forking_copy(void);

/* A copy of a copy, which was made after the first copy had opened the file under that number.
   Returns its number, or -1; the first copy has ended. */
int forking_copy_of_copy(int number, const char *path);

/* Makes this process one of that user and of the group of that number, for good; -1 if it may
   not. */
int forking_become(unsigned user);

#endif
