/* What is kept of each person: the records of the least ranks, in a block of a pool for each.

   A pool is cut into blocks of items. A block holds a few items more than may stay; when it is full it is sorted and
   cut to those that stay, and from then on the largest rank among these is the limit that others must be below. */

#include "common.h"

#define PARTS 4                        /* bits that choose a table of identities */
#define CLASSES 40                     /* sizes of blocks, each twice the one before */
#define GIVEN ((uint64_t)1 << 63)      /* of an item's row: it was given out */
#define MOST_WORDS 5

/* Identities and a number of each, in open tables, one for each value of the first bits: 0 marks an empty slot. Each
   table grows by itself, so growing takes little memory; `full` names the one that must. */
typedef struct { uint32_t id[4], number; } Slot;
typedef struct { Slot *slots; int64_t size, used, limit; } Part;
typedef struct { Part parts[1 << PARTS]; int64_t used, full; } Numbers;

/* A person: ranks must not be above `limit`; items are at `at`, `count` of `room`, `kind` says which size that is. */
typedef struct { uint64_t limit; int64_t at; uint32_t count, room; int32_t kind, moved; } Person;

/* An item: two words of its rank, its row, and if values are bounded, two words of its value. */
typedef struct {
    uint64_t *items;                   /* `capacity` items of `words` words, in use up to `end` */
    Person *people;
    int32_t *moved;                    /* whose block may hold other items than were given, `touched` of them */
    uint32_t *left;                    /* rows that were given and stay no longer, `gone` of them */
    int64_t capacity, end, touched, gone, rows, live;
    int64_t most, per, words, largest, wanted;  /* the last: items of the block that there was no room for */
    int64_t spare[CLASSES];            /* the first unused block of each size, whose first word names the next; or -1 */
} Pool;

/* Read ahead what something takes, which may lie in two lines of the cache. */
#define FETCH(at) (__builtin_prefetch(at, 1), __builtin_prefetch((const char *)((at) + 1) - 1, 1))

INLINE uint64_t home(const Part *part, uint64_t first) {
    return ((first << PARTS >> 32) * (uint64_t)part->size) >> 32;
}

INLINE Slot *found(const Part *part, const uint64_t *id) {
    uint64_t at = home(part, id[0]);
    for (;;) {
        Slot *slot = part->slots + at;
        if (!slot->number || !memcmp(slot->id, id, 16)) return slot;
        if (++at == (uint64_t)part->size) at = 0;
    }
}

/* The slot of row i, which is empty if it was not seen before; none where its table is as full as may be. */
INLINE Slot *slot_of(Numbers *table, int64_t n, const uint64_t *ids, int64_t i) {
#ifdef __GNUC__
    if (i + 24 < n) {
        const uint64_t first = ids[2 * i + 48];
        const Part *part = table->parts + (first >> (64 - PARTS));
        FETCH(part->slots + home(part, first));
    }
#endif
    Part *part = table->parts + (ids[2 * i] >> (64 - PARTS));
    if (part->used >= part->limit) {
        table->full = part - table->parts;
        return 0;
    }
    Slot *slot = found(part, ids + 2 * i);
    if (!slot->number) {
        memcpy(slot->id, ids + 2 * i, 16);
        part->used++;
        table->used++;
    }
    return slot;
}

/* Count n records: each by its weight, which is above 0, or by 1, up to 2^32 - 1. `before` says how often each was
   counted before. Stops where a table is as full as may be. Returns how many were counted. */
EXPORT int64_t wpinq_number(Numbers *table, int64_t n, const uint64_t *ids, const int64_t *weights, int64_t *before) {
    for (int64_t i = 0; i < n; i++) {
        Slot *slot = slot_of(table, n, ids, i);
        if (!slot) return i;
        before[i] = slot->number;
        const uint64_t more = weights ? (uint64_t)weights[i] : 1, room = UINT32_MAX - slot->number;
        slot->number += (uint32_t)MIN(more, room);
    }
    return n;
}

/* Number n identities in the order in which they were first seen, from 0. Stops and returns as above. */
EXPORT int64_t wpinq_code(Numbers *table, int64_t n, const uint64_t *ids, int32_t *codes) {
    for (int64_t i = 0; i < n; i++) {
        Slot *slot = slot_of(table, n, ids, i);
        if (!slot) return i;
        if (!slot->number) slot->number = (uint32_t)table->used;
        codes[i] = (int32_t)(slot->number - 1);
    }
    return n;
}

