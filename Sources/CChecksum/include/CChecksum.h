/* The part of a CRC-32 that a processor's own instructions make fast. */
#ifndef WORMHOLE_CCHECKSUM_H
#define WORMHOLE_CCHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Whether this processor can do what follows. */
int checksum_can_fold(void);

/* Makes of `count` bytes, a multiple of 16 and at least 64, the 16 bytes that have the same
   remainder, so that their CRC-32 begun with 0 is that of all the bytes begun with `start`.
   `start` is the inner state: what zlib's crc32 takes and gives, with all bits inverted. */
void checksum_fold(uint32_t start, const void *bytes, size_t count, void *into);

#endif
