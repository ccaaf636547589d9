/* Random graphs with given degrees: `take` of gale_ryser.py, and the loops of curveball.py. The Python of the same
   name says what each does. */

#include "common.h"

/* NumPy's generator: the same numbers, in the same order, as its method `random`. */
typedef struct { double (*next)(void *state); void *state; } Draws;

/* The first place from `low` to `high` of an ascending list that holds a value or more. */
static inline int64_t first(const int32_t *ascending, int64_t low, int64_t high, int64_t value) {
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (ascending[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

static inline int64_t first_long(const int64_t *ascending, int64_t low, int64_t high, int64_t value) {
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (ascending[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

EXPORT int64_t wpinq_take(Ints degrees, Ints left, Indices taken) {
    int64_t end = 0;
    for (int64_t i = 0; i < degrees.length; i++) {
        const int64_t degree = degrees.at[i];
        if (degree > left.length) return 0;
        const int64_t level = left.at[degree - 1];
        const int64_t low = first_long(left.at, 0, left.length, level);
        const int64_t high = first_long(left.at, 0, left.length, level + 1);
        for (int64_t k = 0; k < low; k++) { left.at[k]++; taken.at[end++] = (int32_t)k; }
        for (int64_t k = high - (degree - low); k < high; k++) { left.at[k]++; taken.at[end++] = (int32_t)k; }
    }
    for (int64_t k = 0; k < left.length; k++)
        if (left.at[k]) return 0;
    return 1;
}

/* Sort each list, by Shell's way. */
EXPORT int64_t wpinq_arrange(Ints starts, Indices list) {
    int32_t *const items = list.at;
    int64_t repeats = 0;
    for (int64_t owner = 0; owner + 1 < starts.length; owner++) {
        const int64_t low = starts.at[owner], high = starts.at[owner + 1];
        int64_t gap = 1;
        while (3 * gap < high - low) gap = 3 * gap + 1;
        for (; gap; gap /= 3) {
            for (int64_t k = low + gap; k < high; k++) {
                const int32_t item = items[k];
                int64_t at = k;
                for (; at >= low + gap && items[at - gap] > item; at -= gap) items[at] = items[at - gap];
                items[at] = item;
            }
        }
        for (int64_t k = low + 1; k < high; k++) repeats += items[k] == items[k - 1];
    }
    return repeats;
}

static int64_t move(int32_t *items, int64_t low, int64_t high, int64_t at, int32_t item) {
    const int64_t begin = at;
    for (; at > low && items[at - 1] > item; at--) items[at] = items[at - 1];
    for (; at + 1 < high && items[at + 1] < item; at++) items[at] = items[at + 1];
    items[at] = item;
    return at > begin ? at - begin : begin - at;
}

EXPORT int64_t wpinq_untangle(Ints starts, Indices list, Draws draws, int64_t budget, int64_t moves) {
    int32_t *const items = list.at;
    for (int64_t owner = 0; owner + 1 < starts.length; owner++) {
        const int64_t low = starts.at[owner], high = starts.at[owner + 1];
        for (int64_t k = low + 1; k < high;) {
            const int32_t item = items[k];
            if (item != items[k - 1]) { k++; continue; }
            if (budget-- < 0) return 0;
            const int64_t other = (int64_t)(draws.next(draws.state) * (double)list.length);
            const int64_t partner = first_long(starts.at, 0, starts.length, other + 1) - 1;
            const int64_t begin = starts.at[partner], end = starts.at[partner + 1];
            const int32_t wanted = items[other];
            const int64_t near = first(items, low, high, wanted), far = first(items, begin, end, item);
            if ((near == high || items[near] != wanted) && (far == end || items[far] != item))
                budget -= (move(items, low, high, k, wanted) + move(items, begin, end, other, item)) / moves;
        }
    }
    return 1;
}

static void deal(const int32_t *held, int64_t middle, int64_t end, int32_t *mine, int32_t *theirs, Draws draws) {
    int64_t x = 0, y = middle, both = 0;
    while (x < middle && y < end) {
        const int32_t left = held[x], right = held[y];
        both += left == right;
        x += left <= right;
        y += right <= left;
    }
    int64_t single = end - 2 * both, wanted = middle - both;
    for (x = 0, y = middle; x < middle || y < end;) {
        if (x < middle && y < end && held[x] == held[y]) {
            *mine++ = *theirs++ = held[x++];
            y++;
            continue;
        }
        const int32_t item = y == end || (x < middle && held[x] < held[y]) ? held[x++] : held[y++];
        if (draws.next(draws.state) * (double)single < (double)wanted) { *mine++ = item; wanted--; }
        else *theirs++ = item;
        single--;
    }
}

EXPORT void wpinq_trade_lists(Ints starts, Indices items, Indices order, Indices held, Draws draws) {
    for (int64_t k = 0; k + 1 < order.length; k += 2) {
        const int64_t i = starts.at[order.at[k]], j = starts.at[order.at[k + 1]];
        const int64_t middle = starts.at[order.at[k] + 1] - i, end = middle + starts.at[order.at[k + 1] + 1] - j;
        memcpy(held.at, items.at + i, (size_t)middle * sizeof(int32_t));
        memcpy(held.at + middle, items.at + j, (size_t)(end - middle) * sizeof(int32_t));
        deal(held.at, middle, end, items.at + i, items.at + j, draws);
    }
}
