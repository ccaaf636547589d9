"""Release a degree distribution for each node of a public hierarchy, such that children add up to their parents.

Each level is one measurement of the corners of all its nodes: a record lies in one node of it, so all nodes of a level
cost what one costs, and epsilon is divided among levels only. The fits are made to agree by `postprocess/hierarchy.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import zip_longest
from operator import and_
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt
import polars as pl

from wpinq.core.operators.map import called
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import Terms
from wpinq.core.records.bins import bin_frame
from wpinq.degrees.observed import WIDEST, at_once, observe_corner
from wpinq.degrees.pipelines import CORNER
from wpinq.errors import PlanError
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.degrees.posterior.evidence import Cornered
from wpinq.postprocess.degrees.posterior.horizon import MOST_COLUMNS
from wpinq.postprocess.hierarchy import by_columns, imposed

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core.measurements.measurement import Measurement

Node: TypeAlias = "tuple[Any, ...]"
"""A node by the values of the first columns of the hierarchy; `()` is the root."""


class Hierarchy(Mapping[Node, Fit]):
    """A fit for each node of a hierarchy: `()` is the root, `("nl",)` a country, `("nl", "north")` a region of it.

    The items of all children of a node together are the items of the node. The bands and intervals of a fit are those
    of its own measurement, without what its parents tell.

    Args:
        fits: The fit of each node, parents first.
        by: The columns of its levels.
    """

    def __init__(self, fits: Mapping[Node, Fit], by: tuple[str, ...]) -> None:
        self._fits, self.by = dict(fits), by

    def __getitem__(self, node: Any) -> Fit:
        node = node if isinstance(node, tuple) else (node,)
        if node not in self._fits:
            raise KeyError(f"no node {node!r}; nodes are tuples of values of {', '.join(self.by)}, and () is the root.")
        return self._fits[node]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._fits)

    def __len__(self) -> int:
        return len(self._fits)

    def _ipython_key_completions_(self) -> list[Any]:
        return [node[0] if len(node) == 1 else node for node in self._fits]

    def __repr__(self) -> str:
        root = self._fits[()]
        return f"<{len(self):,} degree distributions by {', '.join(self.by)}; in all {root!r}>"


@dataclass(frozen=True)
class _Bins:
    """The bins of one node, of the measurement of its level."""

    measurement: Measurement
    node: Node

    @property
    def scale(self) -> Fraction:
        return self.measurement.scale

    def observe_many(self, bins: Any, /) -> npt.NDArray[Any]:
        if not self.node:
            return self.measurement.observe_many(bins)
        names = self.measurement.node.schema.names
        values = [pl.Series(name, [value] * len(bins)) for name, value in zip(names, self.node, strict=False)]
        return self.measurement.observe_many(pl.DataFrame([*values, pl.Series(names[-1], list(bins))]))


def release_by(
    collection: Collection, terms: Terms, by: Sequence[str], nodes: Any, *, name: str | None, analyst: str | None
) -> Hierarchy:  # fmt: skip
    """Measure and fit all nodes; see `release`."""
    by = (by,) if isinstance(by, str) else tuple(by)
    names = collection.columns
    items = [name_ for name_ in names if name_ not in by]
    if not by or len(set(by)) < len(by) or not set(by) <= set(names) or not items:
        raise PlanError(
            f"release(by={list(by)}): names columns of the hierarchy, the highest level first; there are"
            f" {', '.join(names)}, of which one at least names what is counted."
        )
    leaves = bin_frame(_given(nodes, by), collection._node.schema.select(by)).select(by).unique(maintain_order=True)
    kept = collection.filter(_within(leaves)).map([pl.col(name_) for name_ in (*by, *items)])
    cells = kept.shave(name="index of an item")
    levels = [by[:depth] for depth in range(len(by) + 1)]
    whole = terms.agreed(Survey.of(fit_noise(_cornered(cells, ())._node)))
    share = whole.part(Fraction(1, len(levels)), terms.call)
    questions = [(_cornered(cells, level), share, name and f"{name}: {len(level)}") for level in levels]
    made = collection._commit(at_once(questions, WIDEST, analyst))
    return _agreed([_fitted(name_, leaves.select(level)) for name_, level in zip(made, levels, strict=True)], by)


def _cornered(cells: Collection, level: tuple[str, ...]) -> Collection:
    """The corner of each node of a level: see `degrees.corner`."""
    kept = [pl.col(column) for column in level]
    index = pl.col(cells.columns[-1])
    ranks = cells.map([*kept, index]).shave(name="rank of an item")
    rank = pl.col(ranks.columns[-1])
    corner = ranks.map([*kept, pl.when(rank > index).then(index).otherwise(-rank).alias("bin of a corner")])
    return corner._then(called(corner._node, f"corner of degrees by {', '.join(level)}" if level else CORNER))


def _fitted(made: Measurement, frame: pl.DataFrame) -> dict[Node, Fit]:
    """A fit of each node of a level by itself."""
    fits: dict[Node, Fit] = {}
    for node in frame.unique(maintain_order=True).rows() if frame.width else [()]:
        evidence = Cornered(observe_corner(_Bins(made, node)), made.scale, made.gaussian)
        fits[node] = Fit(*evidence.staircases((0.5,))[0], evidence, "posterior", made.about)
    return fits


def _agreed(levels: list[dict[Node, Fit]], by: tuple[str, ...]) -> Hierarchy:
    """Let each level agree with the one above it."""
    agreed = dict(levels[0])
    for fits in levels[1:]:
        children: dict[Node, list[Node]] = {}
        for node in fits:
            children.setdefault(node[:-1], []).append(node)
        for parent, siblings in children.items():
            distinct = [fits[node].evidence.distinct()[0] for node in siblings]
            sequences = imposed(agreed[parent].sequence, [fits[node].sequence for node in siblings], distinct)
            for node, sequence in zip(siblings, sequences, strict=True):
                fit = fits[node]
                agreed[node] = Fit(by_columns(sequence, MOST_COLUMNS), sequence, fit.evidence, "hierarchy", fit.about)
    return Hierarchy(agreed, by)


def _given(nodes: Any, by: tuple[str, ...]) -> Any:
    if nodes is None:
        raise PlanError(
            f"release(by={list(by)}): which nodes there are is private too; give nodes=, the lowest ones, as public"
            " knowledge has them."
        )
    return nodes


def _within(leaves: pl.DataFrame) -> pl.Expr:
    """Whether a record lies in one of the leaves: what lies elsewhere is counted nowhere, at no level."""
    *above, last = leaves.columns
    if not above:
        return pl.col(last).is_in(leaves[last].to_list())
    groups = leaves.group_by(above, maintain_order=True).agg(last)
    tests: list[pl.Expr] = [
        reduce(and_, (pl.col(column) == value for column, value in zip(above, row[:-1], strict=True)))
        & pl.col(last).is_in(row[-1])
        for row in groups.rows()
    ]
    while len(tests) > 1:  # in pairs: a long chain is nested as deeply as it is long
        tests = [left | right for left, right in zip_longest(tests[::2], tests[1::2], fillvalue=pl.lit(value=False))]
    return tests[0]
