"""Microseconds of noise for a bin of integer identity, beside NumPy's Laplace and OpenDP's sampler.

    python tests/benchmarks/bench_noise.py --bins 1000000 --json noise.json

All run in one process, interleaved, on the same number of bins; the least of the rounds counts, since
other work on a machine only ever adds. NumPy's Laplace is fast and insecure: it is the floor, not a rival.
OpenDP (`pip install opendp`) is measured where it can be imported, on at most 100,000 bins a round, and
its time is taken to grow with the number of bins. Identities are given, except where a line says that the bins are
texts or integers that somebody asks for: those are read, hashed and given their noise.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from flags import flags

from wpinq.core.noise import Words, histogram_digest, mechanism
from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Kind, Schema

SCALES = (10, 10**4)
OPENDP_MOST = 100_000


def opendp_laplace(scale: int, bins: int) -> Callable[[], object] | None:
    """OpenDP's `make_laplace` on a vector of integers: discrete Laplace, exact, in Rust."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        print(f"opendp is left out: {error}")
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measure, data = dp.m.make_laplace(*space, scale=float(scale)), [0] * bins
    return lambda: measure(data)


def whole(asked: object, schema: Schema, scale: int) -> object:
    """Everything between a list of bins and their noise."""
    ids = identities(bin_frame(asked, schema), schema, bytes(16))
    return mechanism("geometric", Fraction(scale)).draw(Words(bytes(32)), ids)


def runs(scale: int, bins: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """What is timed: a name, the bins of one round, and the round."""
    identities = np.stack([np.arange(bins, dtype=np.uint64), np.zeros(bins, dtype=np.uint64)], axis=1)
    weights, generator = np.arange(1, bins + 1), np.random.default_rng(1)
    table: dict[str, tuple[int, Callable[[], object]]] = {
        "numpy laplace (insecure)": (bins, lambda: generator.laplace(0.0, scale, bins)),
        "histogram digest": (bins, lambda: histogram_digest(bytes(32), identities, weights)),
    }
    for name in ("geometric", "laplace"):
        draw = mechanism(name, Fraction(scale)).draw
        table[f"wpinq {name}"] = (bins, lambda draw=draw: draw(Words(bytes(32)), identities))
    gaussian = DiscreteGaussian(Fraction(2 * scale**2)).draw
    table["wpinq gaussian, as wide"] = (bins, lambda: gaussian(Words(bytes(32)), identities))
    kinds = {"integer": Kind.INT, "text": Kind.TEXT}
    for kind, asked in (("integer", range(bins)), ("text", pl.Series([f"page/{i}" for i in range(bins)]))):
        table[f"wpinq geometric, {kind} bins"] = (bins, partial(whole, asked, Schema.of(page=kinds[kind]), scale))
    few = min(bins, OPENDP_MOST)
    if opendp := opendp_laplace(scale, few):
        table["opendp make_laplace"] = (few, opendp)
    return table


def measure(scale: int, bins: int, rounds: int) -> dict[str, float]:
    """Microseconds a bin: the least of `rounds` interleaved rounds after one that warms up."""
    table = runs(scale, bins)
    best = dict.fromkeys(table, float("inf"))
    for turn in range(rounds + 1):
        for name, (count, run) in table.items():
            start = time.perf_counter()
            run()
            if turn:
                best[name] = min(best[name], (time.perf_counter() - start) / count * 1e6)
    return best


def report(bins: int, rounds: int) -> dict[str, object]:
    """Measure every scale, and the ratios that the targets speak of."""
    scales = {}
    for scale in SCALES:
        times = measure(scale, bins, rounds)
        ours = times["wpinq geometric"]
        ratios = {
            f"{name} / wpinq geometric": value / ours for name, value in times.items() if name != "wpinq geometric"
        }
        scales[str(scale)] = {"us_per_bin": times, "ratios": ratios}
    return {
        "benchmark": "noise",
        "bins": bins,
        "rounds": rounds,
        "machine": {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()},
        "scales": scales,
    }


def main() -> None:
    """Run, print a table, and write JSON where asked."""
    parser = flags(__doc__)
    parser.add_argument("--bins", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = report(10_000 if arguments.smoke else arguments.bins, 1 if arguments.smoke else arguments.rounds)
    for scale, entry in found["scales"].items():  # type: ignore[attr-defined]
        print(f"scale {scale}, {found['bins']:,} bins")
        for name, value in entry["us_per_bin"].items():
            print(f"  {name:28} {value:9.4f} us a bin   {value / entry['us_per_bin']['wpinq geometric']:9.2f} x")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
