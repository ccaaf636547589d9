/* What NumPy cannot do fast: SipHash-2-4-128 over many short messages, adding up by identity or by number, and one
   digit of much noise.

   Plain loops over buffers that the caller owns. Nothing is allocated, nothing can fail, and every function gives what
   its Python counterpart gives, bit for bit. Little-endian machines only. */

#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define ROTATE(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
#define ROUND(v) do { \
    v[0] += v[1]; v[1] = ROTATE(v[1], 13) ^ v[0]; v[0] = ROTATE(v[0], 32); \
    v[2] += v[3]; v[3] = ROTATE(v[3], 16) ^ v[2]; \
    v[0] += v[3]; v[3] = ROTATE(v[3], 21) ^ v[0]; \
    v[2] += v[1]; v[1] = ROTATE(v[1], 17) ^ v[2]; v[2] = ROTATE(v[2], 32); \
} while (0)

/* Eight messages at once where the processor has the registers; it is asked when the library is loaded. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif
#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#define LANES 8
#define EACH(l) for (int l = 0; l < LANES; l++)

/* Which source this was compiled from. */
EXPORT const char wpinq_source[] = WPINQ_SOURCE;

static inline void begin(uint64_t v[4], const uint64_t key[2]) {
    v[0] = 0x736f6d6570736575ULL ^ key[0];
    v[1] = 0x646f72616e646f6dULL ^ 0xee ^ key[1];
    v[2] = 0x6c7967656e657261ULL ^ key[0];
    v[3] = 0x7465646279746573ULL ^ key[1];
}

static inline void take(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    ROUND(v); ROUND(v);
    v[0] ^= word;
}

static inline void end(uint64_t v[4], uint64_t out[2]) {
    v[2] ^= 0xee;
    ROUND(v); ROUND(v); ROUND(v); ROUND(v);
    out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    ROUND(v); ROUND(v); ROUND(v); ROUND(v);
    out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

typedef uint64_t Lanes __attribute__((vector_size(8 * LANES)));

INLINE void begin_all(Lanes v[4], const uint64_t key[2]) {
    uint64_t one[4];
    begin(one, key);
    for (int j = 0; j < 4; j++) v[j] = (Lanes){0} + one[j];
}

INLINE void take_all(Lanes v[4], Lanes word) {
    v[3] ^= word;
    ROUND(v); ROUND(v);
    v[0] ^= word;
}

INLINE void end_all(Lanes v[4], uint64_t *out) {
    v[2] ^= 0xee;
    ROUND(v); ROUND(v); ROUND(v); ROUND(v);
    const Lanes first = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    ROUND(v); ROUND(v); ROUND(v); ROUND(v);
    const Lanes second = v[0] ^ v[1] ^ v[2] ^ v[3];
    EACH(l) { out[2 * l] = first[l]; out[2 * l + 1] = second[l]; }
}

/* Hash n messages of `count` words, closed by their length; word j of message i is words[j][i * steps[j]]. */
EXPORT WIDE void wpinq_hash_words(const uint64_t *key, int64_t n, int64_t count, const uint64_t *const *words,
                                  const int64_t *steps, uint64_t *out) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        Lanes v[4], word;
        begin_all(v, key);
        for (int64_t j = 0; j < count; j++) {
            EACH(l) word[l] = words[j][(i + l) * steps[j]];
            take_all(v, word);
        }
        end_all(v, out + 2 * i);
    }
    for (; i < n; i++) {
        uint64_t v[4];
        begin(v, key);
        for (int64_t j = 0; j < count; j++) take(v, words[j][i * steps[j]]);
        end(v, out + 2 * i);
    }
}

/* One text or bytes, followed by a family byte unless that is negative. */
typedef struct {
    const uint8_t *bytes;
    int64_t length, words;
    int32_t family;
} Message;

/* A message in Arrow's view layout: 16 bytes, of length and 12 bytes, or of length, prefix, buffer and offset. */
INLINE Message viewed(const uint8_t *view, const uint8_t *const *buffers, int32_t family) {
    int32_t place[4];
    memcpy(place, view, 16);
    const uint8_t *bytes = place[0] > 12 ? buffers[place[2]] + place[3] : view + 4;
    return (Message){bytes, place[0], (place[0] + (family >= 0)) / 8 + 1, family};
}

INLINE uint64_t last_bytes(const uint8_t *p, int64_t left) {
    uint32_t four = 0;
    uint16_t two = 0;
    uint64_t word = 0;
    if (left & 1) word = p[left & 6];
    if (left & 2) { memcpy(&two, p + (left & 4), 2); word = word << 16 | two; }
    if (left & 4) { memcpy(&four, p, 4); word = word << 32 | four; }
    return word;
}

/* Word j of a message, the last of which is closed by the length. */
INLINE uint64_t word_of(Message m, int64_t j) {
    const int64_t left = m.length - 8 * j;
    uint64_t word;
    if (left >= 8) {
        memcpy(&word, m.bytes + 8 * j, 8);
        return word;
    }
    word = left > 0 ? last_bytes(m.bytes + 8 * j, left) : 0;
    if (m.family >= 0 && left >= 0) word |= (uint64_t)m.family << 8 * left;
    if (j == m.words - 1) word |= (uint64_t)(m.length + (m.family >= 0)) << 56;
    return word;
}

