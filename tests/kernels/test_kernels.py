"""The compiled kernels against the plain paths: the same identities and the same sums, bit for bit."""

import os
import pathlib
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deep, thin
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core import kernels
from wpinq.core.kernels import build
from wpinq.core.kernels.sums import Sums
from wpinq.core.noise import Words, geometric, mechanism
from wpinq.core.records import identity
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.state import write_buffer
from wpinq.core.state.table import combine

KEY = bytes(range(16))
COLUMNS = {
    Kind.TEXT: st.text(max_size=40),
    Kind.BYTES: st.binary(max_size=40),
    Kind.INT: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT: st.floats(),
}


def both(library, compute):
    """The same computation with and without the compiled kernels."""
    found = []
    for lib in (library, None):
        with pytest.MonkeyPatch.context() as patch:
            for module in (kernels, identity, geometric):
                patch.setattr(module, "LIB", lib)
            found.append(compute())
    return found


@thin(3)
@pytest.mark.parametrize("kind", COLUMNS)
@given(data=st.data())
def test_identities_are_the_same(library, kind, data):
    values = data.draw(st.lists(st.none() | COLUMNS[kind], max_size=20))
    start = data.draw(st.integers(0, len(values)))
    column = pl.Series("a", values, dtype=identity_type(kind))[start:]
    frame = pl.DataFrame([column, column.reverse().alias("b")])
    for names in (["a"], ["a", "b"]):
        schema = Schema(tuple(Column(name, kind) for name in names))
        compiled, plain = both(library, lambda s=schema: identity.identities(frame, s, KEY))
        assert (compiled == plain).all()


def identity_type(kind):
    from wpinq.core.records.schema import polars_type

    return polars_type(kind)


def test_many_pieces_of_words_are_the_same(library):
    rng = np.random.default_rng(3)
    words = [rng.integers(0, 2**64, 3 * identity.MESSAGES_PER_PASS + 7, np.uint64) for _ in range(3)]
    words.append(np.broadcast_to(np.uint64(24 << 56), words[0].shape))
    compiled, plain = both(library, lambda: identity.siphash(KEY, words))
    assert (compiled == plain).all()


def test_neighbours_of_every_length_are_the_same(library):
    texts = [chr(97 + row) * length for length in range(34) for row in range(19)]
    frame = pl.DataFrame({"a": texts})
    compiled, plain = both(library, lambda: identity.identities(frame, Schema((Column("a", Kind.TEXT),)), KEY))
    assert (compiled == plain).all()


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(-5, 5), min_size=10, max_size=10))
def test_numbers_are_counted_alike(library, numbers, before):
    low = -(2**63) + 3
    found = []
    for lib in (library, None):
        counts = np.array(before)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "LIB", lib)
            kernels.count(np.array(numbers, np.int64) + low, low, counts)
        found.append(counts.tolist())
    assert found == [[old + numbers.count(place) for place, old in enumerate(before)]] * 2


class Tied:
    """Words of which every third is the digit's limit itself, so that the next word decides."""

    def __init__(self, scale):
        self.words, self.limits = Words(bytes(32)), geometric.thresholds(scale)

    def pair(self, identities, number):
        found = self.words.pair(identities, number).copy()
        if number < len(self.limits) - 1:
            found[::3, number % 2] = self.limits[number].word(0)
        return found


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(2, 3), Fraction(10), Fraction(10**4), Fraction(2**57)])
@pytest.mark.parametrize("source", [lambda _: Words(bytes(32)), Tied])
def test_noise_is_the_same(library, scale, source):
    ids = np.random.default_rng(5).integers(0, 2**64, (5_000 if source is not Tied else 99, 2), np.uint64)
    compiled, plain = both(library, lambda: mechanism("geometric", scale).draw(source(scale), ids))
    assert (compiled == plain).all()
    assert scale < 1 or len(set(compiled.tolist())) > 9


