"""Files that appear whole or not at all, and tables of pairs written in batches."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from wpinq.arguments import instance, require
from wpinq.errors import SourceError
from wpinq.storage import appearing

if TYPE_CHECKING:
    import pyarrow as pa

    from wpinq.postprocess.degrees.synthesis.gale_ryser import Indices

BATCH = 1 << 20  # rows


@contextmanager
def replacing(call: str, path: str | Path, suffixes: tuple[str, ...]) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all; see `storage.appearing`.

    Args:
        call: The name of the public call, for the error.
        path: Where the file shall stand; what stands there is replaced.
        suffixes: The endings that `call` can write.

    Raises:
        SourceError: The suffix is not one of `suffixes`, or the place cannot be written.
    """
    require(path, instance("a path", str, os.PathLike), f"{call}(path)")
    path = Path(path)
    if path.suffix.lower() not in suffixes or "\0" in str(path):
        raise SourceError(f"{call}({str(path)!r}): the file's name must end in one of {', '.join(suffixes)}.")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        with appearing(path, 0o666) as file:
            yield file
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceError(f"{call}({str(path)!r}): cannot be written: {reason}. Choose another place; what was "
                          "charged stays charged, and asking the same again is free.") from None  # fmt: skip


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
