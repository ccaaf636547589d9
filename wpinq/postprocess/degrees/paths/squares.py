"""The exact squared-cost path: two isotonic regressions and one merge, linear in the worst case.

With the weights e = 1 / scale**2 the cost of taking in cell (c, j) is p[c] + q[j], a sum of a column's and a row's
share. Where the isotonic regressions of `p` and of `q` sum to a negative number is the cheapest staircase.
It is the maximum likelihood estimate under Gaussian noise, and the cost of McSherry's published code.

The regression's block means are in double precision: the staircase's cost is the least one up to 1e-12 of itself.

Proof. Let p^ and q^ be the regressions, w(c, j) = p[c] + q[j] and w^(c, j) = p^[c] + q^[j]. The residuals of p sum up
to at most 0 against every nondecreasing u, and to 0 where u is constant on the blocks. For a down-set S of cells, -1_S
is nondecreasing along every row and every column, so w(S) >= w^(S) >= w^(S*), where S* = {w^ < 0} is a down-set. In
each row S* ends where a block of p^ ends, in each column where one of q^ does, so w(S*) = w^(S*).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from wpinq.core.kernels.loops import compiled_items
from wpinq.postprocess.degrees.paths.corridor import Ints
from wpinq.postprocess.degrees.posterior.marginals import Floats


@compiled_items
def pool(values: Floats, sums: Floats, counts: Ints) -> int:
    """Pool adjacent violators: write the blocks of the nondecreasing regression, and return how many there are."""
    blocks = 0
    for value in values:
        total, count = value, 1
        while blocks > 0 and sums[blocks - 1] * count >= total * counts[blocks - 1]:
            blocks -= 1
            total += sums[blocks]
            count += counts[blocks]
        sums[blocks] = total
        counts[blocks] = count
        blocks += 1
    return blocks


def nondecreasing(values: Floats) -> Floats:
    """Return the nondecreasing sequence that is nearest to `values` in squared distance.

    >>> nondecreasing(np.array([3.0, 1.0, 2.0, 5.0])).tolist()
    [2.0, 2.0, 2.0, 5.0]
    """
    sums, counts = np.empty(len(values)), np.empty(len(values), np.int64)
    blocks = pool(np.ascontiguousarray(values), sums, counts)
    return np.repeat(sums[:blocks] / counts[:blocks], counts[:blocks])


def squares_path(cdf: npt.ArrayLike, sequence: npt.ArrayLike, scales: tuple[Fraction, Fraction]) -> Ints:
    """Return the column heights of the staircase that is nearest in weighted squared distance.

    Args:
        cdf: Noisy values of the columns, multiplicities 1, 2, ...
        sequence: Noisy values of the rows, ranks 1, 2, ...; the staircase lives in this box.
        scales: Scales of their noise, positive; the weights are 1 / scale**2.

    >>> squares_path([3, 1, 1, 0], [4, 0, 1], (Fraction(1), Fraction(1))).tolist()
    [3, 1, 1, 0]
    """
    v, h = np.asarray(cdf, np.float64), np.asarray(sequence, np.float64)
    ratio = float(scales[0] / scales[1]) ** 2
    e1, e2 = (1.0, ratio) if ratio <= 1 else (1 / ratio, 1.0)
    columns = nondecreasing(e2 * (2.0 * np.arange(len(v)) + 1) - 2 * e1 * v)
    rows = nondecreasing(e1 * (2.0 * np.arange(len(h)) + 1) - 2 * e2 * h)
    return np.searchsorted(rows, -columns, side="left").astype(np.int64)
