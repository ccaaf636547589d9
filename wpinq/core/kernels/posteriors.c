/* The posterior over staircases: `weigh` and `frontier` of curves.py, `forward` and `backward` of marginals.py. The
   Python of the same name says what each does. */

#include "common.h"

#define FLOOR 1e-300

EXPORT void wpinq_weigh(Floats v, Floats h, double e1, double e2, Ints lo, Ints hi, double pull, Floats own) {
    double *out = own.at;
    for (int64_t c = 0; c < v.length; c++) {
        double sum = 0.0;
        for (int64_t y = lo.at[c]; y <= hi.at[c]; y++) {
            if (y > lo.at[c] && y <= h.length) sum += within(2 * ((double)c - h.at[y - 1]) + 1, -1.0, 1.0);
            *out++ = -e1 * fabs(v.at[c] - (double)y) - e2 * sum - pull * (double)y;
        }
    }
}

EXPORT void wpinq_frontier(Floats v, Floats h, double e1, double e2, Ints lengths, double against, Ints left,
                           Ints right) {
    for (int64_t j = 0; j < lengths.length; j++) {
        for (int way = 0; way < 2; way++) {
            int64_t c = lengths.at[j];
            double total = 0.0;
            while (total < against && (way ? c < v.length : c > 0)) {
                const int64_t at = way ? c : c - 1;
                const double column = within(2 * ((double)j - v.at[at]) + 1, -1.0, 1.0);
                const double row = j < h.length ? within(2 * ((double)at - h.at[j]) + 1, -1.0, 1.0) : 0.0;
                const double both = e1 * column + e2 * row;
                total += way ? both : -both;
                c += way ? 1 : -1;
            }
            (way ? right : left).at[j] = c;
        }
    }
}

/* What arrives at a height `above` the lowest but one of the column before, of which `tail` has `width` entries. */
static inline double arriving(const double *tail, int64_t width, int64_t above, double rest) {
    const int64_t low = MAX(above - 1, 0), high = MAX(above, 0);
    const double arrives = (low < width ? tail[low] : 0.0) - rest * (high < width ? tail[high] : 0.0);
    return MAX(arrives, FLOOR);
}

EXPORT void wpinq_forward(Floats shares, Ints lo, Ints hi, Ints starts, double step, Floats tails, Floats peaks,
                          Floats ended) {
    const double all = 1.0, *tail = &all, rest = 1 - step;
    int64_t before = lo.length ? hi.at[0] + 1 : 0, width = 1;
    for (int64_t c = 0; c < lo.length; c++) {
        const int64_t start = starts.at[c], count = hi.at[c] - lo.at[c] + 1;
        double *const here = tails.at + start, peak = 0.0, sum = 0.0;
        for (int64_t k = 0; k < count; k++) {
            here[k] = shares.at[start + k] * arriving(tail, width, lo.at[c] + k - before + 1, rest);
            peak = MAX(peak, here[k]);
        }
        for (int64_t k = count - 1; k >= 0; k--) here[k] = sum += here[k] / peak;
        const int64_t past = bounded(c + 2 - lo.at[c], 0, count);
        tail = here;
        width = count;
        before = lo.at[c];
        peaks.at[c] = peak;
        ended.at[c] = here[0] - rest * (past < count ? here[past] : 0.0);
    }
}

EXPORT void wpinq_backward(Floats shares, Floats tails, Floats highest, Floats ends, Ints lo, Ints hi, Ints starts,
                           double step, Floats work, Floats chances) {
    const double rest = 1 - step;
    double *const ahead = work.at, scale = -1e18;
    int64_t below = lo.length ? hi.at[lo.length - 1] : 0, last = 1;
    ahead[0] = ahead[1] = 0.0;
    for (int64_t c = lo.length - 1; c >= 0; c--) {
        const int64_t start = starts.at[c], count = hi.at[c] - lo.at[c] + 1;
        const double top = MAX(ends.at[c + 1], scale), stops = exp(ends.at[c + 1] - top), goes = exp(scale - top);
        double *const here = chances.at + start, peak = 0.0, sum = 0.0;
        for (int64_t k = 0; k < count; k++) {
            const int64_t y = lo.at[c] + k, upto = bounded(y - below + 1, 0, last), under = bounded(y - below, 0, last);
            const double on = ahead[upto] - rest * ahead[under];
            const double future = stops * (y > c + 1 ? step : 1.0) + goes * (y >= below ? MAX(on, FLOOR) : 0.0);
            here[k] = shares.at[start + k] * MAX(future, FLOOR);
            peak = MAX(peak, here[k]);
        }
        scale = top + highest.at[c] + log(peak);
        below = lo.at[c];
        last = count;
        ahead[0] = 0.0;
        for (int64_t k = 0; k < count; k++) {
            here[k] /= peak;
            ahead[k + 1] = sum += here[k];
        }
        if (c > 0) {
            const double *const past = tails.at + starts.at[c - 1];
            const int64_t width = start - starts.at[c - 1], offset = lo.at[c] - lo.at[c - 1] + 1;
            for (int64_t k = 0; k < count; k++) here[k] *= arriving(past, width, offset + k, rest);
        }
        sum = 0.0;
        for (int64_t k = 0; k < count; k++) here[k] = sum += here[k];
        for (int64_t k = 0; k < count; k++) here[k] /= sum;
    }
}