INLINE void hash_one(const uint64_t *key, Message m, uint64_t *out) {
    uint64_t v[4];
    begin(v, key);
    for (int64_t j = 0; j < m.words; j++) take(v, word_of(m, j));
    end(v, out);
}

/* Hash n texts or bytes in Arrow's view layout: neighbours of one number of words at once, others one by one. */
EXPORT WIDE void wpinq_hash_views(const uint64_t *key, int64_t n, const uint8_t *views, const uint8_t *const *buffers,
                                  int32_t family, uint64_t *out) {
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t count = n - i < LANES ? n - i : LANES;
        Message m[LANES];
        int alike = count == LANES;
        for (int64_t l = 0; l < count; l++) {
            m[l] = viewed(views + 16 * (i + l), buffers, family);
            alike &= m[l].words == m[0].words;
        }
        if (!alike) {
            for (int64_t l = 0; l < count; l++) hash_one(key, m[l], out + 2 * (i + l));
            continue;
        }
        Lanes v[4], word;
        begin_all(v, key);
        for (int64_t j = 0; j < m[0].words; j++) {
            EACH(l) word[l] = word_of(m[l], j);
            take_all(v, word);
        }
        end_all(v, out + 2 * i);
    }
}

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

/* The exact shortest path: `lower` and `upper` of degrees/corridor.py, `sweep` and `trace` of degrees/path.py, which
   say what these do, statement by statement. */

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline int64_t bounded(int64_t value, int64_t low, int64_t high) {
    const int64_t raised = MAX(value, low);
    return MIN(raised, high);
}

EXPORT void wpinq_lower(int64_t columns, const int64_t *v, int64_t rows, const int64_t *h, int64_t unit, int64_t *lo) {
    int64_t split = 0, current = rows, edge = columns;
    while (split < columns && v[split] > split * unit) split++;
    for (int64_t c = 0; c < split; c++) {
        for (int64_t j = bounded(v[c], 0, rows * unit) / unit; j < current; j++)
            if (h[j] < (c + 1) * unit) current = j;
        lo[c] = current;
    }
    for (int64_t j = 0; j < current && edge > split; j++) {
        const int64_t first = bounded(h[j], 0, columns * unit) / unit;
        int64_t c = MAX(split, first);
        while (c < edge && v[c] >= (j + 1) * unit) c++;
        for (int64_t settled = c; settled < edge; settled++) lo[settled] = j;
        edge = MIN(edge, c);
    }
    for (int64_t c = split; c < edge; c++) lo[c] = current;
}

EXPORT void wpinq_upper(int64_t columns, const int64_t *v, int64_t rows, const int64_t *h, int64_t unit, int64_t *hi) {
    const int64_t block = 32, least = MIN(columns, rows);
    int64_t split = 0, edge = 0;
    while (split < least && v[split] > split * unit) split++;
    for (int64_t current = split, c = columns; c > 0;) {
        if (current == split && c >= block) {
            int64_t tallest = v[c - 1];
            for (int64_t k = c - block; k < c - 1; k++) tallest = MAX(tallest, v[k]);
            if (tallest <= split * unit) { c -= block; continue; }
        }
        c--;
        for (int64_t j = (bounded(v[c], 0, rows * unit) + unit - 1) / unit; j > current; j--)
            if (h[j - 1] > c * unit) current = j;
        if (current > split) {
            edge = MAX(edge, c + 1);
            hi[c] = current;
        }
    }
    for (int64_t j = split - 1; j >= 0; j--) {
        int64_t c = (bounded(h[j], 0, columns * unit) + unit - 1) / unit;
        while (c > edge && v[c - 1] <= j * unit) c--;
        for (int64_t settled = edge; settled < c; settled++) hi[settled] = j + 1;
        edge = MAX(edge, c);
    }
    for (int64_t c = edge; c < columns; c++) hi[c] = 0;
}

EXPORT void wpinq_sweep(int64_t columns, const int64_t *v, const int64_t *h, int64_t unit, int64_t e1, int64_t e2,
                        const int64_t *lo, const int64_t *hi, int64_t *best, int64_t *here, uint8_t *stop) {
    int64_t at = 0, before = columns ? hi[0] : 0;
    best[0] = 0;
    for (int64_t c = 0; c < columns; c++) {
        const int64_t low = lo[c], width = hi[c] - low, value = v[c], edge = c * unit;
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
            const int64_t right = 2 * (edge - bounded(h[low + y], -unit, edge + 2 * unit)) + unit;
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

EXPORT void wpinq_trace(int64_t columns, const int64_t *lo, const int64_t *hi, const uint8_t *stop, int64_t at,
                        int64_t *heights) {
    int64_t lowest = 0, highest = 0, height = 0;
    for (int64_t c = columns - 1; c >= 0; c--) {
        const int64_t low = lo[c], width = hi[c] - low;
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
        heights[c] = height;
    }
}