/* Add n weights to the sums of numbers, which are below `known`, or were given in order from there on: say which rows
   are the first of a number. */
EXPORT void wpinq_add(int64_t n, const int32_t *codes, const int64_t *weights, int64_t known, int64_t *sums,
                      uint8_t *fresh) {
    for (int64_t i = 0; i < n; i++) {
#ifdef __GNUC__
        if (i + 24 < n) __builtin_prefetch(sums + codes[i + 24], 1);
#endif
        sums[codes[i]] += weights[i];
        fresh[i] = codes[i] == known;
        known += fresh[i];
    }
}

/* All identities that were numbered in the order in which they were seen, in this order. */
EXPORT void wpinq_identities(const Numbers *table, uint64_t *ids) {
    for (const Part *part = table->parts; part < table->parts + (1 << PARTS); part++)
        for (const Slot *slot = part->slots; slot < part->slots + part->size; slot++)
            if (slot->number) memcpy(ids + 2 * (uint64_t)(slot->number - 1), slot->id, 16);
}

/* Spread what the part that is full held, over slots that are all empty. */
EXPORT void wpinq_spread(Numbers *table, Slot *slots, int64_t size, int64_t limit, const Slot *held) {
    Part *part = table->parts + table->full;
    const int64_t before = part->size;
    part->slots = slots;
    part->size = size;
    part->limit = limit;
    for (int64_t i = 0; i < before; i++)
        if (held[i].number) {
            uint64_t id[2];
            memcpy(id, held[i].id, 16);
            *found(part, id) = held[i];
        }
}

INLINE int below(const uint64_t *a, const uint64_t *b, int by_value) {
    if (by_value) {
        if (a[3] != b[3]) return a[3] < b[3];
        if (a[4] != b[4]) return a[4] < b[4];
    }
    if (a[0] != b[0]) return a[0] < b[0];
    if (a[1] != b[1]) return a[1] < b[1];
    return (a[2] & ~GIVEN) < (b[2] & ~GIVEN);
}

INLINE void sift(uint64_t *heap, int64_t n, int64_t i, int64_t words, int by_value) {
    uint64_t item[MOST_WORDS];
    memcpy(item, heap + i * words, 8 * words);
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && below(heap + child * words, heap + (child + 1) * words, by_value)) child++;
        if (!below(item, heap + child * words, by_value)) break;
        memcpy(heap + i * words, heap + child * words, 8 * words);
    }
    memcpy(heap + i * words, item, 8 * words);
}

INLINE void sort(uint64_t *items, int64_t n, int64_t words, int by_value) {
    uint64_t item[MOST_WORDS];
    for (int64_t i = n / 2; i-- > 0;) sift(items, n, i, words, by_value);
    for (int64_t last = n - 1; last > 0; last--) {
        memcpy(item, items, 8 * words);
        memcpy(items, items + last * words, 8 * words);
        memcpy(items + last * words, item, 8 * words);
        sift(items, last, 0, words, by_value);
    }
}

INLINE void drop(Pool *pool, const uint64_t *item) {
    if (item[2] & GIVEN) pool->left[pool->gone++] = (uint32_t)item[2];
    pool->live--;
}

/* Leave a person only the items that stay: of one value the `per` least ranks, of these the `most` least. */
INLINE void cut(Pool *pool, Person *person, int64_t words) {
    uint64_t *items = pool->items + person->at * words;
    int64_t count = person->count;
    if (words == 5) {
        sort(items, count, words, 1);
        int64_t stay = 0, alike = 0;
        uint64_t value[2] = {0, 0};
        for (int64_t i = 0; i < count; i++) {
            const uint64_t *item = items + i * words;
            alike = i && item[3] == value[0] && item[4] == value[1] ? alike + 1 : 1;
            value[0] = item[3];
            value[1] = item[4];
            if (alike > pool->per) drop(pool, item);
            else memmove(items + stay++ * words, item, 8 * words);
        }
        count = stay;
    }
    if (count >= pool->most) {
        sort(items, count, words, 0);
        for (int64_t i = pool->most; i < count; i++) drop(pool, items + i * words);
        count = pool->most;
        person->limit = items[(count - 1) * words];
    }
    person->count = (uint32_t)count;
}

