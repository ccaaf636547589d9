"""Reconcile a noisy CDF and a noisy sequence: one degree distribution that fits both.

Both curves describe the same staircase, one by columns and one by rows. The CDF is precise at the head and the
sequence at the tail, so together they tell more than each does at its own epsilon. They do not always tell more than
one of them at the epsilon of both: where noise is narrow its error falls exponentially with epsilon, and half of it is
worth much less than half. Mean error in volume on CA-GrQc, of isotonic regression of the CDF alone at all of epsilon,
of the posterior of halves, and of the posterior with 19/20 for the CDF: 320, 412, 301 at epsilon 0.2; 60, 102, 54 at 1;
20, 47, 22 at 2; 4, 18, 4 at 4. (Of the CDF alone at half of epsilon: 543, 138, 62, 18.) So it is the division that
loses, and no other fit of two halves mends that. `degrees.release` divides nothing: 253, 56, 20, 2.

Plain numbers in, plain numbers out.

**Squares.** The path of the least squared cost is two isotonic regressions and one merge, linear in the worst case.

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
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from wpinq.arguments import NAME, takes
from wpinq.core.kernels.loops import compiled_items
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import positive
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.degrees.path import Ints, shortest_path
from wpinq.postprocess.degrees.posterior.evidence import Curves
from wpinq.postprocess.degrees.posterior.horizon import Observable, observe_enough
from wpinq.postprocess.degrees.posterior.marginals import Floats

Method: TypeAlias = Literal["posterior", "path", "squares"]
Prior: TypeAlias = Literal["uniform", "smooth"]

LEAST_SCALE, LARGEST_SCALE = Fraction(1, 10**9), Fraction(10**12)
"""Scales that double precision tells apart, squared and in ratio."""


@takes("degrees.reconcile", method=NAME, prior=NAME)
def reconcile(
    cdf: Observable | npt.ArrayLike,
    sequence: Observable | npt.ArrayLike,
    scales: tuple[Any, Any] | None = None,
    method: Method = "posterior",
    prior: Prior = "uniform",
) -> Fit:
    """Fit the degree distribution that agrees best with both.

    Args:
        cdf: Measurement of the numbers of items of multiplicity at least 1, 2, 3, ...; or those noisy numbers.
        sequence: Measurement of the multiplicities of the items of rank 1, 2, 3, ..., largest first; or those numbers.
            Of measurements, as many bins are observed as the released numbers call for (see `horizon`).
        scales: Scales of the noise of the two arrays, exact, from 10**-9 to 10**12; not given with measurements, which
            know theirs.
        method: `"posterior"`, the medians over all staircases, which err least (on MiCo by 28%), save where thousands
            of items share one multiplicity. No method is as good as `degrees.release` at the epsilon of both, and from
            epsilon 1 on, none with equal scales is as good as the CDF alone at all of it (see above): give the CDF
            nearly all, or use `degrees.release`;
            `"path"`, the nearest staircase in scaled absolute distance, which is the likeliest one under Laplace noise;
            `"squares"`, the nearest in squared distance. These two stay in the box of the columns and ranks given; the
            posterior goes on beyond it as the other array says, and leaves empty what neither speaks of.
        prior: What the posterior, and the fit's bands, assume beforehand. `"uniform"`: nothing.
            `"smooth"`: neighbouring multiplicities are about equally frequent (see `smooth`). Where that is so it errs
            less: on MiCo, scales 10, by 1,378 and not 1,659 (means of 30 runs). Where it is not, both fit and bands go
            wrong, and nothing tells: with half of MiCo's multiplicities rounded to multiples of 5 it errs by 2,620 and
            not 1,755, and its 90% bands hold 50% of columns 31 to 100 and not 92%.
            Choose it by what you know of the data, never by looking at both.

    Raises:
        PlanError: The arguments are not two measurements, or two non-empty arrays of finite numbers with their scales;
            or the method or the prior is none of these, or another method than the posterior is given a prior; or the
            smooth prior has too many columns, or too wide noise, for some seconds of work.

    >>> from wpinq.degrees import reconcile
    >>> fit = reconcile([6, 2, 3, 1, -1], [5, 3, 2, 1, 0, 1, 0, 0], scales=(1, 1), method="path")
    >>> fit.cdf.tolist(), fit.sequence.tolist(), fit.records
    ([6, 2, 2, 1], [4, 3, 1, 1, 1, 1], 11)
    """
    check_method(method, "reconcile")
    check_prior(prior, method, "reconcile")
    noisy, exact_scales = observed(cdf, sequence, scales)
    evidence = Curves(noisy, exact_scales, smooth=prior == "smooth")
    about = together(getattr(cdf, "about", None), getattr(sequence, "about", None))
    if method == "posterior":
        return Fit(*evidence.staircases((0.5,))[0], evidence, method, about)
    heights = (shortest_path if method == "path" else squares_path)(*noisy, exact_scales)
    return Fit(*evidence.staircase(heights), evidence, method, about)


def together(cdf: Any, sequence: Any) -> dict[str, Any] | None:
    """What describes two measurements: what one of them says, at the cost of both; None for bare numbers."""
    if not isinstance(cdf, dict) or not isinstance(sequence, dict):
        return None
    return {**cdf, "cost": {name: cdf["cost"][name] + sequence["cost"][name] for name in cdf["cost"]}}


def check_method(method: Method, call: str) -> Method:
    """Insist on a known method."""
    if method not in ("posterior", "path", "squares"):
        raise PlanError(f"{call}(method={method!r}): expected 'posterior', 'path' or 'squares'.")
    return method


def check_prior(prior: Prior, method: Method, call: str) -> None:
    """Insist on a known prior, which only the posterior has."""
    if prior not in ("uniform", "smooth"):
        raise PlanError(f"{call}(prior={prior!r}): expected 'uniform' or 'smooth'.")
    if prior == "smooth" and method != "posterior":
        raise PlanError(f"{call}(prior='smooth', method={method!r}): only method='posterior' has a prior; drop one.")


def observed(
    cdf: Any, sequence: Any, scales: tuple[Any, Any] | None
) -> tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], tuple[Fraction, Fraction]]:
    """Return both curves as arrays, with the scales of their noise."""
    if any(hasattr(curve, "measure") for curve in (cdf, sequence)):
        raise PlanError("reconcile(cdf, sequence): a collection is not measured yet; call .measure(epsilon=...) first.")
    if any(getattr(curve, "rho", 0) for curve in (cdf, sequence)):
        raise PlanError(
            "reconcile(cdf, sequence): fits of two curves are for Laplace noise, and one has Gaussian noise; "
            "measure it with epsilon= alone, or take degrees.release(...), which fits both."
        )
    measured = [hasattr(curve, "observe_many") for curve in (cdf, sequence)]
    if all(measured):
        if scales is not None:
            raise PlanError("reconcile(scales=...): measurements know their scales; leave it out.")
        if [_columns(curve) for curve in (cdf, sequence)] == [("rank",), ("index",)]:
            raise PlanError("reconcile(cdf, sequence): the first has bins by rank and the second by index, so they are "
                            "the other way round; swap them.")  # fmt: skip
        both = cast("tuple[Observable, Observable]", (cdf, sequence))
        columns, rows = observe_enough(*both)
        return (values(columns, "cdf"), values(rows, "sequence")), read_scales((both[0].scale, both[1].scale))
    if any(measured):
        raise PlanError("reconcile(cdf, sequence): one is a measurement and the other is not; pass two of a kind.")
    if scales is None:
        raise PlanError("reconcile(cdf, sequence): arrays need scales=(scale of cdf, scale of sequence).")
    return (values(cdf, "cdf"), values(sequence, "sequence")), read_scales(scales)


def _columns(measurement: Any) -> tuple[str, ...]:
    """What the columns of a measurement's bins are called, where it knows its plan."""
    node = getattr(measurement, "node", None)
    return () if node is None else node.schema.names


