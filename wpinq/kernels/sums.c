/* Adding up by identity or by number, and one digit of much noise. */

#include "common.h"

/* Which source this was compiled from. */
EXPORT const char wpinq_source[] = WPINQ_SOURCE;

/* Add n weights to a table of 2^bits slots (identity, weight), chosen by the first bits of the identity. The identity
   zero marks an empty slot and has one of its own, behind the others. Stops when `limit` slots are in use.
   Returns how many were added. */
EXPORT int64_t wpinq_tally(uint64_t *slots, int32_t bits, int64_t *used, int64_t limit, int64_t n,
                           const uint64_t *ids, const int64_t *weights) {
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < n; i++) {
        if (*used >= limit) return i;
#ifdef __GNUC__
        if (i + 16 < n) __builtin_prefetch(slots + 3 * (ids[2 * i + 32] >> (64 - bits)), 1);
#endif
        const uint64_t first = ids[2 * i], second = ids[2 * i + 1];
        uint64_t at = first >> (64 - bits);
        if (!(first | second)) at = mask + 1;
        else while (slots[3 * at] != first || slots[3 * at + 1] != second) {
            if (!(slots[3 * at] | slots[3 * at + 1])) {
                slots[3 * at] = first;
                slots[3 * at + 1] = second;
                ++*used;
                break;
            }
            at = (at + 1) & mask;
        }
        slots[3 * at + 2] += (uint64_t)weights[i];
    }
    return n;
}

/* Copy all that a table of 2^bits slots holds, sorted by identity. Returns how many there were.

   Slots follow the order of identities but within a cluster of neighbours, and where a cluster runs over the end; so
   the walk begins behind an empty slot, and each identity moves down past the few that should follow it. */
EXPORT int64_t wpinq_items(const uint64_t *slots, int32_t bits, uint64_t *ids, int64_t *weights) {
    const int64_t count = (int64_t)1 << bits;
    int64_t found = 0, start = 0;
    if (slots[3 * count + 2]) {
        ids[0] = ids[1] = 0;
        weights[found++] = (int64_t)slots[3 * count + 2];
    }
    while (slots[3 * start] | slots[3 * start + 1]) start++;
    for (int64_t i = start; i < start + count; i++) {
        const uint64_t *slot = slots + 3 * (i & (count - 1));
        if (!(slot[0] | slot[1])) continue;
        int64_t to = found++;
        for (; to && (ids[2 * to - 2] > slot[0] || (ids[2 * to - 2] == slot[0] && ids[2 * to - 1] > slot[1])); to--) {
            ids[2 * to] = ids[2 * to - 2];
            ids[2 * to + 1] = ids[2 * to - 1];
            weights[to] = weights[to - 1];
        }
        ids[2 * to] = slot[0];
        ids[2 * to + 1] = slot[1];
        weights[to] = (int64_t)slot[2];
    }
    return found;
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
