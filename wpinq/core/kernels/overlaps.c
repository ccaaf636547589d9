/* A Markov chain over the bipartite graphs with given degrees: graphs/bipartite.py says what a step is. */

#include "common.h"

typedef struct { double (*next)(void *state); void *state; } Draws;

/* Places are sorted by left node: `owner`, and `other`, the right one. `at` has the places of each right node, from
   `begin` on, and `back` where a place is in `at`. `keys` and `shared` are a table of what two right nodes share. */
typedef struct {
    Ints starts, begin;
    Indices owner, other, at, back;
    Ints keys, shared, used, share, total, sliced, cuts;
    Floats left, right;
    Indices octave;
    int32_t *near, *far;
    int64_t rows, columns, slices;
    double *whole;
} Chain;

/* Places s of u-p and r of v-q, to become u-q and v-p; the chances of the proposals there and back; how slices move. */
typedef struct {
    int64_t s, r;
    int32_t u, p, v, q;
    double forth, back;
    int64_t mine[64], theirs[64];
} Swap;

static inline int64_t fans(const Chain *g, int32_t z) { return g->begin.at[z + 1] - g->begin.at[z]; }

static inline int64_t degree(const Chain *g, int32_t u) { return g->starts.at[u + 1] - g->starts.at[u]; }

/* The place of a pair of right nodes in the table, or an empty one. */
static inline int64_t find(const Chain *g, int32_t a, int32_t b) {
    const int64_t nodes = g->begin.length - 1, key = (int64_t)MIN(a, b) * nodes + MAX(a, b) + 1;
    const int64_t mask = g->keys.length - 1;
    int64_t at = (int64_t)(((uint64_t)key * 0x9E3779B97F4A7C15ull) >> 20) & mask;
    while (g->keys.at[at] && g->keys.at[at] != key) at = (at + 1) & mask;
    return at;
}

static inline int64_t in_slice(const Chain *g, int64_t weight, int64_t k) {
    return bounded(weight - g->cuts.at[k], 0, g->cuts.at[k + 1] - g->cuts.at[k]);
}

/* What one right node's slices weigh, times `rate`, in the buckets of its degree. */
static inline void spread(const Chain *g, int32_t z, int64_t k, double weight, double *middle) {
    const int64_t at = g->octave.at[z] * g->slices + k;
    const double rest = (double)(fans(g, z) - ((int64_t)1 << g->octave.at[z]) + 1);
    g->whole[at] += weight;
    middle[at] += weight * rest;
}

/* The slices of what right node z shares with one other, which moves too. */
static inline void shift(const Chain *g, int32_t z, int64_t old, int64_t new, double room, int64_t *other, double *middle) {
    const int64_t low = MIN(old, new), high = MAX(old, new);
    int64_t k = 0;
    while (g->cuts.at[k + 1] <= low) k++;
    for (; k < g->slices && g->cuts.at[k] < high; k++) {
        const int64_t by = in_slice(g, new, k) - in_slice(g, old, k);
        other[k] += by;
        spread(g, z, k, (double)by / room, middle);
    }
}

/* How much more z shares with p after the swap: of u and v, one loses p and the other gets it. */
static inline int64_t gained(const Chain *g, const Swap *w, int32_t z) {
    return (g->far[z] ? g->share.at[w->v] : 0) - (g->near[z] ? g->share.at[w->u] : 0);
}

/* What the swap does to all that right nodes share, and the chances of the proposals. */
static void compare(const Chain *g, Swap *w, double unit, double *middle) {
    double forth[2] = {0}, back[2] = {0};
    const int32_t nodes[2] = {w->u, w->v}, skip[2] = {w->p, w->q};
    for (int32_t side = 0; side < 2; side++)
        for (int64_t k = g->starts.at[nodes[side]]; k < g->starts.at[nodes[side] + 1]; k++) {
            const int32_t z = g->other.at[k];
            if (z == skip[side]) continue;
            const int64_t by = gained(g, w, z), one = g->shared.at[find(g, z, w->p)], two = g->shared.at[find(g, z, w->q)];
            forth[side] += (double)(side ? one : two) / (double)fans(g, z);
            back[side] += (double)(side ? two - by : one + by) / (double)fans(g, z);
            if (!by || (side && g->near[z])) continue;
            const double room = (double)g->total.at[z] + (double)fans(g, z) * unit;
            shift(g, z, one, one + by, room, w->mine, middle);
            shift(g, z, two, two - by, room, w->theirs, middle);
        }
    const double p = (double)fans(g, w->p), q = (double)fans(g, w->q);
    const double u = (double)MAX(degree(g, w->u) - 1, 1), v = (double)MAX(degree(g, w->v) - 1, 1);
    w->forth = 2 / unit * (forth[0] / (u * q) + forth[1] / (v * p));
    w->back = 2 / unit * (back[0] / (u * p) + back[1] / (v * q));
}

