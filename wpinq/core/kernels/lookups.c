/* Looking up weights by identity, and joining what is looked up in. */

#include "common.h"

#ifdef __GNUC__
#define FETCH(at) __builtin_prefetch(at)
#else
#define FETCH(at) ((void)0)
#endif

#define GROUP 64 /* lookups whose memory is awaited together */
#define NEAR 64  /* steps from a guess, before a place is searched instead */

/* How many of the n first words in order lie below this one, from a guess. */
static int64_t below(int64_t n, const uint64_t *firsts, uint64_t first, int64_t place) {
    int64_t low = 0, high = n;
    for (int64_t step = 0; step < NEAR; step++) {
        if (place > 0 && firsts[place - 1] >= first) high = --place;
        else if (place < n && firsts[place] < first) low = ++place;
        else return place;
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (firsts[middle] < first) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The weight of each of m wanted identities (two words each) among n that are in order, one or more, at most `tie` of
   one first word; 0 where it is none of them. First words are pseudorandom, so the place of one follows from it, but for
   some thousands of n = 2^25; from what stands there, but for some fifty; and once more, but for a few. Whatever is found
   is read of all, present or not. */
EXPORT void wpinq_find(int64_t n, const uint64_t *firsts, const uint64_t *seconds, const int64_t *weights, int64_t tie,
                       int64_t m, const uint64_t *wanted, int64_t *found) {
    int64_t places[GROUP];
    for (int64_t start = 0; start < m; start += GROUP) {
        const int64_t many = MIN(GROUP, m - start);
        const uint64_t *ids = wanted + 2 * start;
        for (int64_t i = 0; i < many; i++) {
            places[i] = (int64_t)(((ids[2 * i] >> 32) * (uint64_t)n) >> 32);
            FETCH(firsts + places[i]);
        }
        for (int round = 0; round < 2; round++) {
            for (int64_t i = 0; i < many; i++) {
                const int64_t off = (int64_t)(ids[2 * i] >> 32) - (int64_t)(firsts[places[i]] >> 32);
                places[i] = bounded(places[i] + off * n / ((int64_t)1 << 32), 0, n - 1);
                FETCH(firsts + places[i]);
            }
        }
        for (int64_t i = 0; i < many; i++) {
            places[i] = below(n, firsts, ids[2 * i], places[i]);
            FETCH(seconds + MIN(places[i], n - 1));
            FETCH(weights + MIN(places[i], n - 1));
        }
        for (int64_t i = 0; i < many; i++) {
            int64_t total = 0;
            for (int64_t place = places[i]; place < places[i] + tie; place++) {
                const int64_t inside = MIN(place, n - 1);
                const int64_t hit = (place < n) & (firsts[inside] == ids[2 * i]) & (seconds[inside] == ids[2 * i + 1]);
                total |= -hit & weights[inside];
            }
            found[start + i] = total;
        }
    }
}

/* Merge two lists of distinct identities in order, of n and of m, into one: weights of equal ones add up, and what
   cancels is left out. Returns how many there are; how many share one first word at the most goes to `tie`. */
EXPORT int64_t wpinq_merge(int64_t n, const uint64_t *firsts, const uint64_t *seconds, const int64_t *weights,
                           int64_t m, const uint64_t *other_firsts, const uint64_t *other_seconds,
                           const int64_t *other_weights, uint64_t *to_firsts, uint64_t *to_seconds, int64_t *to_weights,
                           int64_t *tie) {
    int64_t found = 0, i = 0, j = 0, run = 0;
    *tie = 0;
    while (i < n || j < m) {
        int own = i < n, other = j < m; /* whose identity is next */
        if (own && other && firsts[i] != other_firsts[j]) {
            own = firsts[i] < other_firsts[j];
            other = !own;
        } else if (own && other && seconds[i] != other_seconds[j]) {
            own = seconds[i] < other_seconds[j];
            other = !own;
        }
        const uint64_t first = own ? firsts[i] : other_firsts[j], second = own ? seconds[i] : other_seconds[j];
        uint64_t weight = 0;
        if (own) weight += (uint64_t)weights[i++];
        if (other) weight += (uint64_t)other_weights[j++];
        if (!weight) continue;
        run = found && to_firsts[found - 1] == first ? run + 1 : 1;
        *tie = MAX(*tie, run);
        to_firsts[found] = first;
        to_seconds[found] = second;
        to_weights[found++] = (int64_t)weight;
    }
    return found;
}
