/* A Markov chain over the simple graphs with given degrees: graphs/simple.py says what a step is. */

#include "common.h"

typedef struct { double (*next)(void *state); void *state; } Draws;

/* Row b of `other` has the neighbours of b; `mate` is the place of the same edge in the other row. `near` and `far` have
   the places in the rows of a and of y, plus one; `change` is of the triangles of the nodes that were touched. */
typedef struct {
    Ints starts;
    Indices owner, other, mate;
    Ints triangles, crowd, share;
    Floats closing, mix;
    Indices octave;
    int32_t *near, *far, *change, *listed, *touched;
    int64_t buckets, end;
    Indices ranks;
    double *moved;
    int32_t *cells;
    int64_t pairs, triples, found;
} Chain;

/* Two edges a-x and c-y at places s and r, to become a-c and x-y; what is found on the way. */
typedef struct { int32_t a, x, c, y; int64_t s, r; double forth, back; } Swap;

/* Row x, or c: the neighbour that it loses, whose row is marked in `lost`, and the one that it gets. */
typedef struct {
    int32_t node, from, to, skip;
    const int32_t *lost, *won;
    int64_t fewer, more, fresh;
    double less, plus;
} Row;

static inline double degree(const Chain *g, int32_t node) {
    return (double)(g->starts.at[node + 1] - g->starts.at[node]);
}

static inline int64_t edge(const Chain *g, int64_t place) { return MIN(place, (int64_t)g->mate.at[place]); }

static void mark(const Chain *g, int32_t *marks, int32_t node, int32_t on) {
    for (int64_t k = g->starts.at[node]; k < g->starts.at[node + 1]; k++)
        marks[g->other.at[k]] = on ? (int32_t)(k + 1) : 0;
}

static inline void touch(Chain *g, int32_t node, int64_t by) {
    if (!g->listed[node]) { g->listed[node] = 1; g->touched[g->end++] = node; }
    g->change[node] += (int32_t)by;
}

static inline void cell(Chain *g, int64_t at, double by) {
    if (g->moved[at] == 0) g->cells[g->found++] = (int32_t)at;
    g->moved[at] += by;
}

static inline int64_t dense(const Chain *g) { return g->buckets * g->buckets + g->buckets + 1; }

/* An edge more, or less, in its cells of the joint degrees. */
static void pair(Chain *g, int32_t a, int32_t b, double sign) {
    const int64_t i = g->ranks.at[a], j = g->ranks.at[b];
    if (i < 0 || j < 0) return;
    const double by = sign / (2 + 2 * degree(g, a) + 2 * degree(g, b));
    cell(g, dense(g) + i * g->pairs + j, by);
    cell(g, dense(g) + j * g->pairs + i, by);
}

/* A triangle more, or less, in the cell of the degrees of its corners. */
static void triple(Chain *g, int32_t a, int32_t b, int32_t c, double sign) {
    const int32_t *const ranks = g->ranks.at + (g->starts.length - 1);
    const int64_t p = ranks[a], q = ranks[b], r = ranks[c];
    const int64_t low = MIN(p, MIN(q, r)), high = MAX(p, MAX(q, r)), middle = p + q + r - low - high;
    if (low < 0) return;
    const double da = degree(g, a), db = degree(g, b), dc = degree(g, c);
    const int64_t place = high * (high + 1) * (high + 2) / 6 + middle * (middle + 1) / 2 + low;
    cell(g, dense(g) + g->pairs * g->pairs + place, sign * 3 / (da * da + db * db + dc * dc));
}

/* The common neighbours of a row with the marked ones; whether it has `whom`. */
static int32_t compare(Chain *g, Row *row, int32_t whom) {
    int32_t met = 0;
    for (int64_t k = g->starts.at[row->node]; k < g->starts.at[row->node + 1]; k++) {
        const int32_t z = g->other.at[k];
        met |= z == whom;
        if (row->lost[z]) { row->fewer++; row->less += g->closing.at[z]; touch(g, z, -1);
            if (g->triples) triple(g, row->node, row->from, z, -1); }
        if (row->won[z] && z != row->from && z != row->skip) {
            row->more++;
            row->plus += g->closing.at[z];
            row->fresh += g->share.at[z];
            touch(g, z, 1);
            if (g->triples) triple(g, row->node, row->to, z, 1);
        }
    }
    return met;
}

/* The chances that the wedge proposal has of this swap, and of the one back; up to a factor. */
static void chances(Chain *g, Swap *w, const Row *x, const Row *c, int32_t x_c) {
    const double *const one = g->closing.at;
    const int32_t a_y = g->near[w->y];
    const double by_y = a_y ? one[w->y] : 0, by_a = a_y ? one[w->a] : 0;
    const double by_x = x_c ? one[w->x] : 0, by_c = x_c ? one[w->c] : 0;
    const double da = degree(g, w->a), dx = degree(g, w->x), dc = degree(g, w->c), dy = degree(g, w->y);
    w->forth = (c->plus + by_x + by_y) / (da * dc) + (x->plus + by_a + by_c) / (dx * dy);
    w->back = (x->less + by_c + by_y) / (da * dx) + (c->less + by_a + by_x) / (dc * dy);
}

