"""Residuals of counts: what a table tells beyond its margins, with Gaussian noise in all directions alike.

A column of n values has n - 1 *contrasts*: the count of the values before the k-th, less k times that of the k-th.
They are whole, orthogonal to each other and to the total; their squared lengths are k (k + 1). The residual of several
columns is measured by the products of their contrasts, one for each column: each has noise of its own, as wide as the
contrast is long. So noise is that of independent numbers of one variance in any orthonormal basis of the residual.

**Privacy.** A record moves the contrasts, each divided by its length, by a vector as long as its part in the residual:
squared, the product of 1 - 1/n over the columns, `alone`. A unit that moves all cells by S together and one cell by B
at most so moves them, squared, by `alone` S^2 at most (the triangle inequality), and by S B (a projection makes no
vector longer). Noise of the smaller one's variance costs what the margin of these columns costs with noise of the
variance S B, which is how it is priced (`core/pricing/privacy_cost.py`); a unit that moves a part p of S, of a path
say, loses no more than p of it, for either bound. Privacy rule 45.

Contrasts are multiplied by whole numbers that make them nearly as long as each other, and never longer than 2^places;
then all have noise of one law. Everything is added up in whole numbers, and divided after that.

Source: Xiao, Sun, Xiao, Kifer, Zhang, "An optimal and scalable matrix mechanism for noisy marginals under convex loss
functions", NeurIPS 2023 (ResidualPlanner), whose continuous noise has the same law in every orthonormal basis; the
contrasts are those of Helmert (1876). Discrete noise: Canonne, Kamath, Steinke, NeurIPS 2020, theorem 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.runs.epochs import answered_from
from wpinq.errors import InternalError, redacted

if TYPE_CHECKING:
    from wpinq.core.plan.node import Builder
    from wpinq.core.plan.stability import Survey
    from wpinq.core.pricing.privacy_cost import Payment

Whole: TypeAlias = npt.NDArray[np.object_]
Floats: TypeAlias = npt.NDArray[np.float64]

FORM = 1
"""Of the contrasts and their numbers; noise depends on it."""
FINE = 20
"""Binary places by which contrasts are of one length: no variance is larger by more than 2^-18 of it for that."""


def alone(sizes: Sequence[int]) -> Fraction:
    """How long, squared, the part of one record in the residual of columns of so many values is.

    >>> alone([2]), alone([2, 4]), alone([])
    (Fraction(1, 2), Fraction(3, 8), Fraction(1, 1))
    """
    return math.prod((Fraction(size - 1, size) for size in sizes), start=Fraction(1))


def longest(survey: Survey) -> Fraction:
    """How far a unit moves all cells together, in parts of one cell: the most of all ledgers, as rho is priced."""
    return max(Fraction(unit.l1, unit.linf) for unit in unit_sensitivities(survey))


def part_of(survey: Survey, sizes: Sequence[int]) -> Fraction:
    """The variance of the noise of a residual, in parts of that of the whole margin for the same rho; 1 at most.

    Args:
        survey: The plan of the margin.
        sizes: How many values each of its columns has.
    """
    return min(Fraction(1), alone(sizes) * longest(survey))


def contrasts(cells: Whole) -> Whole:
    """The contrasts of the cells of a table: along each axis one less than it has values.

    >>> contrasts(np.array([5, 3, 1], object)).tolist()
    [2, 6]
    """
    for axis in range(cells.ndim):
        moved = np.moveaxis(cells, axis, 0)
        before = np.cumsum(moved, axis=0)[:-1]
        numbers = np.arange(1, len(moved)).astype(object).reshape(-1, *(1,) * (moved.ndim - 1))
        cells = np.moveaxis(before - numbers * moved[1:], 0, axis)
    return cells


def lengths(sizes: Sequence[int]) -> Whole:
    """The squared length of each contrast.

    >>> lengths([2, 3]).tolist()
    [[4, 12]]
    """
    result: Whole = np.ones((), object)
    for size in sizes:
        numbers = np.arange(1, size).astype(object)
        result = np.multiply.outer(result, numbers * (numbers + 1))
    return result


def spread(shares: Floats) -> Floats:
    """The cells of a residual from its contrasts, each divided by its squared length.

    >>> spread(np.array([2.0, 6.0]) / [2, 6]).tolist()  # of 5, 3, 1, less their mean
    [2.0, 0.0, -2.0]
    """
    for axis in range(shares.ndim):
        moved = np.moveaxis(shares, axis, 0)
        numbers = np.arange(1, len(moved) + 1).reshape(-1, *(1,) * (moved.ndim - 1))
        none = np.zeros((1, *moved.shape[1:]))
        later = np.cumsum(np.concatenate([moved, none])[::-1], axis=0)[::-1]
        cells = later - np.concatenate([none, numbers * moved])
        shares = np.moveaxis(cells, 0, axis)
    return shares


@dataclass(frozen=True)
class Form:
    """How a residual is measured, from public things alone.

    Attributes:
        categories: For each column its values, which make the cells.
        square: The variance of the noise in any direction, in squared units of 1/resolution.
    """

    categories: tuple[tuple[str, ...], ...]
    square: Fraction

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(map(len, self.categories))

    @property
    def places(self) -> int:
        """The binary logarithm of what no contrast is longer than, once it is multiplied."""
        most = math.prod(size * (size - 1) for size in self.sizes)
        return FINE + (most.bit_length() + 1) // 2

    @property
    def noise(self) -> DiscreteGaussian:
        """The noise of each contrast, once it is multiplied.

        Raises:
            PlanError: It is too wide to be drawn.
        """
        return DiscreteGaussian(self.square * 4**self.places)

    @cached_property
    def factors(self) -> Whole:
        """The whole number by which each contrast is multiplied."""
        squared = lengths(self.sizes)
        known = {length: math.isqrt(4**self.places // length) for length in set(squared.ravel().tolist())}
        result = np.array([known[length] for length in squared.ravel().tolist()], object)
        return result.reshape(squared.shape)

    @property
    def deviation(self) -> float:
        """The largest standard deviation of the noise in any direction, in units of 1/resolution."""
        return math.sqrt(self.noise.variance() / 4**self.places) / (1 - 2.0**-FINE)

    @property
    def cells(self) -> pl.DataFrame:
        """The cells in their order: the first column moves slowest."""
        return cells_of(dict(enumerate(self.categories)))


def cells_of(categories: dict[Any, Sequence[str]]) -> pl.DataFrame:
    """All combinations of the values of some columns, in order: the first column moves slowest."""
    numbers = np.indices([len(values) for values in categories.values()]).reshape(len(categories), -1)
    columns = zip(categories.items(), numbers, strict=True)
    return pl.DataFrame([pl.Series(str(name), values, pl.String).gather(index) for (name, values), index in columns])


def quote_residual(
    margin: Builder[Any], categories: Sequence[Sequence[str]], paid: Payment, *, call: str, name: str | None = None,
    analyst: str | None = None,
) -> Quote[Residual]:  # fmt: skip
    """Price the residual of some columns; charge nothing.

    Args:
        margin: What has these columns, and no others; without any, one column whose only value is "all".
        categories: For each column its values; a record of others is in no cell.
        paid: What it costs the privacy unit: a rho.
        call: What the caller called, for messages.
        name: Tells repetitions apart, and names the charge.
        analyst: Who is charged.

    Raises:
        PlanError: The noise is too wide to be drawn, the plan has windows, or see `price`.
    """
    survey, epochs = answered_from(fit_noise(margin._node), call)
    whole = paid.buys(survey)
    if not isinstance(whole, DiscreteGaussian) or not paid.rho:
        raise InternalError("quote_residual: residuals cost a rho; please report this.")
    part = part_of(survey, [len(values) for values in categories])
    form = Form(tuple(map(tuple, categories)), whole.square * part)  # of what is charged, also where that is the least
    fields = (form.noise.name, "residual", FORM, FINE, form.categories, form.square)
    result: Quote[Residual] = price(
        survey, paid.epsilon, call=call, kind=partial(Residual, form=form), mechanism=whole, fields=fields, name=name,
        analyst=analyst, epochs=epochs, noise=whole,
    )  # fmt: skip
    return result.but(of=margin._node)


class Residual(ChargedQuery):
    """A charged, noisy residual: what the counts by some columns tell beyond those by fewer of them.

    Attributes:
        scale: The standard deviation of the noise that the whole margin would have for this cost, in weight.
    """

    purpose = "residual"

    def __init__(self, quote: Quote[Any], form: Form) -> None:
        super().__init__(quote)
        self._form = form
        self._found: Floats | None = None

    def stddev(self) -> float:
        """The standard deviation of its noise in any direction, in weight: that of a contrast over its length."""
        return self._form.deviation / self.node.resolution

    def observe(self) -> Floats:
        """Its noisy cells, an axis for each column; along each they add up to zero.

        Raises:
            SourceError, EngineError, LedgerError: The first question runs the dataflow, which failed.
        """
        refuse_inside("observe")
        if self._found is None:
            self._found = redacted("observe", self._measured)
        return self._found.copy()

    def _measured(self) -> Floats:
        histogram, words = self._settled()
        form = self._form
        frame = bin_frame(form.cells if form.sizes else ["all"], self.node.schema)
        true = histogram.lookup(frame, identities(frame, self.node.schema, self.key_owner.identity_key))
        rows = contrasts(true.astype(object).reshape(form.sizes))
        numbers = np.zeros((rows.size, 2), np.uint64)
        numbers[:, 0] = np.arange(rows.size)
        noise = form.noise.draw(words, numbers).astype(object).reshape(rows.shape)
        noisy = np.asarray(rows * form.factors + noise, object)
        divided = form.factors * lengths(form.sizes) * self.node.resolution
        return spread(np.asarray(noisy / divided, np.float64))

    def __repr__(self) -> str:
        return f"<residual {self.node.schema}, {self.quote.payment.text}>"
