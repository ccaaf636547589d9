"""Tables of a case as sources of the package, in several forms of the same records."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
from attacks.fuzz.case import Table
from attacks.fuzz.pools import python

import wpinq
from wpinq.core.ledger.rows.secret import Secret

TYPES = {
    "integer": pl.Int64(), "number": pl.Float64(), "text": pl.String(), "boolean": pl.Boolean(), "bytes": pl.Binary(),
    "date": pl.Date(), "timestamp": pl.Datetime("us"), "instant": pl.Datetime("us", "UTC"),
    "duration": pl.Duration("us"),
}  # fmt: skip
Row = tuple[object, ...]


def opened(table: Table, place: Path, ledger: Path | None, secret: Secret, way: str) -> wpinq.Collection:
    """Protect a table, or open it as a live source."""
    options = {"budget": eval(table.budget), "delta": "1/10", "secret": secret, "name": table.name, "ledger": ledger}
    unit = eval(f"dict({table.unit})", {"users": wpinq.users})
    kinds = {name: None if kind == "value" else kind for name, kind in table.columns}
    if table.live:
        return wpinq.live(kinds, **options, **unit)
    form = way if way in ("split", "tuples", "parquet") else table.form
    rows = list(table.rows)
    if way in ("split", "tuples", "parquet"):
        rows = [row for _, row in sorted(enumerate(rows), key=lambda pair: math.sin(1 + pair[0]))]  # in another order
    if form == "csv":
        path = place.with_suffix(".csv")
        frame(table, rows).write_csv(path, quote_style="necessary")
        return wpinq.protect(path, columns=kinds, version=table.version, **options, **unit)
    general = any(kind == "value" for _, kind in table.columns)
    if general or form == "tuples":
        plain = [tuple(python(v, k) for v, (_, k) in zip(row, table.columns, strict=True)) for row in rows]
        return wpinq.protect(plain, columns=kinds, version=table.version, **options, **unit)
    given: object = frame(table, rows)
    if form == "split":
        given = chunked(table, rows)
    if form == "parquet":
        path = place.with_suffix(".parquet")
        frame(table, rows).write_parquet(path, row_group_size=2)
        given = path
    return wpinq.protect(given, version=table.version, **options, **unit)


def send(live: wpinq.Live, table: Table, rows: list[Row], way: str) -> None:
    """Send the records of an epoch, at once or one by one."""
    for some in [rows] if way != "split" else [[row] for row in reversed(rows)]:
        if any(kind == "value" for _, kind in table.columns):
            live.send([tuple(python(v, k) for v, (_, k) in zip(row, table.columns, strict=True)) for row in some])
        else:
            live.send(frame(table, some))


def frame(table: Table, rows: list[Row]) -> pl.DataFrame:
    """Records as columns; dates and times come from their numbers, far ones too."""
    columns = []
    for place, (name, kind) in enumerate(table.columns):
        values = [row[place] for row in rows]
        if kind in ("date", "timestamp", "instant", "duration"):
            small = pl.Int32 if kind == "date" else pl.Int64
            columns.append(pl.Series(name, values, dtype=small).cast(TYPES[kind]))
        else:
            columns.append(pl.Series(name, values, dtype=TYPES[kind]))
    return pl.DataFrame({column.name: column for column in columns})  # of a list one without a name would get one


def chunked(table: Table, rows: list[Row]) -> object:
    """An Arrow stream of batches of one, two, no and one record."""
    import pyarrow as pa

    if any("\0" in name for name, _ in table.columns):  # no Arrow schema can say it
        return frame(table, rows)
    cuts, at, sizes = [], 0, [1, 2, 0, 1, 3]
    while at < len(rows):
        size = sizes[len(cuts) % len(sizes)]
        cuts.append(frame(table, rows[at : at + size]).to_arrow())
        at += size
    return pa.concat_tables(cuts) if cuts else frame(table, rows).to_arrow()
