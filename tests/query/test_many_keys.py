"""Many declared groups of which HAVING leaves few: the same rows as at once, a block of groups at a time."""

import polars as pl
import pytest

import wpinq
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.records import bins
from wpinq.query import quoted_select as answer

QUERY = "SELECT page, country, COUNT(*) AS views FROM data GROUP BY page, country HAVING COUNT(*) >= 4 ORDER BY {}"
KEYS = pl.DataFrame({"page": [f"/p{n % 60}" for n in range(240)], "country": [f"c{n % 8}" for n in range(240)]})


@pytest.fixture
def looked_at(monkeypatch):
    """Blocks of 32 rows; the sizes of what is looked at together."""
    for module in (bins, answer):
        monkeypatch.setattr(module, "ROWS", 32)
    seen, inner = [], Measurement._parts
    monkeypatch.setattr(
        Measurement, "_parts", lambda self, frame, *at: seen.append(frame.height) or inner(self, frame, *at)
    )
    return seen


def table():
    records = [(f"u{n}", f"/p{n % 20}", f"c{n % 4}") for n in range(600)]
    return wpinq.protect(records, budget=9, columns={"user": str, "page": str, "country": str})


@pytest.mark.parametrize("order", ["views DESC, page, country", "page LIMIT 7", "country, views, page"])
def test_rows_are_those_of_all_groups_at_once(looked_at, tmp_path, order):
    """Groups that stand twice, 240 of which 120 differ, are shown once."""
    KEYS.cast({"page": pl.Categorical}).write_parquet(tmp_path / "keys.parquet")
    data = {"data": table()}
    whole = wpinq.sql(QUERY.format(order), data, epsilon=1, keys=KEYS.unique(maintain_order=True))
    _ = whole.rows
    looked_at.clear()
    lazy = wpinq.sql(QUERY.format(order), data, epsilon=1, keys=pl.scan_parquet(tmp_path / "keys.parquet"))
    assert lazy.rows == whole.rows
    assert lazy.rows
    assert lazy.intervals == whole.intervals
    assert looked_at[0] == max(looked_at) == 32


def test_intervals_that_hold_together_are_those_of_all_groups(looked_at):
    """At least as wide as for the different ones."""
    data, query = {"data": table()}, QUERY.format("views DESC, page, country")
    whole = wpinq.sql(query, data, epsilon=1, keys=KEYS).table(simultaneous=True)
    lazy = wpinq.sql(query, data, epsilon=1, keys=KEYS.lazy()).table(simultaneous=True)
    widths = [(one["high"] - one["low"]).max() for one in (whole, lazy)]
    assert widths[0] <= widths[1] <= widths[0] + 2 * 2


def test_sums_and_queries_without_having_look_at_all_groups(looked_at):
    data = {"data": table()}
    query = "SELECT page, country, COUNT(*) AS views, SUM(1) AS ones FROM data GROUP BY page, country HAVING SUM(1) > 3"
    for text, bounds in ((query, {"1": (0, 1)}), (query.partition(", SUM")[0] + " FROM data GROUP BY 1, 2", None)):
        lazy, whole = (wpinq.sql(text, data, epsilon=1, keys=keys, bounds=bounds) for keys in (KEYS.lazy(), KEYS))
        assert lazy.rows == whole.rows


def test_a_wrong_type_is_refused_before_the_charge():
    data = table()
    with pytest.raises(wpinq.BinError):
        wpinq.sql(QUERY.format("page"), {"data": data}, epsilon=1, keys=KEYS.with_columns(page=pl.lit(0.5)).lazy())
    assert data.budget.left == 9