/* The slices of a node whose own weight moves. */
static void end(const Chain *g, int32_t z, int64_t more, const int64_t *moved, double unit, double *middle) {
    const double degree = (double)fans(g, z) * unit, old = (double)g->total.at[z] + degree, new = old + (double)more;
    for (int64_t k = 0; k < g->slices; k++) {
        const int64_t sliced = g->sliced.at[z * g->slices + k];
        if (sliced || moved[k]) spread(g, z, k, (double)(sliced + moved[k]) / new - (double)sliced / old, middle);
    }
}

static inline int64_t shares(const Chain *g, int32_t u) { return (degree(g, u) - 1) * g->share.at[u]; }

/* How the counts would move, into `moved`. */
static void movement(const Chain *g, Swap *w, double unit, Floats moved) {
    const int64_t size = g->rows * g->columns;
    double *const middle = moved.at + size;
    for (int64_t i = 0; i < g->columns * g->slices; i++) middle[i] = g->whole[i] = 0;
    for (int64_t k = 0; k < g->slices; k++) w->mine[k] = w->theirs[k] = 0;
    compare(g, w, unit, middle);
    const int64_t more = shares(g, w->v) - shares(g, w->u);
    end(g, w->p, more, w->mine, unit, middle);
    end(g, w->q, -more, w->theirs, unit, middle);
    for (int64_t k = 0; k < g->slices; k++) {
        double above = 0;
        for (int64_t i = g->columns - 1; i >= 0; i--) {
            middle[i * g->slices + k] += above * (double)((int64_t)1 << i);
            above += g->whole[i * g->slices + k];
        }
    }
    const double *const u = g->left.at + w->u * g->rows, *const v = g->left.at + w->v * g->rows;
    const double *const p = g->right.at + w->p * g->columns, *const q = g->right.at + w->q * g->columns;
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t j = 0; j < g->columns; j++) moved.at[i * g->columns + j] = (u[i] - v[i]) * (q[j] - p[j]) / 4;
}

static inline double off(double gap, double slack) {
    gap = fabs(gap);
    return gap < slack ? gap * gap / (2 * slack) : gap - slack / 2;
}

static double worse(Floats moved, Floats gap, Floats weight, Floats slack) {
    double sum = 0;
    for (int64_t i = 0; i < moved.length; i++)
        if (moved.at[i] != 0 && weight.at[i] != 0)
            sum += weight.at[i] * (off(gap.at[i] + moved.at[i], slack.at[i]) - off(gap.at[i], slack.at[i]));
    return MAX(sum, -700);
}

static inline int64_t drawn(Draws draws, int64_t many) { return (int64_t)(draws.next(draws.state) * (double)many); }

/* Two pairs: random ones, or such that u gets what another has who has something that u has. */
static int32_t propose(const Chain *g, Draws draws, double wedges, Swap *w) {
    const int32_t wedge = draws.next(draws.state) < wedges;
    w->s = drawn(draws, g->other.length);
    if (wedge) {
        const int32_t u = g->owner.at[w->s];
        if (degree(g, u) < 2) return 0;
        int64_t k = g->starts.at[u] + drawn(draws, degree(g, u) - 1);
        k += k >= w->s;
        const int32_t z = g->other.at[k], other = g->owner.at[g->at.at[g->begin.at[z] + drawn(draws, fans(g, z))]];
        const int32_t q = g->other.at[g->starts.at[other] + drawn(draws, degree(g, other))];
        if (q == z) return 0;
        w->r = g->at.at[g->begin.at[q] + drawn(draws, fans(g, q))];
    } else {
        w->r = drawn(draws, g->other.length);
    }
    w->u = g->owner.at[w->s], w->p = g->other.at[w->s];
    w->v = g->owner.at[w->r], w->q = g->other.at[w->r];
    return w->u != w->v && w->p != w->q;
}

