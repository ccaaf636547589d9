/* Questions about people of whom records lie together, those of each in the order of their ranks. */

#include "common.h"

/* Of the rows that stay let each person keep the first few: of one value the first `per`, of these the first `most`.
   `values` may be missing; `last` has -1 and `alike` a place for each of them. Returns how many rows stay. */
EXPORT int64_t wpinq_first(int64_t n, const int32_t *people, const int32_t *values, int64_t per, int64_t most,
                           int32_t *last, int64_t *alike, uint8_t *stays) {
    int64_t kept = 0, count = 0;
    int32_t person = -1;
    for (int64_t i = 0; i < n; i++) {
        count = people[i] == person ? count : 0;
        person = people[i];
        int64_t stay = stays[i] & (count < most);
        if (values && stay) {
            const int32_t value = values[i];
            alike[value] = last[value] == person ? alike[value] : 0;
            last[value] = person;
            stay = alike[value]++ < per;
        }
        stays[i] = (uint8_t)stay;
        count += stay;
        kept += stay;
    }
    return kept;
}

/* Of the rows that stay let those stay whose number is marked. */
EXPORT void wpinq_marked(int64_t n, const int32_t *numbers, const uint8_t *marks, uint8_t *stays) {
    for (int64_t i = 0; i < n; i++) stays[i] &= marks[numbers[i]];
}

/* Count how many of the rows that stay have each number. */
EXPORT void wpinq_each(int64_t n, const int32_t *numbers, const uint8_t *stays, int64_t *counts) {
    for (int64_t i = 0; i < n; i++) counts[numbers[i]] += stays[i];
}
