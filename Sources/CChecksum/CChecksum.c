#include "CChecksum.h"

#if defined(__x86_64__)
#include <immintrin.h>

int checksum_can_fold(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

/* A block of 128 bits, carried over what lies between it and `next` and added to that.

   `by` holds the remainders of the powers of x by which its two halves are carried. */
__attribute__((target("pclmul,sse4.1"), always_inline)) static inline __m128i carry(
    __m128i block, __m128i by, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(block, by, 0x00);
  __m128i high = _mm_clmulepi64_si128(block, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Four blocks at a time: each instruction waits for its own last one only. */
__attribute__((target("pclmul,sse4.1"))) void checksum_fold(
    uint32_t start, const void *bytes, size_t count, void *into) {
  const __m128i *next = bytes, *end = next + count / 16;
  /* x to the 544th and 480th, and to the 160th and 96th, bits in the order of the polynomial's. */
  const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i a = _mm_xor_si128(_mm_loadu_si128(next), _mm_cvtsi32_si128((int)start));
  __m128i b = _mm_loadu_si128(next + 1), c = _mm_loadu_si128(next + 2);
  __m128i d = _mm_loadu_si128(next + 3);
  for (next += 4; end - next >= 4; next += 4) {
    a = carry(a, by_four, _mm_loadu_si128(next));
    b = carry(b, by_four, _mm_loadu_si128(next + 1));
    c = carry(c, by_four, _mm_loadu_si128(next + 2));
    d = carry(d, by_four, _mm_loadu_si128(next + 3));
  }
  a = carry(carry(carry(a, by_one, b), by_one, c), by_one, d);
  for (; next < end; next++) a = carry(a, by_one, _mm_loadu_si128(next));
  _mm_storeu_si128(into, a);
}

#else

int checksum_can_fold(void) { return 0; }

void checksum_fold(uint32_t start, const void *bytes, size_t count, void *into) {
  __builtin_trap();  /* Nobody calls it who has asked. */
}

#endif
