"""First: the first records of each person, whether epochs are looked at one by one or together."""

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.core.operators.contribution.first import Firsts
from wpinq.core.records.batch import WEIGHT
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Column, Kind, Schema

EPOCHS = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 3)), max_size=12), min_size=1, max_size=5
)
USERS = Schema((Column("user", Kind.INT), Column("n", Kind.INT)))


def weighted(rows):
    return pl.DataFrame(rows, {"user": pl.Int64, "n": pl.Int64, WEIGHT: pl.Int64}, orient="row")


def first_by_rule(epochs, most, key):
    """A user's records by epoch, in each by identity, each as far as there is room."""
    kept, left = Counter(), Counter()
    for number, rows in enumerate(epochs):
        sums = Counter()
        for user, n, weight in rows:
            sums[user, n] += weight
        ids = identities(weighted([(*record, 1) for record in sums]), USERS, key).tolist()
        for _, (user, n) in sorted(zip(ids, sums, strict=True)):
            kept[number, user, n] = min(most - left[user], sums[user, n])
            left[user] += kept[number, user, n]
    return +kept


@given(EPOCHS, st.integers(1, 6))
def test_epochs_taken_together_keep_what_they_keep_one_by_one(epochs, most):
    key, frames = bytes(16), [weighted(rows) for rows in epochs]
    places = np.repeat(np.arange(len(frames)), [frame.height for frame in frames])
    state = [Firsts(USERS, wpinq.users("user", at_most=most), USERS.names, key) for _ in range(2)]
    found = [Counter(), Counter()]

    def count(number, frame, epochs, rows, weights):
        for row, weight in zip(rows.tolist(), weights.tolist(), strict=True):
            found[number][int(epochs[row]), *frame.row(row)[:2]] += weight

    for number, frame in enumerate(frames):
        count(0, frame, [number] * frame.height, *state[0].chosen(frame, frame[WEIGHT].to_numpy()))
    whole = pl.concat(frames)
    count(1, whole, places, *state[1].chosen(whole, whole[WEIGHT].to_numpy(), places))
    assert found == [first_by_rule(epochs, most, key)] * 2
