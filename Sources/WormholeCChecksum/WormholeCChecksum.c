#include "WormholeCChecksum.h"

#if defined(__x86_64__)
#include <immintrin.h>

int checksum_can_fold(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

/* The factors that carry a block of 128 bits over one, four or eight blocks: for each half of the
   block, the remainder of the power of x by which the half is multiplied. The bits are in the
   order of the polynomial's. */
#define BY_ONE 0x0ccaa009e, 0x1751997d0   /* x to the 96th and the 160th */
#define BY_FOUR 0x1c6e41596, 0x154442bd4  /* x to the 480th and the 544th */
#define BY_EIGHT 0x14a7fe880, 0x1e88ef372 /* x to the 992nd and the 1056th */

#define NARROW __attribute__((target("pclmul,sse4.1")))
#define WIDE __attribute__((target("vpclmulqdq,avx2,pclmul")))

/* Returns a block, carried over the distance to `next` and added to `next`. */
NARROW static inline __m128i carry(__m128i block, __m128i by, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(block, by, 0x00);
  __m128i high = _mm_clmulepi64_si128(block, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Does the same for two blocks. */
WIDE static inline __m256i carry_two(__m256i blocks, __m256i by, __m256i next) {
  __m256i low = _mm256_clmulepi64_epi128(blocks, by, 0x00);
  __m256i high = _mm256_clmulepi64_epi128(blocks, by, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

/* Folds all blocks from `next` on into the block before `next`. */
NARROW static void fold_rest(__m128i block, const __m128i *next, const __m128i *end, void *into) {
  const __m128i by_one = _mm_set_epi64x(BY_ONE);
  for (; next < end; next++) block = carry(block, by_one, _mm_loadu_si128(next));
  _mm_storeu_si128(into, block);
}

/* Folds four blocks at a time: each instruction waits only for its own previous result. */
NARROW static void fold_by_four(
    __m128i first, const __m128i *next, const __m128i *end, void *into) {
  const __m128i by_four = _mm_set_epi64x(BY_FOUR);
  __m128i a = first, b = _mm_loadu_si128(next), c = _mm_loadu_si128(next + 1);
  __m128i d = _mm_loadu_si128(next + 2);
  for (next += 3; end - next >= 4; next += 4) {
    a = carry(a, by_four, _mm_loadu_si128(next));
    b = carry(b, by_four, _mm_loadu_si128(next + 1));
    c = carry(c, by_four, _mm_loadu_si128(next + 2));
    d = carry(d, by_four, _mm_loadu_si128(next + 3));
  }
  __m128i last[3] = {b, c, d};
  fold_rest(a, last, last + 3, &a);
  fold_rest(a, next, end, into);
}

/* Folds four times two blocks at a time. */
WIDE static void fold_by_eight(
    __m128i first, const __m128i *next, const __m128i *end, void *into) {
  const __m256i by_eight = _mm256_broadcastsi128_si256(_mm_set_epi64x(BY_EIGHT));
  __m256i a = _mm256_inserti128_si256(_mm256_castsi128_si256(first), _mm_loadu_si128(next), 1);
  __m256i b = _mm256_loadu_si256((const __m256i *)(next + 1));
  __m256i c = _mm256_loadu_si256((const __m256i *)(next + 3));
  __m256i d = _mm256_loadu_si256((const __m256i *)(next + 5));
  for (next += 7; end - next >= 8; next += 8) {
    a = carry_two(a, by_eight, _mm256_loadu_si256((const __m256i *)next));
    b = carry_two(b, by_eight, _mm256_loadu_si256((const __m256i *)(next + 2)));
    c = carry_two(c, by_eight, _mm256_loadu_si256((const __m256i *)(next + 4)));
    d = carry_two(d, by_eight, _mm256_loadu_si256((const __m256i *)(next + 6)));
  }
  __m256i last[4] = {a, b, c, d};
  const __m128i *blocks = (const __m128i *)last;
  __m128i block;
  fold_rest(blocks[0], blocks + 1, blocks + 8, &block);
  fold_rest(block, next, end, into);
}

NARROW void checksum_fold(uint32_t start, const void *bytes, size_t count, void *into) {
  const __m128i *next = bytes, *end = next + count / 16;
  __m128i first = _mm_xor_si128(_mm_loadu_si128(next), _mm_cvtsi32_si128((int)start));
  if (count >= 512 && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2"))
    fold_by_eight(first, next + 1, end, into);
  else
    fold_by_four(first, next + 1, end, into);
}

#else

int checksum_can_fold(void) { return 0; }

void checksum_fold(uint32_t start, const void *bytes, size_t count, void *into) {
  __builtin_trap();  /* No call gets here after checksum_can_fold has returned 0. */
}

#endif
