"""Plans of tables beside HDMM and ResidualPlanner, on the domains that both published on.

The root of the mean variance of all wanted cells, where the budget buys one measured margin a variance of 1 (rho 1/2
with Gaussian noise; epsilon of the square root of 2 with Laplace noise). Wanted are all tables of 1, 2 or 3 columns, or
of 3 and fewer.

- residuals: ResidualPlanner's optimum, by its closed form (Xiao, Sun, Xiao, Kifer, Zhang, NeurIPS 2023, section 5), of
  the domains in its authors' code (github.com/dkifer/ResidualPlanner, `selection_only/workload.py`). No mechanism with
  Gaussian noise errs less.
- HDMM: its marginals template, OPT_M (McKenna, Miklau, Hay, Machanavajjhala, PVLDB 11(10), 2018, section 7.1): weights
  of all margins by L-BFGS from random ones, as its authors' code has it (github.com/dpcomp-org/hdmm, `templates.py`),
  the best of some beginnings. It is run here, over our sum of variances.
- ours: the variances that `plan_tables` has after its shares are rounded, with its seconds and how much it measures.
- largest: the largest variance of a cell by ResidualPlanner's program for it (`selection_only/class_maxvar.py`), solved
  by CVXPY outside of this repository (`PROGRAM`), and by `aim="max"`.

Usage: python tests/benchmarks/bench_plans.py [--smoke]

`--smoke` leaves out large domains.
"""

from __future__ import annotations

import math
import time

import numpy as np
from flags import flags
from scipy.optimize import minimize

from wpinq.postprocess.cube import Cube, Floats
from wpinq.postprocess.shares import Workload, planned

DOMAINS = {
    "CPS": [50, 100, 7, 4, 2],
    "Adult": [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2],
    "Loans": [101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15],
    **{f"10^{columns}": [10] * columns for columns in (2, 6, 10, 12, 14, 15)},
    "2^14": [2] * 14,
}
WAYS = {"1": [1], "2": [2], "3": [3], "0 to 3": [0, 1, 2, 3]}
PROGRAM = {
    "CPS": [4.3464, 7.8970, 7.7058, 13.2156],
    "Adult": [12.0465, 67.8021, 236.8428, 253.6052],
    "Loans": [10.6398, 52.2169, 156.6381, 180.8171],
    "10^6": [5.3109, 11.9639, 14.7666, 26.9046],
    "2^14": [5.6208, 15.6636],
}
"""The least largest variance for each of `WAYS`, as the program of ResidualPlanner's authors has it."""
PARTS = 10**9
STARTS = 3
"""Random beginnings of HDMM."""


def workload(sizes: list[int], ways: list[int], *, gaussian: bool) -> Workload:
    """All tables of so many columns; any margin that has no more cells than the largest of them may be measured."""
    cube = Cube(sizes)
    wanted = np.isin([margin.bit_count() for margin in range(len(cube.cells))], ways)
    allowed = cube.cells <= max(2**21, cube.cells[wanted].max())
    return Workload(cube, wanted.astype(float), allowed, gaussian=gaussian)


def hdmm(wanted: Workload, seed: int) -> float:
    """The sum of variances of OPT_M: over weights that are free, times their sum, from random ones."""
    rng, margins = np.random.default_rng(seed), np.flatnonzero(wanted.allowed)
    scale = wanted.error(wanted.allowed / wanted.allowed.sum())

    def loss(parameters: Floats) -> tuple[float, Floats]:
        shares = np.zeros(len(wanted.allowed))
        shares[margins] = parameters
        total, slopes = wanted._loss(shares)
        power = 1 if wanted.gaussian else 2  # the sensitivity, or its square
        whole = parameters.sum()
        falls = slopes[margins] * (1 if wanted.gaussian else 2 * parameters)
        return total * whole**power / scale, (power * whole ** (power - 1) * total - whole**power * falls) / scale

    begin = rng.random(len(margins))
    result = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=[(1e-12, None)] * len(margins),
                      options={"maxiter": 5000, "maxfun": 10_000})  # fmt: skip
    return float(result.fun * scale)


def ours(wanted: Workload, aim: str) -> tuple[Floats, int]:
    """The variance of each margin, and how many margins or residuals are measured."""
    cube, numbers = wanted.cube, np.flatnonzero(wanted.importance).tolist()
    alone = cube.dimensions / cube.cells
    prices = (alone, np.ones(len(alone))) if wanted.gaussian else None
    shares, residuals = planned(cube, numbers, wanted.allowed, prices, aim=aim)
    shares = np.where(shares > 0, np.maximum(np.floor(shares * PARTS), 1) / PARTS, 0)
    many = int((shares > 0).sum())
    if not residuals:
        return wanted.variances(shares), many
    return cube.variances(cube.repeats * np.divide(shares, alone, out=np.zeros_like(shares), where=alone > 0)), many


def main(smoke: bool) -> None:
    """One line for each domain and workload."""
    print("| noise | domain | columns of a table | residuals | HDMM | ours | measured | seconds | largest | ours |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for gaussian in (True, False):
        for name, sizes in DOMAINS.items():
            for way, (words, ways) in enumerate(WAYS.items()):
                if max(ways) > len(sizes) or (smoke and len(sizes) > 6):
                    continue
                wanted = workload(sizes, ways, gaussian=gaussian)
                told, cube = wanted.importance > 0, wanted.cube
                start = time.process_time()
                variances, many = ours(wanted, "cells")
                seconds = time.process_time() - start
                other = min(hdmm(wanted, seed) for seed in range(1 if smoke else STARTS))
                cells, least, largest = cube.cells[told].sum(), "", ["", ""]
                if gaussian:
                    bound = wanted.of_residuals(cube.dimensions / cube.cells)[0]
                    least = f"{math.sqrt(bound / cells):.3f}"
                    largest[0] = f"{value:.3f}" if (value := dict(enumerate(PROGRAM.get(name, []))).get(way)) else ""
                if gaussian or len(sizes) < 7:
                    largest[1] = f"{ours(wanted, 'max')[0][told].max():.3f}"
                errors = (other, float((cube.cells * variances)[told].sum()))
                theirs, own = (f"{math.sqrt(error / cells):.3f}" for error in errors)
                row = ["Gaussian" if gaussian else "Laplace", name, words, least, theirs, own, str(many)]
                print("|", " | ".join([*row, f"{seconds:.1f}", *largest]), "|", flush=True)


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