def values(curve: Any, name: str) -> npt.NDArray[Any]:
    """Return a curve as an array of int64 or float64, laid out as the compiled kernels expect."""
    try:
        array = np.asarray(curve)
    except ValueError:
        array = np.asarray(None)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        result = f"{array.ndim} dimensions, {array.size} entries of type {array.dtype}"
        raise PlanError(f"reconcile({name}=...): expected one row of numbers, largest bin count first; found {result}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise PlanError(f"reconcile({name}=...): found nan or inf; pass finite numbers only.")
    return np.require(array, np.int64 if array.dtype.kind == "i" else np.float64, ["C", "W"])


def read_scales(scales: Any) -> tuple[Fraction, Fraction]:
    """Return the two scales as fractions above zero."""
    try:
        first, second = scales
        pair = positive(first, "reconcile(scales=...)"), positive(second, "reconcile(scales=...)")
    except ExactnessError as error:
        raise PlanError(str(error)) from None
    except (TypeError, ValueError):
        raise PlanError("reconcile(scales=...): expected (scale of cdf, scale of sequence).") from None
    if min(pair) < LEAST_SCALE or max(pair) > LARGEST_SCALE:
        raise PlanError("reconcile(scales=...): scales of noise are expected between 10**-9 and 10**12.")
    return pair


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
