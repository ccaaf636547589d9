/* Tables of weights by identity. */

/* Add n weights to a table of 2^bits slots (identity, weight), chosen by the first bits of the identity behind those
   that all of them share. The identity zero marks an empty slot and has one of its own, behind the others. Stops when
   `limit` slots are in use. Returns how many were added. */
INLINE int64_t tally(uint64_t *slots, int32_t bits, int32_t shared, int64_t *used, int64_t limit, int64_t n,
                     const uint64_t *ids, const int64_t *weights) {
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < n; i++) {
        if (*used >= limit) return i;
#ifdef __GNUC__
        if (i + 16 < n) __builtin_prefetch(slots + 3 * (ids[2 * i + 32] << shared >> (64 - bits)), 1);
#endif
        const uint64_t first = ids[2 * i], second = ids[2 * i + 1];
        uint64_t at = first << shared >> (64 - bits);
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

/* Copy all that a table of 2^bits slots holds, sorted by identity, its first and second words apart. Returns how many
   there were.

   Slots follow the order of identities but within a cluster of neighbours, and where a cluster runs over the end; so
   the walk begins behind an empty slot, and each identity moves down past the few that should follow it. */
INLINE int64_t items(const uint64_t *slots, int32_t bits, uint64_t *firsts, uint64_t *seconds, int64_t *weights) {
    const int64_t count = (int64_t)1 << bits;
    int64_t found = 0, start = 0;
    if (slots[3 * count + 2]) {
        firsts[0] = seconds[0] = 0;
        weights[found++] = (int64_t)slots[3 * count + 2];
    }
    while (slots[3 * start] | slots[3 * start + 1]) start++;
    for (int64_t i = start; i < start + count; i++) {
        const uint64_t *slot = slots + 3 * (i & (count - 1));
        if (!(slot[0] | slot[1])) continue;
        int64_t to = found++;
        for (; to && (firsts[to - 1] > slot[0] || (firsts[to - 1] == slot[0] && seconds[to - 1] > slot[1])); to--) {
            firsts[to] = firsts[to - 1];
            seconds[to] = seconds[to - 1];
            weights[to] = weights[to - 1];
        }
        firsts[to] = slot[0];
        seconds[to] = slot[1];
        weights[to] = (int64_t)slot[2];
    }
    return found;
}