/* Give a person a block of the next size. Returns whether there was room. */
INLINE int enlarge(Pool *pool, Person *person, int64_t words) {
    const int32_t kind = person->room ? person->kind + 1 : 0;
    const int64_t room = person->room ? MIN(2 * (int64_t)person->room, pool->largest) : MIN(2, pool->largest);
    int64_t at = pool->spare[kind];
    if (at >= 0) pool->spare[kind] = (int64_t)pool->items[at * words];
    else {
        pool->wanted = room;
        if (pool->end + room > pool->capacity) return 0;
        at = pool->end;
        pool->end += room;
    }
    if (person->room) {
        memcpy(pool->items + at * words, pool->items + person->at * words, 8 * words * person->count);
        pool->items[person->at * words] = (uint64_t)pool->spare[person->kind];
        pool->spare[person->kind] = person->at;
    }
    person->at = at;
    person->room = (uint32_t)room;
    person->kind = kind;
    return 1;
}

INLINE int64_t put(Pool *pool, int64_t n, const int32_t *codes, const uint64_t *ranks, const uint64_t *values,
                   uint8_t *entered, int64_t words) {
    for (int64_t i = 0; i < n; i++) {
#ifdef __GNUC__
        if (i + 24 < n) FETCH(pool->people + codes[i + 24]);
        if (i + 8 < n) {
            const Person *next = pool->people + codes[i + 8];
            __builtin_prefetch(pool->items + (next->at + next->count) * words, 1);
        }
#endif
        Person *person = pool->people + codes[i];
        entered[i] = 0;
        if (ranks[2 * i] > person->limit) continue;
        if (person->count == person->room) {
            if (person->room == pool->largest) {
                cut(pool, person, words);
                if (ranks[2 * i] > person->limit) continue;
            } else if (!enlarge(pool, person, words)) return i;
        }
        uint64_t *item = pool->items + (person->at + person->count++) * words;
        item[0] = ranks[2 * i];
        item[1] = ranks[2 * i + 1];
        item[2] = (uint64_t)pool->rows++;
        if (words == 5) {
            item[3] = values[2 * i];
            item[4] = values[2 * i + 1];
        }
        if (!person->moved) {
            person->moved = 1;
            pool->moved[pool->touched++] = codes[i];
        }
        entered[i] = 1;
        pool->live++;
    }
    return n;
}

/* Let n ranked records compete, those of one person under one code. Says which entered: they have the next rows, in
   order. Stops where the pool has no room. Returns how many competed. */
EXPORT int64_t wpinq_put(Pool *pool, int64_t n, const int32_t *codes, const uint64_t *ranks, const uint64_t *values,
                         uint8_t *entered) {
    if (values) return put(pool, n, codes, ranks, values, entered, 5);
    return put(pool, n, codes, ranks, values, entered, 3);
}

/* Cut all blocks that were touched, and give the rows that stay and were not given before. Returns how many. */
EXPORT int64_t wpinq_give(Pool *pool, uint32_t *rows) {
    int64_t given = 0;
    for (int64_t i = 0; i < pool->touched; i++) {
        Person *person = pool->people + pool->moved[i];
        person->moved = 0;
        if (pool->words == 5) cut(pool, person, 5);
        else if (person->count > pool->most) cut(pool, person, 3);
        for (int64_t j = 0; j < person->count; j++) {
            uint64_t *row = pool->items + (person->at + j) * pool->words + 2;
            if (*row & GIVEN) continue;
            rows[given++] = (uint32_t)*row;
            *row |= GIVEN;
        }
    }
    pool->touched = 0;
    return given;
}

/* Mark the rows of all that is held or left; where `places` is given, let them be the rows at these places instead. */
EXPORT void wpinq_rows(Pool *pool, int64_t people, uint8_t *marks, const uint32_t *places) {
    for (int64_t i = 0; i < people; i++)
        for (int64_t j = 0; j < pool->people[i].count; j++) {
            uint64_t *row = pool->items + (pool->people[i].at + j) * pool->words + 2;
            if (places) *row = (*row & GIVEN) | places[*row & ~GIVEN];
            else marks[*row & ~GIVEN] = 1;
        }
    for (int64_t i = 0; i < pool->gone; i++) {
        if (places) pool->left[i] = places[pool->left[i]];
        else marks[pool->left[i]] = 1;
    }
}