/* How the counts would move, into `moved`. */
static void movement(const Chain *g, const Swap *w, double *moved) {
    const int64_t k = g->buckets;
    double *const middle = moved + k * k, whole[64] = {0}, above = 0, total = 0;
    const double *const a = g->mix.at + w->a * k, *const y = g->mix.at + w->y * k;
    const double *const c = g->mix.at + w->c * k, *const x = g->mix.at + w->x * k;
    for (int64_t i = 0; i < k; i++) {
        const double u = a[i] - y[i], v = c[i] - x[i];
        moved[i * k + i] = u * v / 2;
        for (int64_t j = i + 1; j < k; j++) moved[i * k + j] = (u * (c[j] - x[j]) + (a[j] - y[j]) * v) / 2;
        middle[i] = 0;
    }
    for (int64_t i = 0; i < g->end; i++) {
        const int32_t z = g->touched[i], octave = g->octave.at[z];
        if (!g->change[z]) continue;
        const double d = degree(g, z), square = d * d, by = (double)g->change[z];
        const double old = (double)g->triangles.at[z], new = old + by;
        const double step = new * d / (square + new) - old * d / (square + old);
        whole[octave] += step * g->mix.at[z * k];
        middle[octave] += step * g->mix.at[z * k + octave];
        total += by * g->mix.at[z * k];
    }
    for (int64_t i = k - 1; i >= 0; i--) {
        middle[i] += above * (double)((int64_t)1 << i);
        above += whole[i];
    }
    middle[k] = total;
}

static inline double off(double gap, double slack) {
    gap = fabs(gap);
    return gap < slack ? gap * gap / (2 * slack) : gap - slack / 2;
}

static inline double costs(double by, int64_t i, Floats gap, Floats weight, Floats slack) {
    return weight.at[i] * (off(gap.at[i] + by, slack.at[i]) - off(gap.at[i], slack.at[i]));
}

/* How much worse the answers are met. The cells that changed, each once, and by how much: behind the others in `moved`. */
static double worse(Chain *g, Floats gap, Floats weight, Floats slack) {
    double sum = 0, *const by = g->moved + gap.length;
    for (int64_t i = 0; i < dense(g); i++)
        if (g->moved[i] != 0) sum += costs(g->moved[i], i, gap, weight, slack);
    int64_t end = 0;
    for (int64_t k = 0; k < g->found; k++) {
        const int32_t at = g->cells[k];
        if (g->moved[at] == 0) continue;
        g->cells[end] = at;
        by[end++] = g->moved[at];
        sum += costs(g->moved[at], at, gap, weight, slack);
        g->moved[at] = 0;
    }
    g->found = end;
    return MAX(sum, -700);
}

/* Bring up to date what the paths of two edges weigh at each edge that closes them, or take it back. */
static void crowd(const Chain *g, const Row *row, int64_t by) {
    const int64_t *const share = g->share.at;
    for (int64_t k = g->starts.at[row->node]; k < g->starts.at[row->node + 1]; k++) {
        const int32_t z = g->other.at[k];
        if (row->lost[z]) {
            g->crowd.at[edge(g, k)] -= by * share[row->from];
            g->crowd.at[edge(g, row->lost[z] - 1)] -= by * share[row->node];
        }
        if (row->won[z] && z != row->from && z != row->skip) {
            g->crowd.at[edge(g, k)] += by * share[row->to];
            g->crowd.at[edge(g, row->won[z] - 1)] += by * share[row->node];
        }
    }
}

/* The most that paths weigh at an edge that more of them close than before. */
static int64_t fullest(const Chain *g, const Row *row) {
    int64_t most = row->fresh;
    for (int64_t k = g->starts.at[row->node]; k < g->starts.at[row->node + 1]; k++) {
        const int32_t z = g->other.at[k];
        if (!row->won[z] || z == row->from || z == row->skip) continue;
        most = MAX(most, g->crowd.at[edge(g, k)]);
        most = MAX(most, g->crowd.at[edge(g, row->won[z] - 1)]);
    }
    return most;
}

static void join(Chain *g, int64_t one, int64_t two, int64_t weighing) {
    g->other.at[one] = g->owner.at[two];
    g->other.at[two] = g->owner.at[one];
    g->mate.at[one] = (int32_t)two;
    g->mate.at[two] = (int32_t)one;
    g->crowd.at[MIN(one, two)] = weighing;
}

