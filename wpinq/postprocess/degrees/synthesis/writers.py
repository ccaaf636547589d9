"""Tables of pairs, written in batches."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from wpinq.postprocess.degrees.synthesis.gale_ryser import Indices

BATCH = 1 << 20  # rows


def schema(columns: tuple[str, str]) -> pa.Schema:
    """Two int64 columns without nulls."""
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.int64(), nullable=False) for name in columns])


def write_pairs(file: IO[bytes], suffix: str, users: Indices, pages: Indices, columns: tuple[str, str]) -> None:
    """Write pairs as ranks from 1, a batch at a time, in the format that `suffix` names."""
    import pyarrow as pa

    fields = schema(columns)
    with WRITERS[suffix](file, fields) as writer:
        for start in range(0, len(users), BATCH):
            part = slice(start, start + BATCH)
            ranks = [users[part].astype(np.int64) + 1, pages[part].astype(np.int64) + 1]
            writer.write_batch(pa.record_batch(ranks, schema=fields))


def _parquet(file: IO[bytes], fields: pa.Schema) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(file, fields)


def _arrow(file: IO[bytes], fields: pa.Schema) -> Any:
    from pyarrow import ipc

    return ipc.new_file(file, fields)


def _text(delimiter: str, comment: str = "") -> Callable[[IO[bytes], pa.Schema], Any]:
    def open_text(file: IO[bytes], fields: pa.Schema) -> Any:
        from pyarrow import csv as arrow_csv

        header = io.StringIO()
        csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(fields.names)
        file.write((comment + header.getvalue()).encode())
        options = arrow_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
        return arrow_csv.CSVWriter(file, fields, write_options=options)

    return open_text


WRITERS: dict[str, Callable[[IO[bytes], pa.Schema], Any]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".csv": _text(","),
    ".tsv": _text("\t"),
    ".txt": _text(" ", comment="# "),
}
