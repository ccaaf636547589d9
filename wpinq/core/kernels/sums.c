/* Adding up by identity or by number. */

#include "common.h"

#include "sums.h"

/* Which source this was compiled from. */
EXPORT const char wpinq_source[] = WPINQ_SOURCE;

/* See `sums.h`. */
EXPORT int64_t wpinq_tally(uint64_t *slots, int32_t bits, int64_t *used, int64_t limit, int64_t n,
                           const uint64_t *ids, const int64_t *weights) {
    return tally(slots, bits, 0, used, limit, n, ids, weights);
}

EXPORT int64_t wpinq_items(const uint64_t *slots, int32_t bits, uint64_t *firsts, uint64_t *seconds,
                           int64_t *weights) {
    return items(slots, bits, firsts, seconds, weights);
}

/* Count n integers, all of them in [low, low + length of counts). */
EXPORT void wpinq_count(int64_t n, const int64_t *numbers, int64_t low, int64_t *counts) {
    for (int64_t i = 0; i < n; i++) counts[numbers[i] - low]++;
}
