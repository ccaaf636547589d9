"""Sensitivity: how far one privacy unit of each source can change a measurement, and what that costs.

The stability of a plan for a source is the sum, over all paths to the source, of the product of the stabilities of the
steps on the path. With k_i the stability for source i and U_i its contribution bound, one unit moves the measurement by
k_i U_i at the most through source i, which is its L1 sensitivity S_i. The noise scale is max_i(S_i) / epsilon, and
source i is charged S_i / scale. So epsilon is what the measurement costs the privacy unit. Source: privacy rules 24 and
25.

People often move less than that: who counts once moves by 1, whatever their bound (`person_bound.py`). Where that
bounds what all tables of a ledger move together, each path counts as that part of its product (privacy rule 49). It is
above the product only where a dither rounds what moves by less than its proof takes.

Where all paths of a person go through the same parts, the ledger is told both: what the person moves of this part, and
how much more all parts together (`Survey.times`). Where some paths go elsewhere the product counts, and also in
windows: a stream has ever more of them, and of very many parts the largest counts in the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from wpinq.core.plan.node import Node, Source, digests, read_by, steps
from wpinq.core.plan.person_bound import Change, changes, mover
from wpinq.errors import InternalError, PlanError

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

PartPath: TypeAlias = tuple[tuple[str, str], ...]
"""The parts that a path goes through, from the source on: for each the names of its group and of the part."""

UNBOUNDED = (
    "users({0!r}): nothing bounds how far one {0} of {1!r} moves this. Keep a number of records of each (at_most=), or"
    " make one of each before any parts: distinct on {0!r} alone, or a whole group by it."
)

WAITING = (
    "at_most='auto': how many records of each {0} are kept is chosen when a question is charged; ask by measure, an"
    " aggregate such as count, or wpinq.sql, with epsilon=."
)

Paths: TypeAlias = Mapping[tuple["DataSet", PartPath], Fraction]
"""For each source and each sequence of parts, the summed stability of the paths."""


class WaitingError(PlanError):
    """A question waits for the bound that it chooses."""


@dataclass(frozen=True, eq=False)
class Survey:
    """The facts about a plan from which it is priced, collected by one walk over its steps.

    Attributes:
        steps: Each step once, inputs before what reads them; the last one is the plan's root.
    """

    steps: Sequence[Node]

    @classmethod
    def of(cls, root: Node) -> Survey:
        """Walk over a plan."""
        return cls(steps(root))

    @property
    def root(self) -> Node:
        """The step that the plan ends in."""
        return self.steps[-1]

    @cached_property
    def sources(self) -> list[DataSet]:
        """The protected data sets that it reads, each once."""
        return read_by(self.steps)

    @cached_property
    def portable(self) -> bytes | None:
        """A digest of what people take for one question, on whatever version of the data and of Python."""
        return digests(self.steps, portable=True)[self.root]

    @cached_property
    def fingerprint(self) -> bytes | None:
        """A digest of what the plan means, or None when that is not known."""
        return digests(self.steps)[self.root]

    @cached_property
    def paths(self) -> Paths:
        """See `paths`."""
        result: dict[Node, dict[tuple[DataSet, PartPath], Fraction]] = {}
        for node in self.steps:
            reached: dict[tuple[DataSet, PartPath], Fraction] = defaultdict(Fraction)
            if isinstance(node, Source):
                reached[(node.data, ())] = Fraction(1)
            part: PartPath = (node.part,) if node.part else ()
            for source_node, factor in zip(node.inputs, node.stability, strict=True):
                for (data, parts), stability in result[source_node].items():
                    reached[(data, parts + part)] += stability * factor
            result[node] = dict(reached)
        return result[self.root]

    @cached_property
    def changes(self) -> dict[Hashable, Change]:
        """What one unit changes, for each mover (`person_bound.mover`)."""
        return changes(self.steps)

    @cached_property
    def moves(self) -> Paths:
        """How far one unit of a source moves what is measured, by path: what each path is charged for.

        Raises:
            PlanError: Nothing bounds how far a person moves it.
        """
        if self.unbounded is not None:
            raise (WaitingError if self.waits else PlanError)(f"{self.unbounded} Nothing was charged.")
        result: dict[tuple[DataSet, PartPath], Fraction] = defaultdict(Fraction)
        for (data, parts), product in self._products.items():  # without a bound no movement is divided among parts
            result[data, parts if data.unit.bound else ()] += product * self._share[mover(data)]
        return dict(result)

    @cached_property
    def _share(self) -> Mapping[Hashable, Fraction]:
        """For each unit how far it moves this, in parts of the products of its paths."""
        whole: dict[Hashable, Fraction] = defaultdict(Fraction)
        for (data, _), product in self._products.items():
            whole[mover(data)] += product
        share = {unit: known(self.changes[unit].l1) / product if product else Fraction(1)
                 for unit, product in whole.items()}  # fmt: skip
        return share | {unit: max(Fraction(1), share[unit]) for unit in self._scattered}

    def times(self, data: DataSet) -> Fraction:
        """How much further a unit can move all parts of a group together than what is measured; 1 without parts."""
        divided = data.unit.bound and any(parts for other, parts in self.paths if other is data)
        return max(Fraction(1), 1 / self._share[mover(data)]) if divided and self._share[mover(data)] else Fraction(1)

    @property
    def _products(self) -> Paths:
        """The stability of each path times the bound of its unit; without a bound, in whatever parts they move."""
        return {way: stability * (way[0].unit.bound or 1) for way, stability in self.paths.items()}

    @cached_property
    def _scattered(self) -> set[Hashable]:
        """Who moves it on several paths that do not all go through the same parts, or through windows."""
        reached: dict[Hashable, set[PartPath]] = defaultdict(set)
        for data, parts in self.paths:
            reached[mover(data)].add(parts)
        windowed = any(node.endless for node in self.steps)
        return {unit for unit, ways in reached.items() if ways != {()} and (windowed or len(ways) > 1)}

    @cached_property
    def unbounded(self) -> str | None:
        """What to do where nothing bounds how far a person moves it; None where that is known."""
        if self._free is None:
            return None
        unit = self._free.unit
        return (WAITING if unit.auto else UNBOUNDED).format(unit.column, self._free.name)

    @property
    def waits(self) -> bool:
        """Whether a bound that the question chooses is all that is missing."""
        return self._free is not None and self._free.unit.auto > 0

    @cached_property
    def _free(self) -> DataSet | None:
        """A data set whose people nothing bounds; one whose bound waits to be chosen only where there is no other."""
        free = [data for data in self.sources if data.unit.bound is None
                and (self.changes[mover(data)].l1 is None or mover(data) in self._scattered)]  # fmt: skip
        return min(free, key=lambda data: data.unit.auto > 0, default=None)

    @cached_property
    def sensitivities(self) -> dict[DataSet, Fraction]:
        """See `sensitivities`."""
        return _by_data(self.moves)

    @property
    def shares(self) -> Mapping[DataSet, Fraction]:
        """In which ratio the data sets move it: sensitivities, or without a bound what stands for them."""
        return self.sensitivities if self.unbounded is None else _by_data(self._products)

    def scale(self, epsilon: Fraction) -> Fraction:
        """The scale of the noise, in weight, that makes a measurement of the plan cost epsilon.

        Raises:
            PlanError: The plan reads no protected source.
        """
        if not self.sensitivities:
            raise PlanError("measure(...): the plan reads no protected source, so there is nothing to measure.")
        return max(self.sensitivities.values()) / epsilon


def known(bound: Fraction | None) -> Fraction:
    """A bound that was found to be known.

    Raises:
        InternalError: It is not.
    """
    if bound is None:
        raise InternalError("a plan is priced of which nothing bounds how far a person moves it; please report this.")
    return bound


def paths(root: Node) -> Paths:
    """Follow all paths from the sources to the end of a plan."""
    return Survey.of(root).paths


def sensitivities(root: Node) -> dict[DataSet, Fraction]:
    """The L1 sensitivity of the plan for each source: how far one unit can change its output, in weight.

    Of the parts of one group only the largest counts, as in the ledger. Tables of people of one ledger move the output
    by their sum together, in whichever of them the person is; each has its part of that.
    """
    return Survey.of(root).sensitivities


def times_moved(root: Node) -> list[Fraction]:
    """How far one unit of each source moves a step, in parts of its bound; where nothing bounds it, of its records."""
    survey = Survey.of(root)
    if survey.unbounded is not None:
        return [sum(survey.paths.values(), Fraction(0))]
    return [move / (data.unit.bound or 1) for data, move in survey.sensitivities.items()]


def by_ledger(sensitivities: Mapping[DataSet, Fraction]) -> dict[str, list[Fraction]]:
    """What the tables of each ledger pay, in parts of what the costliest pays; who is in all of them loses the sum."""
    furthest = max(sensitivities.values(), default=Fraction(1))
    result: dict[str, list[Fraction]] = defaultdict(list)
    for data, move in sensitivities.items():
        result[data.book].append(move / furthest)
    return dict(result)


def _by_data(moves: Paths) -> dict[DataSet, Fraction]:
    """How far each data set moves a plan by all paths together."""
    result: dict[DataSet, list[tuple[PartPath, Fraction]]] = defaultdict(list)
    for (data, parts), move in moves.items():
        result[data].append((parts, move))
    return {data: _largest(ways) for data, ways in result.items()}


def _largest(ways: list[tuple[PartPath, Fraction]]) -> Fraction:
    """The sum over the paths without parts, plus for each group the largest sum of its parts."""
    alone = sum((move for parts, move in ways if not parts), Fraction(0))
    groups: dict[str, dict[str, list[tuple[PartPath, Fraction]]]] = defaultdict(lambda: defaultdict(list))
    for parts, move in ways:
        if parts:
            groups[parts[0][0]][parts[0][1]].append((parts[1:], move))
    return alone + sum((max(map(_largest, group.values())) for group in groups.values()), Fraction(0))
