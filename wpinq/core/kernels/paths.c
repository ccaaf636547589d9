/* The nearest staircase, exactly: `lower`, `upper` and `narrow` of corridor.py, `sweep` and `trace` of path.py, `pool`
   of squares.py. The Python of the same name says what each does, statement by statement. */

#include "common.h"

EXPORT void wpinq_lower(Ints v, Ints h, int64_t unit, Ints lo) {
    const int64_t columns = v.length, rows = h.length;
    int64_t split = 0, current = rows, edge = columns;
    while (split < columns && v.at[split] > split * unit) split++;
    for (int64_t c = 0; c < split; c++) {
        for (int64_t j = bounded(v.at[c], 0, rows * unit) / unit; j < current; j++)
            if (h.at[j] < (c + 1) * unit) current = j;
        lo.at[c] = current;
    }
    for (int64_t j = 0; j < current && edge > split; j++) {
        const int64_t first = bounded(h.at[j], 0, columns * unit) / unit;
        int64_t c = MAX(split, first);
        while (c < edge && v.at[c] >= (j + 1) * unit) c++;
        for (int64_t settled = c; settled < edge; settled++) lo.at[settled] = j;
        edge = MIN(edge, c);
    }
    for (int64_t c = split; c < edge; c++) lo.at[c] = current;
}

EXPORT void wpinq_upper(Ints v, Ints h, int64_t unit, Ints hi) {
    const int64_t block = 32, columns = v.length, rows = h.length, least = MIN(columns, rows);
    int64_t split = 0, edge = 0;
    while (split < least && v.at[split] > split * unit) split++;
    for (int64_t current = split, c = columns; c > 0;) {
        if (current == split && c >= block) {
            int64_t tallest = v.at[c - 1];
            for (int64_t k = c - block; k < c - 1; k++) tallest = MAX(tallest, v.at[k]);
            if (tallest <= split * unit) { c -= block; continue; }
        }
        c--;
        for (int64_t j = (bounded(v.at[c], 0, rows * unit) + unit - 1) / unit; j > current; j--)
            if (h.at[j - 1] > c * unit) current = j;
        if (current > split) {
            edge = MAX(edge, c + 1);
            hi.at[c] = current;
        }
    }
    for (int64_t j = split - 1; j >= 0; j--) {
        int64_t c = (bounded(h.at[j], 0, columns * unit) + unit - 1) / unit;
        while (c > edge && v.at[c - 1] <= j * unit) c--;
        for (int64_t settled = edge; settled < c; settled++) hi.at[settled] = j + 1;
        edge = MAX(edge, c);
    }
    for (int64_t c = edge; c < columns; c++) hi.at[c] = 0;
}

/* The weight of one cell: of column `value` at the level of its row, and of row `row` at the edge of its column. */
static inline int64_t cell(int64_t value, int64_t level, int64_t row, int64_t edge, int64_t unit, int64_t e1,
                           int64_t e2) {
    const int64_t column = value <= level ? unit : value >= level + unit ? -unit : 2 * (level - value) + unit;
    return e1 * column + e2 * bounded(2 * (edge - row) + unit, -unit, unit);
}

EXPORT void wpinq_narrow(Ints v, Ints h, int64_t unit, int64_t e1, int64_t e2, Ints had, Ints lacked, Ints tops,
                         int64_t block) {
    const int64_t rows = had.length - 1, beyond = (v.length + 1) * unit;
    int64_t limit = v.length;
    for (int64_t j = 0; j < rows; j++) {
        const int64_t level = j * unit, row = bounded(h.at[j], -unit, beyond);
        int64_t best = had.at[j], total = 0;
        for (int64_t c = best, last = MIN(limit, lacked.at[j]); c < last; c++) {
            total = MAX(total, 0) + cell(v.at[c], level, row, c * unit, unit, e1, e2);
            if (total <= 0) best = c + 1;
        }
        had.at[j] = limit = best;
    }
    limit = lacked.at[rows];
    for (int64_t j = rows - 1; j >= 0; j--) {
        const int64_t level = j * unit, row = bounded(h.at[j], -unit, beyond);
        int64_t best = lacked.at[j], total = 0, c = best;
        limit = MAX(limit, had.at[j]);
        while (c > limit) {
            if (total >= 0 && c % block == 0 && c - block >= limit && tops.at[c / block - 1] <= level) {
                best = c -= block;
                continue;
            }
            c--;
            total = MIN(total, 0) + cell(v.at[c], level, row, c * unit, unit, e1, e2);
            if (total >= 0) best = c;
        }
        lacked.at[j] = limit = best;
    }
}

EXPORT void wpinq_sweep(Ints v, Ints h, int64_t unit, int64_t e1, int64_t e2, Ints lo, Ints hi, Ints bests, Ints heres,
                        Bytes stops) {
    const int64_t columns = v.length;
    int64_t at = 0, before = columns ? hi.at[0] : 0, *const best = bests.at, *const here = heres.at;
    uint8_t *const stop = stops.at;
    best[0] = 0;
    for (int64_t c = 0; c < columns; c++) {
        const int64_t low = lo.at[c], width = hi.at[c] - low, value = v.at[c], edge = c * unit;
        int64_t cost = 0;
        if (width == 0) {
            best[0] = best[MAX(low - before, 0)];
            before = low;
            continue;
        }
        for (int64_t y = 0; y <= width; y++) {
            here[y] = cost + best[MAX(low + y - before, 0)];
            if (y == width) break;
            const int64_t level = (low + y) * unit;
            const int64_t left = 2 * (level - bounded(value, -unit, level + 2 * unit)) + unit;
            const int64_t right = 2 * (edge - bounded(h.at[low + y], -unit, edge + 2 * unit)) + unit;
            cost += e1 * bounded(left, -unit, unit) + e2 * bounded(right, -unit, unit);
        }
        stop[at + width] = 1;
        best[width] = here[width];
        for (int64_t y = width - 1; y >= 0; y--) {
            stop[at + y] = here[y] > best[y + 1] ? 0 : here[y] < best[y + 1] ? 1 : 2;
            best[y] = MIN(here[y], best[y + 1]);
        }
        at += width + 1;
        before = low;
    }
}

EXPORT void wpinq_trace(Ints lo, Ints hi, Bytes stops, int64_t at, Ints heights) {
    const uint8_t *const stop = stops.at;
    int64_t lowest = 0, highest = 0, height = 0;
    for (int64_t c = heights.length - 1; c >= 0; c--) {
        const int64_t low = lo.at[c], width = hi.at[c] - low;
        height = MAX(height, low);
        if (width > 0) {
            lowest = MAX(lowest, low);
            highest = MAX(highest, low);
            at -= width + 1;
            while (stop[at + lowest - low] == 0) lowest++;
            while (stop[at + highest - low] != 1) highest++;
            while (stop[at + height - low] == 0) height++;
            while (stop[at + height - low] == 2) {
                int64_t top = height + 1;
                while (stop[at + top - low] == 0) top++;
                if (top + height > (lowest + highest) / 2 * 2) break;
                height = top;
            }
        }
        heights.at[c] = height;
    }
}

EXPORT int64_t wpinq_pool(Floats values, Floats sums, Ints counts) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < values.length; i++) {
        double total = values.at[i];
        int64_t count = 1;
        while (blocks > 0 && sums.at[blocks - 1] * (double)count >= total * (double)counts.at[blocks - 1]) {
            blocks--;
            total += sums.at[blocks];
            count += counts.at[blocks];
        }
        sums.at[blocks] = total;
        counts.at[blocks++] = count;
    }
    return blocks;
}
