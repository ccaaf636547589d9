"""The keyed words: AES of the identity, the same in any batch, order, thread and process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from fractions import Fraction
from hashlib import blake2b

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from wpinq.core.noise import Words, mechanism
from wpinq.core.noise.words import IDENTITIES_PER_PIECE, pieces
from wpinq.errors import InternalError

KEY = bytes(range(32))
FROZEN = [
    [0, 1, 0, 0, 0, 0, 1, 0],
    [0, 0, 6, 25, 6, 6, -22, -16],
    [17067200, -376241050, 527412414, 2096215541, -418757538, -705265546, 204450914, 1227619440],
]
FROZEN_LAPLACE = [17067200, 1238118, 15707326]


def bins(n: int, high: int = 0) -> np.ndarray:
    return np.stack([np.arange(n, dtype=np.uint64), np.full(n, high, dtype=np.uint64)], axis=1)


def test_words_are_aes_of_the_identity_alone() -> None:
    """Word by word against the cipher itself, one block at a time: what format 1 means."""
    identities = np.random.default_rng(1).integers(0, 2**64, (50, 2), dtype=np.uint64)
    for number in (0, 1, 2**32 + 5):
        key = blake2b(number.to_bytes(16, "big"), key=KEY, digest_size=16, person=b"wpinq word key 1").digest()
        got = Words(KEY).pair(identities, number)
        for identity, words in zip(identities.tolist(), got.tolist(), strict=True):
            encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
            block = b"".join(part.to_bytes(8, "little") for part in identity)
            expected = encryptor.update(block) + encryptor.finalize()
            assert b"".join(word.to_bytes(8, "little") for word in words) == expected


def test_no_bin_shares_words_with_another_bin_or_number() -> None:
    """Rule 6: bin 1 word 2 is not bin 2 word 1, whatever is added or xored."""
    words = Words(KEY)
    identities = np.concatenate([bins(100), bins(100, high=1), bins(100)[:, ::-1]])
    identities = np.unique(identities, axis=0)
    seen = np.concatenate([words.pair(identities, number).ravel() for number in [*range(50), 2**32, 2**64, 2**64 + 1]])
    assert len(np.unique(seen)) == len(seen)  # a chance meeting of 64-bit words: below 1e-10


def test_a_key_gives_nothing_of_another_key() -> None:
    a, b = Words(KEY).pair(bins(1000), 0), Words(bytes(31) + b"\1").pair(bins(1000), 0)
    assert not np.isin(a, b).any()


def test_one_identity_has_one_noise_in_any_batch_and_order() -> None:
    identities = bins(2 * IDENTITIES_PER_PIECE + 77)
    for name in ("geometric", "laplace"):
        draw = mechanism(name, Fraction(7)).draw
        whole = draw(Words(KEY), identities)
        order = np.random.default_rng(2).permutation(len(identities))
        assert np.array_equal(draw(Words(KEY), identities[order]), whole[order])
        assert np.array_equal(draw(Words(KEY), identities[::-1]), whole[::-1])
        words = Words(KEY)
        for row in (0, 1, IDENTITIES_PER_PIECE - 1, IDENTITIES_PER_PIECE, 2 * IDENTITIES_PER_PIECE + 76):
            assert draw(words, identities[row : row + 1])[0] == whole[row]
        assert np.array_equal(draw(words, np.asfortranarray(identities)), whole)
        assert np.array_equal(draw(words, np.repeat(identities[:5], 3, axis=0)), np.repeat(whole[:5], 3))


SCRIPT = """
import numpy as np
from fractions import Fraction
from wpinq.core.noise import Words, mechanism
identities = np.stack([np.arange(5000, dtype=np.uint64), np.arange(5000, dtype=np.uint64) ** 2], axis=1)
for name in ("geometric", "laplace"):
    print(mechanism(name, Fraction(100, 7)).draw(Words(bytes(range(32))), identities).tolist())
"""


def test_other_processes_draw_the_same() -> None:
    answers = set()
    for seed in ("0", "1", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        answers.add(subprocess.check_output([sys.executable, "-c", SCRIPT], env=environment, text=True))
    assert len(answers) == 1
    assert len(answers.pop()) > 10_000


def test_format_1_never_changes() -> None:
    """Frozen draws: a sampler that gives others needs another FORMAT, or released noise would be redrawn."""
    scales = [Fraction(1, 3), Fraction(10), Fraction(2**30)]
    draws = [mechanism("geometric", scale).draw(Words(KEY), bins(8)).tolist() for scale in scales]
    assert draws == FROZEN
    assert mechanism("laplace", Fraction(10)).draw(Words(KEY), bins(3)).tolist() == FROZEN_LAPLACE


def test_threads_share_one_source_of_words() -> None:
    words, identities = Words(KEY), bins(20_000)
    expected, answers = mechanism("geometric", Fraction(10)).draw(Words(KEY), identities), []

    def draw() -> None:
        answers.extend(mechanism("geometric", Fraction(10)).draw(words, identities) for _ in range(5))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 40
    assert all(np.array_equal(answer, expected) for answer in answers)


def test_the_release_key_is_hidden() -> None:
    words = Words(KEY)
    assert KEY.hex() not in repr(words)
    assert "\\x01\\x02" not in repr(words)
    for leak in (vars, pickle.dumps):
        with pytest.raises(TypeError):
            leak(words)
    with pytest.raises(InternalError) as caught:
        Words(b"hush")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [np.zeros((3, 2)), np.zeros((3, 2), np.int64), np.zeros(3, np.uint64), np.zeros((3, 3), np.uint64)]
)
def test_what_is_not_an_identity_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(InternalError, match="shape"):
        mechanism("geometric", Fraction(1)).draw(Words(KEY), wrong)


@pytest.mark.parametrize(
    "n", [0, 1, IDENTITIES_PER_PIECE - 1, IDENTITIES_PER_PIECE, IDENTITIES_PER_PIECE + 1, 3 * IDENTITIES_PER_PIECE]
)
def test_pieces_cover_every_row_once(n: int) -> None:
    assert [row for piece in pieces(n) for row in range(n)[piece]] == list(range(n))
    drawn = mechanism("laplace", Fraction(1)).draw(Words(KEY), bins(n))
    assert drawn.shape == (n,)
    assert drawn.dtype == np.int64


def test_every_bit_of_the_words_is_fair() -> None:
    """64 * 2 * 3 bits of 2^17 words, and all lags 1, 2, 64, 4096: |z| < 6, false alarm below 2e-6 in all."""
    n = 2**17
    words = Words(KEY)
    for number in (0, 7, 2**32):
        drawn = words.pair(bins(n), number)
        bits = np.unpackbits(drawn.view(np.uint8), axis=None).reshape(n, 128).astype(np.float32)
        z = (bits.sum(axis=0) - n / 2) / np.sqrt(n / 4)
        assert np.abs(z).max() < 6
        unit = drawn.astype(np.float64) / 2**64 - 0.5
        for lag in (1, 2, 64, 4096):
            for a, b in ((0, 0), (0, 1), (1, 1)):
                assert abs((unit[lag:, a] * unit[:-lag, b]).mean()) * 12 * np.sqrt(n - lag) < 6
