"""Types of Arrow that Polars does not know, and panics of: nothing of that is seen, and columns are read as ever."""

import base64

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wpinq
from wpinq.apps.publish import keys
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError, SourceError
from wpinq.sources.tables import arrow_schema

ZONES = ["Mars/Olympus", "+25:00", "+05:30", "Z", "GMT+5", "UTC+1", "Factory", "\u00e9", "\x1b[2J", "a" * 300]
USERS = pa.array([f"u{number}" for number in range(3)])


def instants(zone):
    return pa.array([0, 1, 2**40], pa.timestamp("us", zone))


class Own(pa.ExtensionType):
    """A type of somebody's own over such a time."""

    def __init__(self):
        super().__init__(pa.timestamp("us", "Mars/Olympus"), "tests.own")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


INSIDE = {
    "a list view": pa.array([[1], None, []], pa.list_view(pa.int64())),
    "a large list view": pa.array([[1], None, []], pa.large_list_view(pa.int64())),
    "in a list": pa.array([[0], None, []], pa.list_(pa.timestamp("us", "Mars/Olympus"))),
    "in a struct": pa.StructArray.from_arrays([instants("Mars/Olympus")], ["a"]),
    "in a map": pa.array([[("a", 0)], None, []], pa.map_(pa.string(), pa.timestamp("us", "Mars/Olympus"))),
    "in a dictionary": instants("Mars/Olympus").dictionary_encode(),
    "in a type of one's own": pa.ExtensionArray.from_storage(Own(), instants("Mars/Olympus")),
}
COLUMNS = {**{f"the zone {zone[:20]!r}": instants(zone) for zone in ZONES}, **INSIDE}
NEVER = [
    pa.month_day_nano_interval(),
    pa.run_end_encoded(pa.int32(), pa.string()),
    pa.sparse_union([pa.field("a", pa.int8())]),
    pa.dense_union([pa.field("a", pa.int8())]),
    pa.list_(pa.run_end_encoded(pa.int32(), pa.string())),
]
"""Types that pyarrow writes into no Parquet file; another program may say them of a column."""


def kept(*fields):
    return base64.b64encode(pa.schema(list(fields)).serialize().to_pybytes()).decode()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_polars_does_not_know_is_read_as_from_an_arrow_file_and_in_silence(tmp_path, capfd, name):
    table = pa.table({"user": USERS, "x": COLUMNS[name]})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pa.ipc.new_file(str(tmp_path / "rows.arrow"), table.schema) as file:
        file.write_table(table)
    told = []
    for form in ("parquet", "arrow"):
        rows = wpinq.protect(tmp_path / f"rows.{form}", budget=3, ledger=tmp_path / f"ledger.{form}")
        assert abs(rows.map("user").measure(1).observe("u1") - 1) < 40
        try:
            told.append(str(rows.map("x").measure(1).node.schema))
        except PlanError as error:
            told.append(str(error))
    assert told[0] == told[1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("type_", NEVER, ids=str)
def test_what_a_file_says_of_its_types_makes_no_noise_either(tmp_path, capfd, type_):
    schema = {"ARROW:schema": kept(pa.field("user", pa.string()), pa.field("x", type_))}
    table = pa.table({"user": USERS, "x": [1, 2, 3]}).replace_schema_metadata(schema)
    pq.write_table(table, tmp_path / "rows.parquet", store_schema=False)
    rows = wpinq.protect(tmp_path / "rows.parquet", budget=3)
    assert abs(rows.map("user").measure(1).observe("u1") - 1) < 40
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", COLUMNS)
def test_keys_of_such_a_type_are_refused_in_one_line_that_names_file_and_column(tmp_path, capfd, name):
    path = tmp_path / "keys.parquet"
    pq.write_table(pa.table({"x": COLUMNS[name]}), path)
    schema = Schema((Column("x", Kind.INSTANT),))
    with pytest.raises(SourceError, match=r"keys\.parquet: the column 'x' is of a type that cannot be read"):
        keys.declared("keys.parquet", schema, tmp_path, "[question.a]")
    assert capfd.readouterr() == ("", "")


PLAIN = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.bool_(),
    pa.float32(),
    pa.float64(),
    pa.int8(),
    pa.uint32(),
]


@pytest.mark.parametrize("type_", [*PLAIN, pa.binary(), pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.null()])
def test_plain_columns_are_told_without_arrow(type_):
    assert arrow_schema.all_plain(kept(pa.field("a", pa.string()), pa.field("b", type_))) == (type_ in PLAIN)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Zurich", "US/Pacific", "EST5EDT"])
def test_what_polars_knows_stays_with_polars(zone):
    assert pl.Series(dtype=pl.Datetime("us", zone)).dtype == pl.Datetime("us", zone)
    nested = pa.struct([("a", pa.list_(pa.timestamp("ns", zone))), ("b", pa.dictionary(pa.int8(), pa.string()))])
    assert not arrow_schema.unknown(kept(pa.field("a", pa.timestamp("us", zone)), pa.field("b", nested)))


def test_a_schema_that_is_cut_off_or_damaged_is_never_plain_by_accident_nor_an_error():
    whole = base64.b64decode(kept(pa.field("a", pa.timestamp("us", "Mars/Olympus")), pa.field("b", pa.string())))
    for length in range(len(whole)):
        assert not arrow_schema.all_plain(base64.b64encode(whole[:length]).decode())
    assert not arrow_schema.all_plain("no base 64")
    for place in range(len(whole)):
        for other in (0, 1, 127, 128, 255):
            damaged = whole[:place] + bytes([other]) + whole[place + 1 :]
            arrow_schema.all_plain(base64.b64encode(damaged).decode())
