/* Noise of many bins: a digit of discrete Laplace noise, a round of discrete Gaussian noise. */

#include "common.h"

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

/* A round for n bins by two words each: of the first, the high half chooses a block and the low half accepts; of the
   second, the high bit is the sign and `shift` low bits are the place in the block. `tables_of` in core/noise/gaussian.py
   proves the margin. Returns how many bins are open, which exact arithmetic must settle. */
EXPORT int64_t wpinq_bell(int64_t n, const uint64_t *words, int32_t shift, uint64_t rate, const uint32_t *start,
                          const uint32_t *limits, const uint32_t *exps, int64_t *noise, uint8_t *state) {
    const uint64_t within = ((uint64_t)1 << shift) - 1;
    int64_t open = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t first = words[2 * i], second = words[2 * i + 1], place = second & within;
        const uint32_t chosen = (uint32_t)(first >> 32);
        uint64_t block = start[chosen >> 24];
        while (limits[block] < chosen) block++; /* the last limit is all ones */
        const uint64_t part = shift >= 26 ? place >> (shift - 26) : place << (26 - shift);
        const uint64_t exponent = ((part * ((block << 27) + part) >> 28) * rate) >> 32;
        const uint64_t rest = exponent & (((uint64_t)1 << 22) - 1);
        const uint64_t factor = ((uint64_t)1 << 32) - rest + (rest * rest >> 33);
        const int64_t over = (int64_t)(uint32_t)first - (int64_t)(exps[exponent >> 22] * factor >> 31);
        const int64_t size = (int64_t)((block << shift) + place), negative = (int64_t)(second >> 63);
        const int undecided = limits[block] == chosen || (over <= 128 && over >= -128);
        const int refused = over >= 0 || (size == 0 && negative && shift);
        open += undecided;
        state[i] = undecided ? 2 : refused;
        noise[i] = undecided || refused ? 0 : negative ? -size : size;
    }
    return open;
}
