/* Questions about people of whom records lie together, those of each in the order of their ranks. */

#include "common.h"

/* A row and the first word of its rank. */
typedef struct { uint64_t rank; uint32_t row, spare; } Item;

INLINE int before(const Item *a, const Item *b, const uint64_t *ranks) {
    if (a->rank != b->rank) return a->rank < b->rank;
    const uint64_t x = ranks[2 * (uint64_t)a->row + 1], y = ranks[2 * (uint64_t)b->row + 1];
    return x != y ? x < y : a->row < b->row;
}

/* Sort n items: by halves, which are merged; a few by insertion. */
static void sort_items(Item *items, Item *room, int64_t n, const uint64_t *ranks) {
    if (n <= 24) {
        for (int64_t i = 1; i < n; i++) {
            const Item item = items[i];
            int64_t at = i;
            for (; at > 0 && before(&item, items + at - 1, ranks); at--) items[at] = items[at - 1];
            items[at] = item;
        }
        return;
    }
    const int64_t half = n / 2;
    sort_items(items, room, half, ranks);
    sort_items(items + half, room, n - half, ranks);
    memcpy(room, items, half * sizeof(Item));
    for (int64_t left = 0, right = half, out = 0; left < half; out++)
        items[out] = right < n && before(items + right, room + left, ranks) ? items[right++] : room[left++];
}

/* Put the rows of each person together: `ends` has for each where its rows begin, and has where they end afterwards. */
EXPORT void wpinq_together(int64_t n, const int32_t *people, const uint64_t *ranks, int64_t *ends, Item *items) {
    for (int64_t i = 0; i < n; i++) {
#ifdef __GNUC__
        if (i + 24 < n) __builtin_prefetch(ends + people[i + 24], 1);
#endif
        const Item item = {ranks[2 * i], (uint32_t)i, 0};
        items[ends[people[i]]++] = item;
    }
}

/* Sort the items of each person by rank, as far as `some` says so; `room` has place for half of the most. Mark those that
   have the rank of the one before. Returns how many are marked. */
EXPORT int64_t wpinq_ranked(int64_t people, const int64_t *ends, const uint64_t *ranks, const uint8_t *some, Item *items,
                            Item *room, uint8_t *same) {
    int64_t marked = 0;
    for (int64_t person = 0, start = 0; person < people; start = ends[person++]) {
        if (some && !some[person]) continue;
        sort_items(items + start, room, ends[person] - start, ranks);
        for (int64_t i = start; i < ends[person]; i++) {
            same[i] = i > start && items[i].rank == items[i - 1].rank
                && ranks[2 * (uint64_t)items[i].row + 1] == ranks[2 * (uint64_t)items[i - 1].row + 1];
            marked += same[i];
        }
    }
    return marked;
}

/* Of the rows that stay let each person keep the first few: of one value the first `per`, of these the first `most`.
   `values` may be missing; `last` has -1 and `alike` a place for each of them. */
EXPORT void wpinq_first(int64_t n, const int32_t *people, const int32_t *values, int64_t per, int64_t most,
                        int32_t *last, int64_t *alike, uint8_t *stays) {
    for (int64_t start = 0, end; start < n; start = end) {
        const int32_t person = people[start];
        for (end = start + 1; end < n && people[end] == person;) end++;
        if (!values && end - start <= most) continue;  /* none of so few is one too many */
        for (int64_t i = start, count = 0; i < end; i++) {
            int64_t stay = stays[i] & (count < most);
            if (values && stay) {
                const int32_t value = values[i];
                alike[value] = last[value] == person ? alike[value] : 0;
                last[value] = person;
                stay = alike[value]++ < per;
            }
            stays[i] = (uint8_t)stay;
            count += stay;
        }
    }
}

/* Of the rows that stay let those stay whose number is marked. */
EXPORT void wpinq_marked(int64_t n, const int32_t *numbers, const uint8_t *marks, uint8_t *stays) {
    for (int64_t i = 0; i < n; i++) stays[i] &= marks[numbers[i]];
}

/* Count how many of the rows that stay have each number. */
EXPORT void wpinq_each(int64_t n, const int32_t *numbers, const uint8_t *stays, int64_t *counts) {
    for (int64_t i = 0; i < n; i++) counts[numbers[i]] += stays[i];
}