static void mark(const Chain *g, const Swap *w, int32_t on) {
    for (int64_t k = g->starts.at[w->u]; k < g->starts.at[w->u + 1]; k++) g->near[g->other.at[k]] = on;
    for (int64_t k = g->starts.at[w->v]; k < g->starts.at[w->v + 1]; k++) g->far[g->other.at[k]] = on;
}

static void add(Chain *g, int32_t z, int32_t whom, int64_t by) {
    const int64_t nodes = g->begin.length - 1, at = find(g, z, whom), old = g->shared.at[at];
    if (!g->keys.at[at]) {
        g->keys.at[at] = (int64_t)MIN(z, whom) * nodes + MAX(z, whom) + 1;
        g->used.at[0]++;
    }
    g->shared.at[at] = old + by;
    for (int64_t k = 0; k < g->slices; k++) g->sliced.at[z * g->slices + k] += in_slice(g, old + by, k) - in_slice(g, old, k);
}

static void make(Chain *g, const Swap *w) {
    const int32_t nodes[2] = {w->u, w->v}, skip[2] = {w->p, w->q};
    for (int32_t side = 0; side < 2; side++)
        for (int64_t k = g->starts.at[nodes[side]]; k < g->starts.at[nodes[side] + 1]; k++) {
            const int32_t z = g->other.at[k];
            const int64_t by = gained(g, w, z);
            if (z == skip[side] || !by || (side && g->near[z])) continue;
            add(g, z, w->p, by);
            add(g, z, w->q, -by);
        }
    for (int64_t k = 0; k < g->slices; k++) {
        g->sliced.at[w->p * g->slices + k] += w->mine[k];
        g->sliced.at[w->q * g->slices + k] += w->theirs[k];
    }
    const int64_t more = shares(g, w->v) - shares(g, w->u), a = g->back.at[w->s], b = g->back.at[w->r];
    g->total.at[w->p] += more;
    g->total.at[w->q] -= more;
    mark(g, w, 0);
    g->other.at[w->s] = w->q;
    g->other.at[w->r] = w->p;
    g->at.at[a] = (int32_t)w->r;
    g->at.at[b] = (int32_t)w->s;
    g->back.at[w->s] = (int32_t)b;
    g->back.at[w->r] = (int32_t)a;
}

EXPORT int64_t wpinq_wander(Ints starts, Ints begin, Indices owner, Indices other, Indices at, Indices back, Ints keys,
                            Ints shared, Ints used, Ints share, Ints total, Ints sliced, Ints cuts, Floats left,
                            Floats right, Indices octave, Floats gap, Floats weight, Floats slack, Floats moved,
                            Floats whole, Indices room, int64_t rows, int64_t columns, double unit, double wedges,
                            int64_t steps, Draws draws) {
    Chain g = {starts, begin, owner, other, at, back, keys, shared, used, share, total, sliced, cuts, left, right,
               octave, room.at, room.at + begin.length - 1, rows, columns, cuts.length - 1, whole.at};
    const double any = 2 * (1 - wedges) / (double)other.length;
    int64_t largest = 0;
    for (int64_t u = 0; u + 1 < starts.length; u++) largest = MAX(largest, starts.at[u + 1] - starts.at[u]);
    for (int64_t step = 0; step < steps; step++) {
        Swap w;
        if (used.at[0] + 4 * largest > keys.length / 2) return step;
        if (!propose(&g, draws, wedges, &w)) continue;
        mark(&g, &w, 1);
        if (!g.near[w.q] && !g.far[w.p]) {
            movement(&g, &w, unit, moved);
            const double odds = (any + wedges * w.back) / (any + wedges * w.forth);
            if (draws.next(draws.state) < odds * exp(-worse(moved, gap, weight, slack))) {
                make(&g, &w);
                for (int64_t i = 0; i < gap.length; i++) gap.at[i] += moved.at[i];
                used.at[1]++;
                continue;
            }
        }
        mark(&g, &w, 0);
    }
    return steps;
}
