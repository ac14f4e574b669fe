/* What no program of ours does, and what its libraries may do behind its back. */
#ifndef WORMHOLE_CFORKING_H
#define WORMHOLE_CFORKING_H

/* A copy of this process with copies of its descriptors, which does nothing until it is ended, or
   a minute has passed. Returns its number, or -1. */
int forking_copy(void);

#endif
