/* What repeats in a column or among a few identities, so that it is processed once. */

#include "common.h"

/* The latest value that a place of a small table met, and where its count stands, plus one; 0 is none. */
typedef struct { uint64_t first, second, at; } Met;

INLINE uint64_t place(uint64_t first, uint64_t second, int32_t bits) {
    const uint64_t odd = 0xd6e8feb86659fd93ULL;
    const uint64_t mixed = (first ^ 0x9e3779b97f4a7c15ULL) * odd;
    return (((mixed ^ mixed >> 32) ^ second) * odd) >> (64 - bits);
}

/* Where the bytes of a view are, if they are too long for the view itself. */
INLINE const uint8_t *afar(uint64_t second, const uint8_t *const *buffers) {
    return buffers[(uint32_t)second] + (second >> 32);
}

/* Count one row: with its value, if its place met that last, else as a value of its own. */
INLINE int64_t met(Met *slot, int same, uint64_t first, uint64_t second, int64_t row, int64_t found, int64_t *rows,
                   int64_t *counts) {
    if (same) {
        counts[slot->at - 1]++;
        return found;
    }
    *slot = (Met){first, second, (uint64_t)found + 1};
    rows[found] = row;
    counts[found] = 1;
    return found + 1;
}

/* For n texts or bytes in Arrow's view layout: some rows, and of how many rows each has the value, so that all rows are
   told of. A table of 2^bits places, all zero, finds most repetitions; a value may stand in the result twice.
   Returns how many rows there are in the result. */
EXPORT int64_t wpinq_repeats_of_views(int64_t n, const uint8_t *views, const uint8_t *const *buffers, int32_t bits,
                                      Met *table, int64_t *rows, int64_t *counts) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t first, second, last;
        memcpy(&first, views + 16 * i, 8);
        memcpy(&second, views + 16 * i + 8, 8);
        const uint32_t length = (uint32_t)first;
        last = second;
        if (length > 12) memcpy(&last, afar(second, buffers) + length - 8, 8);
        Met *slot = table + place(first, last, bits);
        int same = slot->at && slot->first == first;
        if (same) {
            same = slot->second == second
                || (length > 12 && !memcmp(afar(second, buffers), afar(slot->second, buffers), length));
        }
        found = met(slot, same, first, second, i, found, rows, counts);
    }
    return found;
}

/* The same for n words. */
EXPORT int64_t wpinq_repeats_of_words(int64_t n, const uint64_t *words, int32_t bits, Met *table, int64_t *rows,
                                      int64_t *counts) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        Met *slot = table + place(words[i], 0, bits);
        found = met(slot, slot->at && slot->first == words[i], words[i], 0, i, found, rows, counts);
    }
    return found;
}

/* Add up the weights of equal identities among n, exactly. A table of 2^bits places, all zero and more than n, holds the
   number of an identity, plus one. For each identity, in the order in which they come first: the row where it stood, and its
   sum. Returns how many there are. */
EXPORT int64_t wpinq_equal(int64_t n, const uint64_t *ids, const int64_t *weights, int32_t bits, int32_t *table,
                           int64_t *rows, int64_t *sums) {
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = place(ids[2 * i], ids[2 * i + 1], bits);
        while (table[at] && memcmp(ids + 2 * i, ids + 2 * rows[table[at] - 1], 16)) at = (at + 1) & mask;
        if (!table[at]) {
            rows[found] = i;
            sums[found] = 0;
            table[at] = (int32_t)++found;
        }
        sums[table[at] - 1] = (int64_t)((uint64_t)sums[table[at] - 1] + (uint64_t)weights[i]);
    }
    return found;
}
