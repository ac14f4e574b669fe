/* The part of a CRC-32 that special processor instructions make fast. */
#ifndef WORMHOLE_CCHECKSUM_H
#define WORMHOLE_CCHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Returns whether this processor can run checksum_fold. */
int checksum_can_fold(void);

/* Reduces `count` bytes, a multiple of 16 and at least 64, to 16 bytes with the same remainder:
   the CRC-32 of the 16 bytes, started with 0, is the CRC-32 of all the bytes, started with
   `start`. `start` is the inner state: the value that zlib's crc32 takes and returns, with all
   bits inverted. */
void checksum_fold(uint32_t start, const void *bytes, size_t count, void *into);

#endif