def ids_of(numbers):
    """Identities that crowd: many share a slot, the last run over the end of the table, and zero is among them."""
    crowded = [0, 1, 2**40, 2**63, 2**64 - 1, 2**64 - 2, 2**64 - 3]
    return np.array([[crowded[n % 7], n // 7] for n in numbers], np.uint64).reshape(-1, 2)


@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(-3, 3)), max_size=30), max_size=5))
def test_sums_are_those_of_a_counter(library, batches):
    sums, expected = Sums(library), Counter()
    for batch in batches:
        ids = ids_of([n for n, _ in batch])
        sums.add(ids, np.array([w for _, w in batch], np.int64))
        for row, (_, weight) in zip(ids.tolist(), batch, strict=True):
            expected[tuple(row)] += weight
    ids, weights = sums.take()
    found = list(map(tuple, ids.tolist()))
    assert found == sorted(found)
    assert {k: v for k, v in zip(found, weights.tolist(), strict=True) if v} == {k: v for k, v in expected.items() if v}
    assert len(sums.take()[0]) == 0


@deep
def test_a_table_that_grows_many_times(library):
    rng = np.random.default_rng(4)
    ids = rng.integers(0, 2**64, (50_000, 2), np.uint64)[rng.integers(0, 50_000, 200_000)]
    ids[::3, 0] >>= np.uint64(50)  # a third of them in one corner of the table
    weights = rng.integers(-5, 6, 200_000)
    sums = Sums(library)
    for start in range(0, 200_000, 7_000):
        sums.add(ids[start : start + 7_000], weights[start : start + 7_000])
    found, expected = sums.take(), combine(ids, weights)[1:]
    assert (found[0] == expected[0]).all()
    assert (found[1] == expected[1]).all()


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2)), max_size=8), max_size=6))
def test_a_tally_is_the_same(library, batches):
    from wpinq.core.records.batch import WEIGHT, Batch

    schema = Schema((Column("x", Kind.TEXT),))

    def compute():
        tally = write_buffer.Tally(schema, KEY)
        for batch in batches:
            frame = pl.DataFrame(batch, {"x": pl.String, WEIGHT: pl.Int64}, orient="row")
            tally.absorb(Batch(frame, schema))
        ids, weights = tally.take()
        return [(tuple(i), w) for i, w in zip(ids.tolist(), weights.tolist(), strict=True) if w]

    compiled, plain = both(library, compute)
    assert compiled == plain


def test_a_library_of_another_source_is_not_loaded(library, monkeypatch):
    monkeypatch.setattr(kernels, "digest", lambda: b"0" * 32)
    assert library is not None
    assert kernels.load() is None


def test_every_source_tells_its_version(tmp_path, monkeypatch):
    folder = pathlib.Path(build.__file__).parent
    assert {path.name for path in folder.iterdir() if path.suffix in {".c", ".h"}} == {p.name for p in build.SOURCES}
    copies = [pathlib.Path(shutil.copy(path, tmp_path)) for path in build.SOURCES]
    monkeypatch.setattr(build, "SOURCES", copies)
    found = {build.digest()}
    for path in copies:
        path.write_bytes(path.read_bytes() + b" ")
        found.add(build.digest())
    assert len(found) == len(copies) + 1 > 5


def test_a_library_that_is_none_is_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "LIBRARY", tmp_path / "kernels.so")
    assert kernels.load() is None
    (tmp_path / "kernels.so").write_bytes(b"no library")
    assert kernels.load() is None


def test_without_a_compiler_nothing_is_built(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.compile_kernels() is None


def test_no_import_waits_for_a_compiler():
    code = "import sys, wpinq.core.kernels; assert not {'cffi', 'subprocess'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_there_is_a_compiler_there_are_kernels():
    """Else what needs them would be skipped here, and nobody would hear of it."""
    assert kernels.LIB is not None or shutil.which(os.environ.get("CC", "cc")) is None, (
        "run python -m wpinq.core.kernels"
    )
