"""The examples: they run in seconds, say what they should, and cost nothing the second time."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import processes
import pytest
from depth import deep

from examples import sample
from wpinq.core.ledger import Ledger


def run(module: str, *arguments: object) -> str:
    return processes.printed("-W", "error", "-m", module, *arguments)


def test_the_sample_is_seeded_heavy_tailed_and_left_alone(tmp_path):
    users, pages = sample.sample(30_000, seed=1)
    again, other = sample.sample(30_000, seed=1), sample.sample(30_000, seed=2)
    assert all(np.array_equal(*pair) for pair in zip((users, pages), again, strict=True))
    assert not np.array_equal(pages, other[1])
    views = np.sort(np.bincount(pages)[1:])[::-1]
    assert views[0] > 100 * np.median(views)
    assert views[views <= 5].sum() > 0
    path = tmp_path / "new" / "views.csv"
    sample.write(path, 1000, 3)
    lines = path.read_text().splitlines()
    assert (lines[0], len(lines)) == ("user,page", 1001)
    before = path.stat().st_mtime_ns
    sample.write(path, 1000, 3)
    assert path.stat().st_mtime_ns == before
    sample.write(path, 1000, 4)
    assert path.read_text().splitlines() != lines


@deep
def test_things_that_count(tmp_path):
    first, second = (run("examples.things_that_count", tmp_path) for _ in range(2))
    assert first == second  # the same release, for the same charge
    assert Ledger.existing(tmp_path / "views.csv.ledger").remaining() == 0
    assert (tmp_path / "degrees.png").read_bytes().startswith(b"\x89PNG")
    synthetic = Counter(line.split(",")[1] for line in (tmp_path / "synthetic.csv").read_text().splitlines()[1:])
    told = re.search(r"holds ([\d,]+) made-up views of ([\d,]+) pages", first)
    views, pages = (int(one.replace(",", "")) for one in told.groups())
    assert (len(synthetic), synthetic.total()) == (pages, views)
    # Every fit errs less than a tenth of the noise by page; 12 runs: 0.2 to 0.4 views, against 20.
    errors = [float(one) for one in re.findall(r"(\d+\.\d\d) views", first)]
    assert len(errors) == 4
    assert all(one < errors[0] / 10 for one in errors[1:])


@deep
def test_triangles_tell_a_real_graph_from_a_rewired_one():
    said = run("examples.triangles")
    found = re.findall(r"TbI (-?[\d,]+) at .* synthetic ([\d,]+) triangles, true ([\d,]+)", said)
    (signal, made, true), (rewired, _, few) = [[int(word.replace(",", "")) for word in line] for line in found]
    assert signal > 10 * abs(rewired) + 1000
    assert abs(made / true - 1) < 0.1 < 0.9 < 1 - few / true


@deep
def test_davis_women(tmp_path):
    said = run("examples.davis_women", tmp_path)
    assert "18 women, 14 events, 89 attendances" in said
    assert (tmp_path / "davis_women.png").read_bytes().startswith(b"\x89PNG")
    noisy = [(int(one), int(other)) for one, other in re.findall(r"^   E\d+ +(-?\d+) +(\d+)$", said, re.MULTILINE)]
    assert len(noisy) == 14
    assert sum(true for _, true in noisy) == 89
    # noise of scale 2: that 14 draws are all zero has chance 0.245 ** 14, below 3e-9
    assert any(one != true for one, true in noisy)


@deep
def test_telemetry_of_installs_is_counted_and_nothing_of_them_is_left(tmp_path):
    said = run("examples.telemetry", tmp_path, "--installs", 400)
    rows = re.findall(r"between (-?[\d.]+) and (-?[\d.]+), true ([\d,]+)", said)
    assert len(rows) == 22  # of each the interval holds with probability 0.95: 9 misses or more have chance below 1e-6
    assert sum(not float(low) <= int(true.replace(",", "")) <= float(high) for low, high, true in rows) < 9
    assert "nothing is left" in said and (tmp_path / "public" / "index.html").exists()


def test_the_sample_s_command_line(tmp_path):
    assert "1,000 made-up views, seed 7" in run("examples.sample", tmp_path / "v.csv", "--views", 1000, "--seed", 7)
    assert len((tmp_path / "v.csv").read_text().splitlines()) == 1001


@pytest.mark.parametrize("name", ["things_that_count", "davis_women"])
def test_help(name):
    assert "directory for" in run(f"examples.{name}", "--help")
