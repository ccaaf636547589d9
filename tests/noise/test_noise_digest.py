"""The histogram's digest: a keyed function of the set of (identity, weight), and of nothing else."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.noise import histogram_digest
from wpinq.core.state.histogram import _words
from wpinq.errors import InternalError

KEY = bytes(range(32))
M = 2**256
big = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**127), 2**127 - 1))
histograms = st.dictionaries(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), big, max_size=6)


def limbs(weights) -> np.ndarray:
    """As a histogram hands over weights that are not held in 64 bits."""
    return _words(np.array(list(weights), object))


def digest(histogram: dict, key: bytes = KEY) -> int:
    identities = np.array(list(histogram), dtype=np.uint64).reshape(-1, 2)
    return histogram_digest(key, identities, limbs(histogram.values()))


def slowly(histogram: dict) -> int:
    """The definition, by the cipher library's own CBC mode, one row at a time."""
    total = 0
    for identity, weight in histogram.items():
        if not weight:
            continue
        message = b"".join(part.to_bytes(8, "little") for part in identity) + weight.to_bytes(16, "little", signed=True)
        tag = b""
        for half in (0, 1):
            key = blake2b(half.to_bytes(16, "big"), key=KEY, digest_size=16, person=b"wpinq word key 1").digest()
            tag += Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor().update(message)[16:]
        total += int.from_bytes(tag, "little")
    return total % M


@given(histograms)
def test_it_is_the_sum_of_cbc_macs(histogram: dict) -> None:
    assert digest(histogram) == slowly(histogram)


@given(histograms, histograms)
def test_equal_when_and_only_when_the_histograms_are(a: dict, b: dict) -> None:
    without = [{bin_: weight for bin_, weight in h.items() if weight} for h in (a, b)]
    assert (digest(a) == digest(b)) == (without[0] == without[1])


@given(histograms, st.randoms(use_true_random=False), st.integers(0, 6))
def test_order_and_shards_do_not_matter(histogram: dict, random, cut: int) -> None:
    rows = list(histogram.items())
    random.shuffle(rows)
    assert digest(dict(rows)) == digest(histogram)
    assert (digest(dict(rows[:cut])) + digest(dict(rows[cut:]))) % M == digest(histogram)


@given(histograms, st.integers(0, 9), big, big)
def test_it_is_incremental(histogram: dict, bin_: int, old: int, new: int) -> None:
    before, after = {**histogram, (bin_, 0): old}, {**histogram, (bin_, 0): new}
    assert (digest(before) + digest({(bin_, 0): new}) - digest({(bin_, 0): old})) % M == digest(after)


def test_many_rows_and_both_forms_of_weights() -> None:
    n = 3 * 4096 + 17
    rng = np.random.default_rng(1)
    identities = rng.integers(0, 2**64, (n, 2), dtype=np.uint64)
    weights = rng.integers(-3, 4, n)
    whole = histogram_digest(KEY, identities, weights)
    assert whole == histogram_digest(KEY, identities, limbs(weights.tolist()))
    assert whole == histogram_digest(KEY, identities[weights != 0], weights[weights != 0])
    assert whole == histogram_digest(KEY, identities[::-1], weights[::-1])
    assert whole == slowly(dict(zip(map(tuple, identities.tolist()), weights.tolist(), strict=True)))
    parts = [histogram_digest(KEY, identities[i::4], weights[i::4]) for i in range(4)]
    assert whole == sum(parts) % M
    weights[5] += 1
    assert whole != histogram_digest(KEY, identities, weights)


def test_one_bit_of_anything_moves_about_half_of_it() -> None:
    """Identity, weight, sign, word order and key all count: 256 fair bits, within 8 deviations (64 of 128)."""
    base = digest({(1, 2): 1})
    others = [{(2, 1): 1}, {(1, 3): 1}, {(1, 2): -1}, {(1, 2): 2}, {(1, 2): 1 + 2**64}, {(1, 2): 1 - 2**127}]
    values = [digest(other) for other in others] + [digest({(1, 2): 1}, bytes(32)), 0]
    assert all(64 < (base ^ value).bit_count() < 192 for value in values)
    assert len({*values, base}) == len(values) + 1


def test_nothing_has_digest_zero() -> None:
    assert digest({}) == digest({(1, 2): 0}) == 0
    assert histogram_digest(KEY, np.zeros((0, 2), np.uint64), np.zeros(0, np.int64)) == 0


@given(st.lists(big))
def test_limbs_are_twos_complement_low_word_first(weights: list) -> None:
    for weight, (low, high) in zip(weights, limbs(weights).tolist(), strict=True):
        assert (low + (high << 64)) == weight % 2**128


def test_what_is_not_exact_is_refused() -> None:
    identities = np.zeros((2, 2), np.uint64)
    for wrong in (np.zeros(2), np.zeros(2, np.int32), np.zeros(3, np.int64), np.zeros((2, 1), np.uint64)):
        with pytest.raises(InternalError):
            histogram_digest(KEY, identities, wrong)
