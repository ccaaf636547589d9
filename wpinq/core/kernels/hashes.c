/* SipHash-2-4-128 over many short messages. */

#include "common.h"

#define ROTATE(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
#define ROUND(v) do { \
    v[0] += v[1]; v[1] = ROTATE(v[1], 13) ^ v[0]; v[0] = ROTATE(v[0], 32); \
    v[2] += v[3]; v[3] = ROTATE(v[3], 16) ^ v[2]; \
    v[0] += v[3]; v[3] = ROTATE(v[3], 21) ^ v[0]; \
    v[2] += v[1]; v[1] = ROTATE(v[1], 17) ^ v[2]; v[2] = ROTATE(v[2], 32); \
} while (0)

#define LANES 8
#define AHEAD 32                       /* texts that are fetched before they are hashed: each may lie anywhere */
#define EACH(l) for (int l = 0; l < LANES; l++)

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
#ifdef __GNUC__
            if (i + l + AHEAD < n) __builtin_prefetch(viewed(views + 16 * (i + l + AHEAD), buffers, family).bytes);
#endif
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
