"""How long does a synthetic data set take? Run: python tests/benchmarks/bench_synthesis.py [edges ...] [--networkx].

Prints seconds of the best of three runs (one from 10^7 edges on), peak memory of the process so far, and checks the
degrees and that no pair is repeated.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from wpinq.postprocess.degrees.synthesis.synthesize import synthesize


def shapes(edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Power-law pages (about a tenth as many as views) and lognormal users with about the same total."""
    rng = np.random.default_rng(1)
    pages = np.minimum(rng.zipf(1.9, size=edges // 10), int(edges**0.45)) + 1
    pages = -np.sort(-(pages * (edges / pages.sum())).round().astype(np.int64).clip(1))
    users = -np.sort(-rng.lognormal(1.8, 1.0, size=edges // 10).astype(np.int64).clip(1))
    return pages, users


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    sizes = [int(float(word)) for word in sys.argv[1:] if not word.startswith("-")] or [10**6, 10**7]
    for edges in sizes:
        pages, users = (SimpleNamespace(sequence=one) for one in shapes(edges))
        times = []
        for _ in range(1 if edges >= 10**7 else 3):
            start = time.perf_counter()
            table = synthesize(pages, users=users, seed=1)
            times.append(time.perf_counter() - start)
        most = peak()
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as place:
            synthesize(pages, Path(place) / "out.parquet", users=users, seed=1)
            wrote = time.perf_counter() - start
            size = (Path(place) / "out.parquet").stat().st_size
        user, page = (column.to_numpy() for column in table.columns)
        assert np.array_equal(np.bincount(page)[1:], pages.sequence)
        keys = user * (len(pages.sequence) + 1) + page
        keys.sort()
        assert (keys[1:] != keys[:-1]).all()
        print(
            f"{len(table):>11,} edges: table {min(times):.3f} s, parquet {wrote:.3f} s ({size / 1e6:.0f} MB), "
            f"peak {most:.2f} GB"
        )
        if "--networkx" in sys.argv:
            import networkx as nx

            start = time.perf_counter()
            sequences = (np.bincount(user)[1:].tolist(), np.bincount(page)[1:].tolist())
            nx.bipartite.configuration_model(*sequences, seed=1)
            print(f"{'':>11} networkx configuration model {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
