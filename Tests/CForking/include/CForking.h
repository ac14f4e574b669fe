/* What no program of ours does, and what its libraries may do behind its back. */
#ifndef WORMHOLE_CFORKING_H
#define WORMHOLE_CFORKING_H

/* A copy of this process with copies of its descriptors, which does nothing until it is ended, or
   a minute has passed. Returns its number, or -1. */
int forking_copy(void);

/* The same, after it has done something. */
int forking_copy_after(void (*body)(void));

/* A copy of a copy, which was made after the first copy had opened the file under that number.
   Returns its number, or -1; the first copy has ended. */
int forking_copy_of_copy(int number, const char *path);

/* Has a copy of this process do something and end, and waits for that; the copy is made by fork, or
   by a bare clone, of which the C library knows nothing. -1 if it did not come to its end. */
int forking_do(int by_clone, void (*body)(void));

/* Makes this process one of that user and of that group alone, for good; -1 if it may not. */
int forking_become(unsigned user, unsigned group);

#endif