/* Two edges: random ones, or such that close a random path of two edges. */
static int32_t propose(const Chain *g, Draws draws, double closing, Swap *w) {
    const double places = (double)g->other.length;
    const int32_t wedge = draws.next(draws.state) < closing;
    w->s = (int64_t)(draws.next(draws.state) * places);
    if (wedge) {
        const int32_t b = g->owner.at[w->s], a = g->other.at[w->s];
        if (degree(g, b) < 2) return 0;
        int64_t to = g->starts.at[b] + (int64_t)(draws.next(draws.state) * (degree(g, b) - 1));
        to += to >= w->s;
        const int32_t c = g->other.at[to];
        w->s = g->starts.at[a] + (int64_t)(draws.next(draws.state) * degree(g, a));
        w->r = g->starts.at[c] + (int64_t)(draws.next(draws.state) * degree(g, c));
    } else {
        w->r = (int64_t)(draws.next(draws.state) * places);
    }
    w->a = g->owner.at[w->s], w->x = g->other.at[w->s];
    w->c = g->owner.at[w->r], w->y = g->other.at[w->r];
    return w->a != w->c && w->x != w->y && w->a != w->y && w->c != w->x;
}

/* Make the swap, unless paths would weigh more than one at an edge. */
static int64_t make(Chain *g, const Swap *w, const Row *x, const Row *c, int64_t most) {
    const int64_t p = g->mate.at[w->s], q = g->mate.at[w->r];
    crowd(g, x, 1);
    crowd(g, c, 1);
    if (fullest(g, x) > most || fullest(g, c) > most) {
        crowd(g, x, -1);
        crowd(g, c, -1);
        return 0;
    }
    join(g, w->s, w->r, c->fresh);
    join(g, p, q, x->fresh);
    for (int64_t i = 0; i < g->end; i++) g->triangles.at[g->touched[i]] += g->change[g->touched[i]];
    return 1;
}

EXPORT int64_t wpinq_walk(Ints starts, Indices owner, Indices other, Indices mate, Ints triangles, Ints crowding,
                          Ints share, Floats closing, Floats mix, Indices octave, Indices ranks, Floats gap,
                          Floats weight, Floats slack, Floats moved, Indices room, int64_t buckets, int64_t most,
                          int64_t pairs, int64_t triples, double wedges, int64_t steps,
                          Draws draws) {
    const int64_t nodes = starts.length - 1;
    int32_t *const at = room.at;
    Chain g = {starts, owner, other, mate, triangles, crowding, share, closing, mix, octave,
               at, at + nodes, at + 2 * nodes, at + 3 * nodes, at + 4 * nodes, buckets, 0,
               ranks, moved.at, at + 5 * nodes, pairs, triples, 0};
    const double edges = (double)other.length / 2, any = (1 - wedges) / edges;
    int64_t taken = 0;
    for (int64_t step = 0; step < steps; step++) {
        Swap w;
        if (!propose(&g, draws, wedges, &w)) continue;
        mark(&g, g.near, w.a, 1);
        mark(&g, g.far, w.y, 1);
        if (!g.near[w.c] && !g.far[w.x]) {
            Row x = {w.x, w.a, w.y, w.c, g.near, g.far, 0, 0, 0, 0, 0}, c = {w.c, w.y, w.a, w.x, g.far, g.near, 0, 0, 0, 0, 0};
            const int32_t x_c = compare(&g, &x, w.c);
            compare(&g, &c, w.x);
            touch(&g, w.a, c.more - x.fewer);
            touch(&g, w.c, c.more - c.fewer);
            touch(&g, w.x, x.more - x.fewer);
            touch(&g, w.y, x.more - c.fewer);
            if (pairs) {
                pair(&g, w.a, w.x, -1);
                pair(&g, w.c, w.y, -1);
                pair(&g, w.a, w.c, 1);
                pair(&g, w.x, w.y, 1);
            }
            chances(&g, &w, &x, &c, x_c);
            movement(&g, &w, moved.at);
            const double odds = (any + wedges * w.back) / (any + wedges * w.forth);
            if (draws.next(draws.state) < odds * exp(-worse(&g, gap, weight, slack)) && make(&g, &w, &x, &c, most)) {
                mark(&g, g.near, w.a, 0); /* the rows that were marked have changed: a has c instead of x */
                mark(&g, g.far, w.y, 0);
                g.near[w.x] = g.far[w.c] = 0;
                for (int64_t i = 0; i < dense(&g); i++) gap.at[i] += moved.at[i];
                for (int64_t k = 0; k < g.found; k++) gap.at[g.cells[k]] += moved.at[gap.length + k];
                taken++;
            } else {
                mark(&g, g.near, w.a, 0);
                mark(&g, g.far, w.y, 0);
            }
            for (int64_t i = 0; i < g.end; i++) g.change[g.touched[i]] = g.listed[g.touched[i]] = 0;
            g.end = g.found = 0;
        } else {
            mark(&g, g.near, w.a, 0);
            mark(&g, g.far, w.y, 0);
        }
    }
    return taken;
}
