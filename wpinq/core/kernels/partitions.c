/* Adding up more identities than a cache holds: rows wait in pages by the first bits of their identity, and each
   partition is added up by itself, in a table that fits. */

#include "common.h"

#include "sums.h"

/* A page is 4096 bytes: the identities of its rows, their weights, and two words that nobody reads. */
#define ROWS 170
#define WEIGHTS(page) ((int64_t *)(page) + 2 * ROWS)

/* Pages of the caller. Page i is at[i]; of its partition's pages the last one may be filled partly. */
typedef struct {
    uint64_t **at;
    int64_t *free, left;      /* pages that are free, the next one last */
    int32_t *partition, *filled;
    int64_t *current;         /* of each partition the page that is being filled, or -1 */
    int32_t bits;             /* there are 2^bits partitions */
} Pages;

INLINE void append(Pages *p, uint64_t first, uint64_t second, int64_t weight) {
    const uint64_t partition = first >> (64 - p->bits);
    int64_t page = p->current[partition];
    if (page < 0 || p->filled[page] == ROWS) {
        page = p->current[partition] = p->free[--p->left];
        p->partition[page] = (int32_t)partition;
        p->filled[page] = 0;
    }
    const int32_t row = p->filled[page]++;
    p->at[page][2 * row] = first;
    p->at[page][2 * row + 1] = second;
    WEIGHTS(p->at[page])[row] = weight;
}

/* Append all that a table of 2^bits slots holds, and empty it. There are free pages enough, or this writes where it
   must not: one for each partition, and one for each ROWS slots. */
EXPORT void wpinq_scatter(Pages *p, uint64_t *slots, int32_t bits) {
    const int64_t count = (int64_t)1 << bits;
    for (int64_t i = 0; i < count; i++) {
        uint64_t *slot = slots + 3 * i;
        if (slot[0] | slot[1]) append(p, slot[0], slot[1], (int64_t)slot[2]);
    }
    if (slots[3 * count + 2]) append(p, 0, 0, (int64_t)slots[3 * count + 2]);
    memset(slots, 0, 24 * ((size_t)count + 1));
}

/* Append n rows, under the same condition; the words of an identity lie `step` apart. */
EXPORT void wpinq_append(Pages *p, int64_t n, const uint64_t *firsts, const uint64_t *seconds, int64_t step,
                         const int64_t *weights) {
    for (int64_t i = 0; i < n; i++) append(p, firsts[step * i], seconds[step * i], weights[i]);
}

/* Add up rows by identity, partition by partition: partition j has the pages order[ends[j]] up to order[ends[j + 1]].
   The table has room for the largest of them, its slots used up to 7/10, and one more. Results are sorted by identity.
   Returns how many there are. */
EXPORT int64_t wpinq_fold(const Pages *p, int64_t partitions, const int64_t *ends, const int64_t *order,
                          uint64_t *table, uint64_t *firsts, uint64_t *seconds, int64_t *weights) {
    int64_t found = 0;
    for (int64_t j = 0; j < partitions; j++) {
        int64_t rows = 0, used = 0;
        for (int64_t i = ends[j]; i < ends[j + 1]; i++) rows += p->filled[order[i]];
        if (!rows) continue;
        int32_t bits = 4;
        while (((int64_t)7 << bits) / 10 <= rows) bits++;
        memset(table, 0, 24 * (((size_t)1 << bits) + 1));
        for (int64_t i = ends[j]; i < ends[j + 1]; i++) {
            const uint64_t *page = p->at[order[i]];
            tally(table, bits, p->bits, &used, INT64_MAX, p->filled[order[i]], page, WEIGHTS(page));
        }
        found += items(table, bits, firsts + found, seconds + found, weights + found);
    }
    return found;
}
