/* What NumPy cannot do fast: SipHash-2-4-128 over many short messages, and adding up weights by identity.

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

/* Hash n messages of `count` words, closed by their length; word j of message i is words[j][i * steps[j]]. */
EXPORT void wpinq_hash_words(const uint64_t *key, int64_t n, int64_t count, const uint64_t *const *words,
                             const int64_t *steps, uint64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t v[4];
        begin(v, key);
        for (int64_t j = 0; j < count; j++) take(v, words[j][i * steps[j]]);
        end(v, out + 2 * i);
    }
}

static inline uint64_t last_bytes(const uint8_t *p, int64_t left) {
    uint64_t word = 0;
    for (int64_t i = 0; i < left; i++) word |= (uint64_t)p[i] << (8 * i);
    return word;
}

/* Hash n texts or bytes in Arrow's view layout (16 bytes each: length, then 12 bytes or prefix, buffer, offset), each
   followed by a family byte unless that is negative. */
EXPORT void wpinq_hash_views(const uint64_t *key, int64_t n, const uint8_t *views, const uint8_t *const *buffers,
                             int32_t family, uint64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *view = views + 16 * i, *p = view + 4;
        int32_t place[4];
        memcpy(place, view, 16);
        int64_t length = place[0], left = length & 7;
        if (length > 12) p = buffers[place[2]] + place[3];
        uint64_t v[4], word;
        begin(v, key);
        for (int64_t j = 0; j < length >> 3; j++, p += 8) {
            memcpy(&word, p, 8);
            take(v, word);
        }
        word = last_bytes(p, left);
        if (family >= 0) {
            word |= (uint64_t)family << (8 * left);
            length++;
            if (left == 7) {
                take(v, word);
                word = 0;
            }
        }
        take(v, word | (uint64_t)length << 56);
        end(v, out + 2 * i);
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
