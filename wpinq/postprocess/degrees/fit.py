"""A fit: the degree distribution that released numbers agree on, as plain numbers.

Released curves are linear measurements for `mbi` too, which fits tables to what is linear in their counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from wpinq.arguments import NAME, NOTHING, PATH, require
from wpinq.errors import ExactnessError, PlanError, needs
from wpinq.exact import decimal, exact
from wpinq.html.numbers import beside_noise, whose
from wpinq.postprocess.degrees.path import Ints
from wpinq.postprocess.degrees.posterior.evidence import Evidence
from wpinq.postprocess.degrees.posterior.law import half_width

if TYPE_CHECKING:
    from wpinq.postprocess.picture import Picture


LEVEL = 0.9
"""The usual probability of an interval and of a band."""
MOST = 2**62
"""More records than any item has."""
NUMBERS: tuple[Literal["distinct", "records", "largest"], ...] = ("distinct", "records", "largest")
"""What a fit says in one number each."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A degree distribution, fitted to released numbers: post-processing, so looking at it costs nothing.

    `distinct`, `largest` and `records` are best guesses of their own, not read from the curves: a curve that errs least
    in volume has its first rank too high (by 5 at scale 5 of CA-GrQc, where this is 1). Of a posterior each is the sum
    of the released bins that tell it, which noise moves neither way, kept between the posterior's quartiles; so
    `sequence` may be a little longer than `distinct`, and its sum may differ from `records`. The total of two curves is
    that of `sequence`. A path has no posterior; there all three are the path's.

    Where the bound on contributions says how many records an item can have, which is public, what noise shows beyond is
    cut: no curve, band or number passes it.

    Attributes:
        cdf: Entry k - 1 is the number of items of multiplicity at least k. Nonincreasing, above zero.
        sequence: Entry r - 1 is the multiplicity of the r-th largest item. Nonincreasing, above zero. The two are each
            other's conjugate, unless an item is longer than the observed columns: `cdf` then ends with those.
        evidence: The released numbers.
        method: How it was fitted: `"posterior"`, `"path"` or `"squares"`; or `"draw"`.
        about: What describes the measurements: data set, unit, cost, and what is not in them; None for bare numbers.
    """

    cdf: Ints
    sequence: Ints
    evidence: Evidence
    method: str
    about: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name, curve in zip(("cdf", "sequence"), self._cut(self.cdf, self.sequence), strict=True):
            object.__setattr__(self, name, curve)

    @property
    def _most(self) -> int:
        """The largest multiplicity that an item can have."""
        cut = None if self.about is None else self.about["cut"]
        return MOST if cut is None else math.floor(cut)

    def _cut(self, columns: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Columns and rows of a staircase, without what no item can have."""
        return columns[: self._most], np.minimum(rows, self._most)

    @property
    def noisy_cdf(self) -> npt.NDArray[Any]:
        """The released values of columns 1, 2, ...; of a corner, of the columns that reach beyond it."""
        return self.evidence.noisy[0]

    @property
    def noisy_sequence(self) -> npt.NDArray[Any]:
        """The released values of ranks 1, 2, ...; of a corner, of the rows that reach beyond it."""
        return self.evidence.noisy[1]

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Scales of the noise of the CDF and of the sequence."""
        return self.evidence.scales

    @property
    def distinct(self) -> int:
        """How many items have multiplicity at least 1."""
        return self._best["distinct"]

    @property
    def largest(self) -> int:
        """The multiplicity of the largest item, 0 when there is none."""
        return self._best["largest"]

    @property
    def records(self) -> int:
        """The total of all multiplicities."""
        return self._best["records"]

    @cached_property
    def _best(self) -> dict[str, int]:
        """The best guesses of the numbers of items, of records, and of the largest multiplicity."""
        fitted = summary(self.sequence)
        if self.method != "posterior":
            return fitted
        low, high = (summary(self._cut(*stair)[1]) for stair in self.evidence.staircases((0.25, 0.75)))
        sums = {name: min(max(round(item), low[name]), high[name]) for name, item in self.evidence.sums().items()}
        return {**fitted, **sums}

    def quantile(self, q: float) -> int:
        """Return the least multiplicity that at least the share `q` of the items do not exceed, 0 without items.

        Raises:
            PlanError: `q` is not between 0 and 1.
        """
        share = number(q, "fit.quantile(q)")
        if not 0 <= share <= 1:
            raise PlanError(f"fit.quantile(q): {decimal(share)} is not between 0 and 1, as the share of a quantile is.")
        items = len(self.sequence)
        rank = max(int(np.ceil(q * items)), 1)
        return int(self.sequence[items - rank]) if items else 0

    def band(self, level: float = LEVEL, of: Literal["cdf", "sequence"] = "cdf") -> tuple[Ints, Ints]:
        """Return a pointwise credible band: for each column, or rank, its least and greatest plausible value.

        It is Bayesian, whatever the method of the fit, and the widest under several priors (see `durfee`), so where
        there is little to see it is wide. Its frequentist coverage at 0.9 is not guaranteed. Measured for a corner at
        scale 5, over values and over thirds of each curve: 93% to 100% on two items of 30, on 18 women's attendances
        and on 100, 99, ..., 1; 91% to 100% on CA-GrQc; 88% to 97% on heavy-tailed and on lumpy data, more where values
        are near zero. `python tests/benchmarks/bench_coverage.py` measures it anew.
        It speaks of the noise alone: not of records that were bounded or dropped.

        Args:
            level: Posterior probability of each single interval, between 0 and 1.
            of: Which curve; entry k - 1 speaks of multiplicity k, or of rank k.

        Returns:
            Low and high, as long as high is above zero: it may reach beyond the fit, or end before it.

        Raises:
            PlanError: `level` is not between 0 and 1, or there is no such curve.

        Source: privacy rule 40.
        """
        require(of, NAME, "fit.band(of=...)")
        if of not in ("cdf", "sequence"):
            raise PlanError(f"fit.band(of={of!r}): expected 'cdf' or 'sequence'.")
        return self._band(probability(level, "band"), of == "sequence")

    def interval(self, of: Literal["distinct", "largest", "records"] | float, level: float = LEVEL) -> tuple[int, int]:
        """Return an interval around what the fit says in one number.

        For `"distinct"`, `"largest"` and `"records"` it comes from sums of released bins and the noise on them, without
        any prior: it holds the truth with probability `level` at least, up to the choice of the bins that hold more
        than noise (measured: 85% to 95% at 0.9 for records). Where the fit lies outside, it is widened to the fit. For
        a number q, as in `quantile`, it comes from the bands of the first column and of the ranks, each at half of what
        may fail.

        Args:
            of: What is asked.
            level: Probability, between 0 and 1.

        Raises:
            PlanError: `level` or q is not between 0 and 1, or nothing has such a name.
        """
        level = probability(level, "interval")
        if isinstance(of, str):
            if of not in NUMBERS:
                raise PlanError(f"fit.interval({of!r}): expected 'distinct', 'largest', 'records' or a share.")
            value, noise = getattr(self.evidence, of)()
            width, guess = half_width(noise, level), getattr(self, of)
            most = self._most if of == "largest" else MOST
            return max(min(math.floor(value - width), guess), 0), min(max(math.ceil(value + width), guess), most)
        self.quantile(of)
        low, high = self._band((1 + level) / 2, rows=True)
        (fewest, most), answers = (int(np.count_nonzero(item)) for item in (low, high)), []
        for curve, items in ((low, most), (high, max(fewest, 1))):
            rank = items - max(math.ceil(of * items), 1)
            answers.append(int(curve[rank]) if 0 <= rank < len(curve) else 0)
        return min(answers), max(answers)

    def frequencies(self) -> npt.NDArray[np.float64]:
        """Return how many items of each multiplicity there are, as posterior means: entry k - 1 is of multiplicity k.

        They are no whole numbers, and where single items lie far apart no entry is zero. So they tell shares, also
        their logarithms, better than the counts of any one sequence: the Kullback-Leibler divergence of the true shares
        from them is 0.03 on a friendship graph of 4,039 people at epsilon 1/2, from the counts of `sequence` 0.14, and
        from those of `draw` 0.6: both have gaps where the truth has single items, and the other way round.

        Raises:
            PlanError: The prior is smooth.
        """
        heights = self.evidence.expected()[: self._most]
        return np.asarray(-np.diff(heights, append=0.0))

    def draw(self, seed: int | np.random.Generator | None = None) -> Fit:
        """Draw one degree distribution from the posterior.

        `sequence` errs least, and is smoother than data are: its tail has steps. A draw varies as the truth may, so
        several of them show what follows from the noise in whatever is computed of a fit. It errs more.

        Args:
            seed: Seed or generator; the same seed gives the same draw.

        Raises:
            PlanError: The prior is smooth.
        """
        from wpinq.postprocess.degrees.synthesis.synthesize import SEED

        require(seed, SEED | NOTHING, "fit.draw(seed=...)")
        heights, lengths = self.evidence.drawn(np.random.default_rng(seed))
        return Fit(heights, lengths, self.evidence, "draw", self.about)

    def _band(self, level: float, rows: bool) -> tuple[Ints, Ints]:
        stairs = self.evidence.staircases(((1 - level) / 2, (1 + level) / 2))
        low, high = (self._cut(*stair)[int(rows)] for stair in stairs)
        return np.pad(low, (0, len(high) - len(low))), high

    def content(self) -> dict[str, Any]:
        """What describes it, in plain values: what was released, the curves that were fitted, and their intervals.

        The curves of `"fit"`, `"band"` and `"noisy"` begin with multiplicity 1, or rank 1; the band is of the CDF, and
        holds for each multiplicity by itself.
        """
        low, high = self.band()
        return {
            **(self.about or {}),
            "method": self.method,
            "scale": {name: float(scale) for name, scale in zip(("cdf", "sequence"), self.scales, strict=True)},
            **{name: getattr(self, name) for name in NUMBERS},
            "intervals": {"level": LEVEL, **{name: self.interval(name) for name in NUMBERS}},
            "fit": {"cdf": self.cdf.tolist(), "sequence": self.sequence.tolist()},
            "band": {"level": LEVEL, "low": low.tolist(), "high": high.tolist()},
            "noisy": {"cdf": self.noisy_cdf.tolist(), "sequence": self.noisy_sequence.tolist()},
        }

    def save(self, path: str | Path) -> None:
        """Write `content()` as `.json`, whole or not at all.

        Raises:
            SourceError: The file's name has another ending, or it cannot be written.
        """
        from wpinq.html.written import json_page
        from wpinq.storage import replacing

        with replacing("fit.save", path, (".json",)) as file:
            file.write(json_page(self.content()).encode())

    def plot(
        self, path: str | Path | None = None, truth: npt.ArrayLike | None = None, title: str | None = None
    ) -> Picture:
        """Draw noisy values, the fitted staircase and its band, and the truth where given (see `plot.plot_fit`).

        Where a bound on contributions says how many records an item can have, the picture shows where it cuts.
        """
        from wpinq.postprocess.plot import plot_fit

        require(path, PATH | NOTHING, "fit.plot(path=...)")
        heading, notes, cut = title or f"{self.distinct:,} items, {self.records:,} records", [], None
        if self.about is not None:
            heading += f"\n{whose(self.about)}"
            notes, cut = ["The bands are of noise alone.", beside_noise(self.about["beside noise"])], self.about["cut"]
        return plot_fit(self, path, truth, heading, notes=notes, cut=cut)

    def synthesize(
        self, path: str | Path | None = None, users: Any = None, *,
        columns: tuple[str, str] = ("user", "page"), seed: int | np.random.Generator | None = None,
    ) -> Any:  # fmt: skip
        """Write a synthetic data set with exactly the fitted multiplicities (see `synthesize.synthesize`).

        Args:
            path: Where to write: `.parquet`, `.arrow`, `.csv`, `.tsv` or `.txt`. None returns a table instead.
            users: Fit of the users' degrees, or a number of users to spread the views over evenly; by default as many
                as there are items, or twice the largest multiplicity.
            columns: Names of the users' and the pages' column.
            seed: Seed or generator; the same seed gives the same rows.

        Raises:
            SourceError: The suffix is unknown, the path cannot be written, or a column name is not valid.
        """
        from wpinq.postprocess.degrees.synthesis.synthesize import synthesize

        return synthesize(self, path, users=users, columns=columns, seed=seed)

    def to_mbi(self, attribute: str = "degree") -> Any:
        """The released CDF as a linear measurement of a column, for `mbi` (see `linear.measured`).

        Raises:
            PlanError: Nothing was released of the CDF.
            ExtraError: `mbi` is not installed.
        """
        require(attribute, NAME, "fit.to_mbi(attribute=...)")
        (_, (noise, *_)) = self.evidence.distinct()
        return measured(self.noisy_cdf, noise.stddev, attribute)

    def _repr_html_(self) -> str:
        from wpinq.html.parts import framed, pictured

        return framed(f"{self}".strip("<>"), pictured(self.plot, f"{self}"))

    def __repr__(self) -> str:
        size = f"{self.distinct:,} items, {self.records:,} records, largest {self.largest:,}"
        return f"<Fit of {size}; method {self.method!r}, {self.evidence}>"


def summary(sequence: Ints) -> dict[str, int]:
    """What a staircase says in three numbers.

    >>> summary(np.array([4, 3, 1]))
    {'distinct': 3, 'largest': 4, 'records': 8}
    """
    return {"distinct": len(sequence), "largest": int(sequence[:1].sum()), "records": int(sequence.sum())}


def probability(level: float, call: str) -> float:
    """Insist that a level is between 0 and 1."""
    result = number(level, f"fit.{call}(level=...)")
    if not 0 < result < 1:
        raise PlanError(f"fit.{call}(level=...): {decimal(result)} is no probability between 0 and 1, such as 0.9.")
    return float(result)


def number(value: object, call: str) -> Fraction:
    """A number, exactly as it was written."""
    try:
        return exact(value, call)
    except ExactnessError as error:
        raise PlanError(str(error)) from None


def measured(noisy_cdf: npt.NDArray[Any], stddev: float, attribute: str) -> Any:
    """A noisy CDF as a measurement of a column of degrees: its first value is degree 1, its last that degree or more.

    Entry k - 1 is the sum of the counts of degree k and more, plus noise that is independent of the others: what `mbi`
    supposes. Differences of neighbours would be counts by degree, with noise that they share, and posterior means are
    no measurements; so neither is offered. A sequence is not linear in the counts: what it tells of the tail is left
    out, and all degrees beyond the curve are in its last value. `mbi` reads a total from counts alone: without a
    marginal beside this, give it `known_total=fit.distinct`.

    Args:
        noisy_cdf: The released values.
        stddev: The standard deviation of the noise on each.
        attribute: The name of the column.

    Raises:
        PlanError: There is no value.
        ExtraError: `mbi` is not installed.
    """
    if not len(noisy_cdf):
        raise PlanError("fit.to_mbi(): nothing was released of the CDF: there are no items to speak of.")
    needs("mbi", "fit.to_mbi()")
    from mbi import LinearMeasurement

    return LinearMeasurement(np.asarray(noisy_cdf, np.float64), (attribute,), stddev, query=at_least)


def at_least(counts: Any) -> Any:
    """How many have each degree or a higher one, of an `mbi` factor of counts by degree."""
    return counts.datavector()[::-1].cumsum()[::-1]
