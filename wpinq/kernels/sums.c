/* Adding up by identity or by number, and one digit of much noise. */

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

/* Add to the noise of n bins one digit of both their variables: 2^place where the first word lies below the limit,
   less 2^place where the second does. Returns how many words are the limit itself, which further words must settle. */
EXPORT WIDE int64_t wpinq_digit(int64_t n, const uint64_t *words, uint64_t limit, int32_t place, uint64_t *noise) {
    uint64_t ties = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t a = words[2 * i], b = words[2 * i + 1];
        ties += (a == limit) + (b == limit);
        noise[i] += (uint64_t)((int64_t)(a < limit) - (int64_t)(b < limit)) << place;
    }
    return (int64_t)ties;
}
