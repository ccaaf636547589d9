"""Files: read again they are equal, and they appear whole or not at all."""

from __future__ import annotations

import csv
import subprocess
import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from wpinq.errors import SourceError
from wpinq.postprocess.degrees.synthesis import sampler, writers
from wpinq.postprocess.degrees.synthesis.synthesize import synthesize, to_networkx

FIT = SimpleNamespace(sequence=np.array([9, 5, 5, 2, 1, 1]))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read(path):
    match path.suffix.lower():
        case ".parquet":
            return pl.read_parquet(path)
        case ".arrow":
            return pl.read_ipc(path)
        case ".csv":
            return pl.read_csv(path)
        case ".tsv":
            return pl.read_csv(path, separator="\t")
        case _:
            return pl.read_csv(path, separator=" ", has_header=False, comment_prefix="#", new_columns=["who", "what"])


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv", "a.tsv", "a.txt", "A.CSV"])
@pytest.mark.parametrize("batch", [7, 1 << 20])
def test_a_file_holds_what_the_table_holds(tmp_path, monkeypatch, name, batch):
    monkeypatch.setattr(writers, "BATCH", batch)
    path = tmp_path / name
    path.write_text("what stood here before")
    columns = ("who", "what")
    assert synthesize(FIT, path, columns=columns, seed=4) is None
    assert read(path).equals(pl.DataFrame(synthesize(FIT, columns=columns, seed=4)))
    assert names(tmp_path) == [name]


def test_columns_with_commas_survive(tmp_path):
    columns = ('us"er', "page, viewed")
    synthesize(FIT, tmp_path / "a.csv", columns=columns)
    with (tmp_path / "a.csv").open(newline="") as file:
        assert next(csv.reader(file)) == list(columns)


@pytest.mark.parametrize("suffix", writers.WRITERS)
def test_an_empty_fit_is_an_empty_file(tmp_path, suffix):
    path = tmp_path / f"empty{suffix}"
    synthesize(SimpleNamespace(sequence=np.array([])), path)
    if suffix == ".parquet":
        assert pq.read_table(path).schema == writers.schema(("user", "page"))
    if suffix == ".arrow":
        assert ipc.open_file(path).read_all().schema == writers.schema(("user", "page"))
    lines = {".csv": "user,page\n", ".tsv": "user\tpage\n", ".txt": "# user page\n"}
    assert suffix not in lines or path.read_text() == lines[suffix]


@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failure):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail_after_one_batch(low, high):
        if low:
            raise failure
        return slice(low, high)

    monkeypatch.setattr(writers, "BATCH", 5)
    monkeypatch.setattr(writers, "slice", fail_after_one_batch, raising=False)
    with pytest.raises(failure):
        synthesize(FIT, path, seed=1)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.csv"]


def test_a_full_disk_is_one_clear_line(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(writers.WRITERS, ".csv", full)
    with pytest.raises(SourceError, match="No space left on device") as caught:
        synthesize(FIT, tmp_path / "a.csv")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


LIMITED = """
import resource, signal, sys
from types import SimpleNamespace
from wpinq.postprocess.degrees.synthesis.synthesize import synthesize
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for path in sys.argv[1:]:
    try:
        synthesize(SimpleNamespace(sequence=[200] * 200), path, seed=1)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_file_that_the_system_cuts_off_is_not_left(tmp_path):
    """For real: the process may write 20 kB a file, and each format needs more."""
    paths = [tmp_path / f"a{suffix}" for suffix in writers.WRITERS]
    for path in paths:
        path.write_text("old")
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, *paths], capture_output=True, text=True, check=True, timeout=60
    )
    lines = ran.stdout.splitlines()
    assert len(lines) == len(paths) and not ran.stderr
    assert all(line.startswith("SourceError synthesize(") and "File too large" in line for line in lines)
    assert {path.read_text() for path in paths} == {"old"}
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.csv.gz", "nul\0.csv"])
def test_an_unknown_suffix_is_refused(tmp_path, name):
    with pytest.raises(SourceError, match=r"must end in one of \.parquet, \.arrow, \.csv, \.tsv, \.txt"):
        synthesize(FIT, tmp_path / name)
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "wpinq.postprocess.degrees.synthesis.synthesize.sample", lambda *_: pytest.fail("sampled first")
    )
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "no" / "a.csv", tmp_path / "folder.csv", tmp_path / "file" / "a.csv"):
        with pytest.raises(SourceError, match="cannot be written"):
            synthesize(FIT, path)
    assert names(tmp_path) == ["file", "folder.csv"]


def test_the_graph_is_bipartite_and_has_the_degrees():
    table = synthesize(FIT, seed=3)
    graph = to_networkx(table)
    assert nx.is_bipartite(graph)
    assert graph.number_of_edges() == len(table)
    pages = {node for node, side in graph.nodes(data="bipartite") if side == 1}
    assert sorted((degree for _, degree in graph.degree(pages)), reverse=True) == FIT.sequence.tolist()


def test_sampling_is_not_written_row_by_row(tmp_path):
    """Two hundred thousand rows, several batches, still whole."""
    pages = np.full(20_000, 10)
    synthesize(SimpleNamespace(sequence=pages), tmp_path / "a.parquet", seed=1)
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame.n_unique() == len(frame) == 200_000
    assert sampler.FEW < sampler.MANY
