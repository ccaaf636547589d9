"""Values that JSON lacks are asked for through a server, and come back, as Python asks for them and has them."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from serving import serving

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.errors import BinError, PlanError

UTC, EAST = dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30))
DAY = dt.datetime(2026, 1, 1)
COLUMNS = {
    "f": pa.array([0.0, -0.0, float("inf"), float("-inf"), float("nan"), None]),
    "m": pa.array([Decimal("0.10"), Decimal("-7.50"), Decimal(0), Decimal("1.00"), Decimal("2.25"), None]),
    "u": pa.array([0, 1, 2**53 + 1, 2**63, 2**64 - 1, None], pa.uint64()),
    "i": pa.array([0, 1, 2**53 + 1, -(2**63), 2**63 - 1, None]),
    "b": pa.array([b"", b"\xff", b"a", b"YQ==", b"\x00", None]),
    "s": pa.array(["", "Infinity", "\x00", "é", "null", None]),
    "d": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), DAY.date(), dt.date(2, 2, 2), None]),
    "t": pa.array([DAY, dt.datetime.min, dt.datetime.max, DAY.replace(microsecond=1), DAY.replace(1969), None]),
    "z": pa.array([DAY.replace(hour=hour, tzinfo=UTC) for hour in range(5)] + [None], pa.timestamp("us", "+05:30")),
    "n": pa.array([DAY.replace(hour=hour, tzinfo=UTC) for hour in range(5)] + [None], pa.timestamp("ns", "Etc/GMT+3")),
    "p": pa.array([*map(dt.timedelta, (0, -1, 400, 9)), dt.timedelta.resolution, None]),
    "o": pa.array([True, False, True, False, True, None]),
    "l": pa.array([[1], [2, 3], [], [4], [5, 6], None]),
}  # fmt: skip
CONFIG = """
[server]
port = 0
[limits]
delta = 1e-3
[data.views]
source = "views.parquet"
ledger = "ledger"
budget = 100000
delta = 0.5
dataflow = "script.py"
"""
SCRIPT = """
def dataflow(views):
    return {{name: views.map(pick).measure(epsilon=1, name=name) for name, pick in {{{}}}.items()}}
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    place = tmp_path_factory.mktemp("odd")
    pq.write_table(pa.table({name: pa.chunked_array([column] * 40) for name, column in COLUMNS.items()}),
                   place / "views.parquet")  # fmt: skip
    (place / "script.py").write_text(SCRIPT.format(", ".join(f"'{name}': lambda {name}: {name}" for name in COLUMNS)))
    (place / "site.toml").write_text(CONFIG)
    with serving(place) as site:
        token = site.token("ann", 10000)
        Ledger.existing(place / "ledger").cap("ann", 10000, delta="0.4")
        yield site, wpinq.connect(site.url, token)


@pytest.mark.parametrize("name", COLUMNS)
def test_bins_of_any_type_are_the_same_there_and_here(odd, name):
    site, here = odd
    own, other = site.catalogue.measured[f"views.{name}"].measurement, here.measurements[f"views.{name}"]
    bins = COLUMNS[name].to_pylist()
    assert other.observe_many(bins).tolist() == own.observe_many(bins).tolist()
    assert [other.observe(bin_) for bin_ in bins] == [own.observe(bin_) for bin_ in bins]


@pytest.mark.parametrize("groups", ["given", "published"])
@pytest.mark.parametrize("name", COLUMNS)
def test_groups_of_any_type_are_the_same_there_and_here(odd, name, groups):
    site, here = odd
    query = f"SELECT {name} AS g, COUNT(*) AS c FROM views GROUP BY {name}"
    keys = {"keys": COLUMNS[name].to_pylist()} if groups == "given" else {"delta": "0.001"}
    if name == "m" and groups == "given":
        keys = {"keys": [Decimal("0.10"), Decimal("-7.50")]}
    local = wpinq.sql(query, {"views": site.catalogue.data["views"].views}, epsilon=20, name=name, **keys)
    answer = here.sql(query, 20, name=name, **keys)
    assert answer.rows == local.rows
    assert [list(map(type, row)) for row in answer.rows] == [list(map(type, row)) for row in local.rows]
    assert answer.frame.schema == local.frame.schema
    assert answer.frame.rows() == local.frame.rows()


def test_zones_of_python_and_pandas_are_times_of_the_same_bin(odd):
    site, here = odd
    own = site.catalogue.measured["views.z"].measurement
    east = DAY.replace(tzinfo=UTC).astimezone(EAST)
    for time in (east, pd.Timestamp(east), DAY.replace(tzinfo=dt.timezone(dt.timedelta(minutes=53, seconds=28)))):
        assert here.measurements["views.z"].observe(time) == own.observe(time)


@pytest.mark.parametrize(
    ("name", "bin_"), [("u", DAY.date()), ("u", b"a"), ("u", float("inf")), ("u", Decimal("0.1")), ("l", (DAY, 1))]
)
def test_a_bin_that_would_be_another_on_its_way_is_refused(odd, name, bin_):
    """A column of any type may hold a date and a text: JSON would make one bin of both."""
    with pytest.raises(PlanError, match="cannot be sent"):
        odd[1].measurements[f"views.{name}"].observe(bin_)


@pytest.mark.parametrize(("name", "bin_"), [("d", DAY), ("i", 2**63), ("i", "1"), ("f", "Infinity"), ("b", "a")])
def test_a_bin_of_another_type_is_refused_as_here(odd, name, bin_):
    site, here = odd
    for made in (site.catalogue.measured[f"views.{name}"].measurement, here.measurements[f"views.{name}"]):
        with pytest.raises(BinError):
            made.observe(bin_)


def test_the_first_rows_do_not_decide_what_the_others_hold(odd):
    _, here = odd
    rows = 400
    keys = [[None, number] for number in range(rows)] + [[2, 0]]
    query = "SELECT i AS g, i + 1 AS h, COUNT(*) AS c FROM views GROUP BY i, i + 1"
    answer = here.sql(query, 1, keys=keys)
    assert answer.frame["g"].to_list() == [None] * rows + [2]
    assert answer.frame.schema["g"] == pl.Int64


@pytest.mark.parametrize("name", ["f", "z", "p"])
def test_constants_of_a_function_are_the_same_there_and_here(odd, name):
    site, here = odd
    endless, zoned, longest = float("inf"), DAY.replace(hour=2, tzinfo=EAST), dt.timedelta(9)
    keep = {"f": lambda f: f < endless, "z": lambda z: z > zoned, "p": lambda p: p < longest}[name]
    own, other = (
        views.filter(keep).map(f"{name} IS NULL AS g").measure(1, name=f"kept by {name}")
        for views in (site.catalogue.data["views"].views, here.data["views"])
    )
    assert other.observe(False) == own.observe(False)
    assert other.observe(False) > 20
