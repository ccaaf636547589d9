"""Plans of tables beside HDMM and ResidualPlanner, on the domains that both published on.

The root of the mean variance of all wanted cells, where the budget buys one measured margin a variance of 1 (rho 1/2
with Gaussian noise; epsilon of the square root of 2 with Laplace noise). Wanted are all tables of 1, 2 or 3 columns, or
of 3 and fewer.

- residuals: ResidualPlanner's optimum, by its closed form (Xiao, Sun, Xiao, Kifer, Zhang, NeurIPS 2023, section 5), of
  the domains in its authors' code (github.com/dkifer/ResidualPlanner, `selection_only/workload.py`). No mechanism with
  Gaussian noise errs less. It needs noise on residuals; margins that are measured one by one do not reach it.
- HDMM: its marginals template, OPT_M (McKenna, Miklau, Hay, Machanavajjhala, PVLDB 11(10), 2018, section 7.1): weights
  of all margins by L-BFGS from random ones, as its authors' code has it (github.com/dpcomp-org/hdmm, `templates.py`),
  the best of some beginnings. It is run here, over our sum of variances.
- ours: `plan_tables`, with its seconds and how many margins it measures.

Usage: python tests/benchmarks/bench_plans.py [--smoke]

`--smoke` leaves out large domains.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from scipy.optimize import minimize

from wpinq.postprocess.cube import Cube, Floats
from wpinq.postprocess.shares import Workload, best

DOMAINS = {
    "CPS": [50, 100, 7, 4, 2],
    "Adult": [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2],
    "Loans": [101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15],
    **{f"10^{columns}": [10] * columns for columns in (2, 6, 10, 12, 14, 15)},
    "2^14": [2] * 14,
}
WAYS = {"1": [1], "2": [2], "3": [3], "0 to 3": [0, 1, 2, 3]}
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


def main(smoke: bool) -> None:
    """One line for each domain and workload."""
    print("| noise | domain | columns of a table | residuals | HDMM | ours | margins | seconds |")
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for gaussian in (True, False):
        for name, sizes in DOMAINS.items():
            for words, ways in WAYS.items():
                if max(ways) > len(sizes) or (smoke and len(sizes) > 6):
                    continue
                wanted = workload(sizes, ways, gaussian=gaussian)
                start = time.process_time()
                shares = best(wanted)
                seconds = time.process_time() - start
                cells = float((wanted.importance * wanted.cube.cells).sum())
                other = min(hdmm(wanted, seed) for seed in range(1 if smoke else STARTS))
                errors = [wanted.bound(), other, wanted.error(shares)]
                residuals, theirs, ours = (f"{math.sqrt(error / cells):.3f}" for error in errors)
                row = ["Gaussian", name, words, residuals] if gaussian else ["Laplace", name, words, ""]
                print("|", " | ".join([*row, theirs, ours, str((shares > 0).sum()), f"{seconds:.1f}"]), "|", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    main(parser.parse_args().smoke)
