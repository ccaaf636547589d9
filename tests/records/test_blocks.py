"""Bins from a lazy frame, block by block: the same answers as at once, and never held together."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import wpinq
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.records import bins
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import BinError, SourceError

PAIRS = Schema.of(page=Kind.TEXT, size=Kind.INT)
KEYS = pl.DataFrame({"a": [f"/p{n}" for n in range(300)], "b": range(300)})


@pytest.fixture
def small(monkeypatch):
    """Blocks of 64 rows, and how many rows were looked at together at the most."""
    monkeypatch.setattr(bins, "ROWS", 64)
    seen, inner = [], Measurement._parts
    monkeypatch.setattr(
        Measurement, "_parts", lambda self, frame, *at: seen.append(frame.height) or inner(self, frame, *at)
    )
    return seen


def measured():
    records = [(f"/p{n % 50}", n % 50) for n in range(400)]
    return wpinq.protect(records, budget=2, columns={"page": str, "size": int}).measure(epsilon=1)


@pytest.mark.parametrize("kinds", [{}, {"a": pl.Categorical, "b": pl.UInt16}, {"b": pl.Int8}])
def test_many_bins_are_answered_block_by_block(small, tmp_path, kinds):
    """Also of categories and of shorter integers, as other tools write them."""
    keys = KEYS[:100].cast(kinds)
    keys.write_parquet(tmp_path / "keys.parquet", row_group_size=50)
    found, lazy = measured(), pl.scan_parquet(tmp_path / "keys.parquet")
    one_by_one = [found.observe(row) for row in KEYS[:100].rows()]
    small.clear()
    assert found.observe_many(lazy).tolist() == one_by_one
    assert found.release(keys=lazy, threshold=3).rows == found.release(keys=KEYS[:100], threshold=3).rows
    assert found.release(keys=lazy).rows == found.release(keys=KEYS[:100]).rows
    assert max(small) <= 64
    assert len(small) >= 4


def test_a_lazy_frame_without_rows_has_no_answers(tmp_path):
    KEYS[:0].write_parquet(tmp_path / "keys.parquet")
    found = measured()
    assert found.observe_many(pl.scan_parquet(tmp_path / "keys.parquet")).dtype == np.int64
    assert found.release(keys=pl.scan_parquet(tmp_path / "keys.parquet")).rows == ()


def test_other_types_are_read_as_they_are_from_a_frame():
    """A number that is whole is an integer's bin; another one is refused, lazily too."""
    whole = KEYS[:5].with_columns(pl.col("b").cast(pl.Float64))
    assert bin_frame(whole, PAIRS).equals(bins.bin_blocks(whole.lazy(), PAIRS).whole)
    for wrong in (KEYS.with_columns(b=pl.col("b") + 0.5), KEYS.with_columns(b=pl.lit("x")), KEYS.select("a")):
        with pytest.raises(BinError):
            bins.bin_blocks(wrong.lazy(), PAIRS)


def test_an_arrow_table_is_read_as_a_frame_is():
    categories = KEYS.with_columns(pl.col("a").cast(pl.Categorical)).to_arrow()
    assert isinstance(categories, pa.Table)
    assert bin_frame(categories, PAIRS).equals(bin_frame(KEYS, PAIRS))


def test_columns_of_plain_types_are_not_looked_at_one_by_one(monkeypatch):
    """Ten million categories took nineteen seconds."""
    from wpinq.core.records import bins

    monkeypatch.setattr(bins, "fitted", None)
    assert bin_frame(KEYS.cast({"a": pl.Categorical, "b": pl.UInt16}), PAIRS).rows() == KEYS.rows()


def test_what_cannot_be_read_is_told_in_one_line(tmp_path):
    (tmp_path / "keys.parquet").write_bytes(b"PAR1 no table PAR1")
    for path in (tmp_path / "keys.parquet", tmp_path / "missing.parquet"):
        with pytest.raises(SourceError, match="keys: the lazy frame cannot be read") as error:
            measured().release(keys=pl.scan_parquet(path))
        assert "\n" not in str(error.value)


def test_a_file_that_goes_away_meanwhile_is_told(tmp_path):
    KEYS.write_parquet(tmp_path / "keys.parquet")
    read = bins.bin_blocks(pl.scan_parquet(tmp_path / "keys.parquet"), PAIRS)
    (tmp_path / "keys.parquet").unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        list(read)
