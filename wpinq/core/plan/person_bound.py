"""The person bound: how far one privacy unit can change the output of each step, in all tables of a ledger together.

The change that one unit more causes is followed from the sources to the end of a plan as *masses*: how far all records
that agree in some columns can move together, by the names of these columns; for no columns it is the L1 sensitivity.
`users("user", at_most=20, per=("page", 3))` begins with 20 for no columns and 3 for the page, and `users("user")` with
none: nothing is known of what moves until a step bounds it, and of several inputs what is known of each.

A step is *local* in a column when its output records with one value of the column follow, stably, from the input
records with that value alone: its proof of stability then holds for these records, as if they were the whole
collection, so their mass grows by its stability. A step that is local in two columns is so in both together. After
other steps only the mass for no columns is known.

- Columns that name the unit, and in which all steps so far are local, are *fixed*: all records that move hold the same
  value there, the unit's. So records that agree in the others agree in all, and a later step may drop these columns.
  Where inputs meet, a column stays fixed if it holds the same column of the source in all of them: concat of (a, b)
  and (b, a) moves two records, also where the unit is a record.
- A column that holds one value in all records (`Node.constants`) is fixed too; it names nobody.
- Where several inputs that move hold different values in a column, records that agree in it came of one of them: such
  records move as far as those of one input, not of all. So a person is in one bin of each of the grouping sets of a
  CUBE, which differ in their number, by what moves one set (`apart_by_a_value` in tests/proofs).
- A step that makes several records of each, one for every value of a column, may be more stable in each of these
  *slices* alone (`Node.slices`): of the moments of a mean each moves as far as its records do, and both twice as far.
- A step may bound how far a record or a key moves (`Node.moves_at_most`: a record of `distinct` by 1; a whole group
  leaves, and another takes its place), however many records of the unit these came from. So after
  `map("user, page").distinct()` one person moves a bin of `map("page")` by 1: the records that move differ in the page.

**The key of a person.** The unit is *alone* in a step while f(D + unit) = f(D) + records that hold the unit in the
fixed columns, for every D without the unit, and f(D) holds no such record. What moves is then what the unit itself
makes. So the records that move and agree in some columns weigh no more than a key of these and the fixed columns can
weigh at the most (`KeyWeights`), whatever the stability: `distinct` on the key alone leaves a person a weight of 1,
a whole group by the key 1, `limit` its bound. A filter on what was made of a person (HAVING) and a map that drops the
key move no more than that.

- A person is alone where their records are bounded: the sample of one depends on nobody else. Not where the unit is a
  person in one period, since a day that leaves changes what is made of the person's other days; nor in what is kept for
  ever of a stream that is released epoch by epoch.
- It stays so through steps that are local in the key, where every input that the unit moves has the unit alone, by the
  same key, and the key keeps its type. An input that the unit does not move may hold the person's name all the same
  (another ledger's people, a public table), so there must be an input without whose records of a value the step makes
  none of it (`Node.needs`): a join, or what a semijoin keeps. One public record for ann beside three of her own would
  otherwise move people by number of records by 2: {1: -1, 4: +1}.
- It ends where a step puts records together by another key, though the column stays: after `limit("page")` a person's
  record pushes out that of another.

Proof: by induction f(D) is the sum over units u of g(D_u), where D_u are the records of u; every step that is local in
the key is such a sum, of its definition on the records of one unit, and the sum of a sum is one. So one unit more adds
g(D_u), and nothing else changes (`Person.v` in tests/proofs). A step with a keyed dither is proved for a movement of 1
or more, so no movement is taken for less there, and no mass of fewer records is known after it.

**How many bins.** A unit that moves so many records of an input moves as many of a step that looks at each record by
itself, so many times as it makes records of one, and of several inputs as many as of all together (`Node.images`). Each
that moves, moves by one step of the resolution at least: no more move than the movement has steps. And all together
move no further than that many times what one moves: l1 <= l0 linf.

**Rising.** A unit more lowers no weight where each moving input rises and the step is monotone (`Node.monotone`), or
where the unit is alone and no weight is negative: f(D + unit) = f(D) + g(unit). Then one unit moves the difference of
two bins by what it moves one of them, and a choice of the heaviest costs half (`aggregates/heavy_hitters.py`). Not
after a dither, which may round down what did not move.

What several tables of one ledger hold of a unit comes and goes together, so their movements are added up before
anything is derived from them. Source: McSherry, PINQ, SIGMOD 2009 (stability), for the bounds of a key Berghel et al.,
Tumult Analytics, 2022; the rest is proved here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wpinq.core.plan.node import Node, Source
from wpinq.core.records.schema import Kind

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet


class KeyWeights:
    """Key weights of the steps of one plan; what was found is remembered."""

    def __init__(self) -> None:
        self._known: dict[tuple[Node, frozenset[str]], Fraction | None] = {}

    def of(self, node: Node, columns: frozenset[str]) -> Fraction | None:
        """The most that the records of a step with the same values in some columns weigh together; None if unbounded.

        It is the weight that a contribution bound or `limit` leaves to a key, followed through the steps that keep the
        columns apart: what such a step makes of the records of one value is what it would make of them alone, so it
        weighs no more than they do times its stability. Records that agree in more columns are some of those that
        agree in fewer.
        """
        if (node, columns) not in self._known:
            self._known[node, columns] = least(node.bounds(columns, self.of), self._followed(node, columns))
        return self._known[node, columns]

    def _followed(self, node: Node, columns: frozenset[str]) -> Fraction | None:
        total = Fraction(0)
        for index, (source_node, factor) in enumerate(zip(node.inputs, node.stability, strict=True)):
            before = node.kept_apart(index)
            weight = self.of(source_node, frozenset(before[name] for name in columns if name in before))
            if weight is None:
                return None
            total += weight * factor
        return total if node.inputs else None


def key_weight(root: Node, columns: frozenset[str]) -> Fraction | None:
    """The most that the records of a step with the same values in some columns weigh together; see `KeyWeights.of`."""
    return KeyWeights().of(root, columns)


def least(bound: Fraction | None, another: Fraction | None) -> Fraction | None:
    """The smaller of two bounds."""
    return bound if another is None else another if bound is None else min(bound, another)


Masses: TypeAlias = Mapping[frozenset[str], Fraction]
NONE: frozenset[str] = frozenset()
Values: TypeAlias = frozenset[tuple[Kind, Hashable]]
UNKNOWN: Values = frozenset()


class Change(NamedTuple):
    """What is known of the change that one unit causes in the output of a step, in weight.

    Attributes:
        fixed: Columns in which all records that move hold the same value: for each what tells whose value that is.
        values: Of some columns all values that records hold, where inputs that move are told apart by them.
        masses: How far records that agree in these columns move together; none where nothing bounds that.
        alone: Whether what moves is what the unit makes by itself, under the fixed columns.
        l0: How many records move at the most; None where that is not known.
        rises: Whether no weight falls where a unit comes.
    """

    fixed: Mapping[str, Hashable]
    masses: Masses
    alone: bool = False
    l0: int | None = None
    rises: bool = False
    values: Mapping[str, Values] = MappingProxyType({})

    @property
    def l1(self) -> Fraction | None:
        """How far all records move together; None where nothing bounds it."""
        return self.masses.get(NONE)

    @property
    def linf(self) -> Fraction | None:
        """How far one record moves at the most; None where nothing bounds it."""
        return min(self.masses.values(), default=None)


Inputs: TypeAlias = Sequence[tuple[Change, Mapping[str, str], Fraction]]
"""Of each input that moves the change, the names of columns before by those after, and the stability."""


class Constant(NamedTuple):
    """Where the value of a column that all records share comes from: a step and its column."""

    node: Node
    name: str


def mover(data: DataSet) -> Hashable:
    """Who moves a data set: a person all tables of a ledger together, a record its own table."""
    return data.book if data.unit.column is not None else data


def changes(walk: Sequence[Node]) -> dict[Hashable, Change]:
    """The change of the last step of a plan, for each mover; inputs come before what reads them."""
    result: dict[Node, dict[Hashable, Change]] = {}
    weights = KeyWeights()
    for node in walk:
        if isinstance(node, Source):
            result[node] = {mover(node.data): _of_source(node)}
            continue
        result[node] = {}
        for unit in dict.fromkeys(unit for source_node in node.inputs for unit in result[source_node]):
            entered = _entered(node)
            change = entered or _after(node, [result[source_node].get(unit) for source_node in node.inputs])
            result[node][unit] = _bounded(node, change, weights)
    return result[walk[-1]]


def _of_source(node: Source) -> Change:
    """What one record brings; of a person nothing is known before the records are bounded."""
    data = node.data
    fixed = {} if data.unit.column is not None else {name: (data, name) for name in node.schema.names}
    return Change(fixed, _whole(data), l0=None if data.unit.column is not None else 1, rises=not data.retractions)


def _whole(data: DataSet) -> Masses:
    """How far all records of one unit move together, where the unit bounds it."""
    return {} if data.unit.bound is None else {NONE: data.unit.bound}


def _entered(node: Node) -> Change | None:
    """What a unit that is a person brings, where its records are bounded."""
    data = node.bounds_units
    if data is None:
        return None
    unit = data.unit
    per = {frozenset([unit.per[0]]): Fraction(unit.per[1])} if unit.per else {}
    alone = unit.period is None and not node.lasting
    name = str(unit.column)  # values of two types are two people, whatever they look like
    known = {name: (data.book, node.schema[name].kind)}
    return Change(known, {**_whole(data), **per}, alone, unit.at_most, not data.retractions)


def _after(node: Node, moved: Sequence[Change | None]) -> Change:
    """The change of the output of a step, from those of its inputs; None where that does not move."""
    kept = [node.kept_apart(index) for index in range(len(moved))]
    inputs = [
        (change, names, factor)
        for change, names, factor in zip(moved, kept, node.stability, strict=True)
        if change is not None
    ]
    fixed = _fixed(inputs) | {name: Constant(node, name) for name in node.constants}
    masses = _together(inputs, add)
    values = _values(node, inputs)
    masses = _least([*masses.items(), *_apart(inputs, values)])
    if node.dithers:
        masses = {NONE: max(masses[NONE], *node.stability)} if NONE in masses else {}
    for column, slice_ in node.slices.items():
        sliced = ((columns | {column}, mass * slice_ / node.stability[0]) for columns, mass in masses.items())
        masses = _least([*masses.items(), *sliced])
    named = any(not isinstance(origin, Constant) for origin in fixed.values())
    alone = named and not node.dithers and _stays_alone(node, moved, fixed, kept)
    risen = node.monotone and all(change.rises for change, _, _ in inputs)
    rises = not node.dithers and (risen or (alone and node.nonnegative))
    return Change(fixed, masses, alone, _bins(node, [change for change, _, _ in inputs]), rises, values)


def _together(inputs: Inputs, both: Callable[[Fraction, Fraction], Fraction]) -> Masses:
    """The masses of all inputs together, for each choice of columns of every input; `both` makes one of two."""
    masses: Masses = {NONE: Fraction(0)}
    for change, names, factor in inputs:
        renamed = _renamed(change, names)
        masses = _least(
            (columns | others, both(mass, more * factor))
            for columns, mass in masses.items()
            for others, more in renamed.items()
        )
    return masses


def _values(node: Node, inputs: Inputs) -> dict[str, Values]:
    """The values that are known of columns after a step: those of all inputs that move, and what it writes itself."""
    result = {name: frozenset([value]) for name, value in node.constants.items() if value is not None}
    for name in inputs[0][1]:
        held = [change.values.get(names.get(name, ""), UNKNOWN) for change, names, _ in inputs]
        union = UNKNOWN.union(*held)
        if all(held) and {kind for kind, _ in union} == {node.schema[name].kind}:
            result[name] = union
    return result


def _apart(inputs: Inputs, values: Mapping[str, Values]) -> Iterable[tuple[frozenset[str], Fraction]]:
    """How far records move that agree in a column by whose values the inputs are told apart: as those of one input."""
    if len(inputs) < 2:
        return
    masses = _together(inputs, max)
    for name, union in values.items():
        held = [change.values.get(names.get(name, ""), union) for change, names, _ in inputs]
        if sum(map(len, held)) == len(union):
            yield from ((columns | {name}, mass) for columns, mass in masses.items())


def _bins(node: Node, moved: Sequence[Change]) -> int | None:
    """How many records move, of those that move in the inputs."""
    total = 0
    for change in moved:
        if change.l0 is None or node.images is None:
            return None
        total += change.l0 * node.images
    return total


def _fixed(inputs: Inputs) -> dict[str, Hashable]:
    """The columns that stay fixed: each holds the same column of the unit in all inputs that move."""
    result: dict[str, Hashable] = {}
    for name in inputs[0][1]:
        origins = {change.fixed.get(names.get(name, "")) for change, names, _ in inputs}
        if len(origins) == 1 and None not in origins:
            result[name] = origins.pop()
    return result


def _stays_alone(
    node: Node, moved: Sequence[Change | None], fixed: Mapping[str, Hashable], kept: Sequence[Mapping[str, str]]
) -> bool:
    """Whether the unit is alone after a step: see above."""
    if not all(change.alone for change in moved if change is not None):
        return False
    if None in moved and not any(change and needed for change, needed in zip(moved, node.needs, strict=True)):
        return False
    sides = list(zip(node.inputs, kept, strict=True))
    kinds = [
        {node.schema[name].kind, *(side.schema[names[name]].kind for side, names in sides if name in names)}
        for name in fixed
    ]
    return all(len(kind) == 1 for kind in kinds)


def _renamed(change: Change, names: Mapping[str, str]) -> Masses:
    """The masses by the names after a step that is local in the columns with these names; others are not known."""
    after = {old: new for new, old in names.items()}
    free = ((columns.difference(change.fixed), mass) for columns, mass in change.masses.items())
    return _least((frozenset(after[old] for old in left), mass) for left, mass in free if left <= after.keys())


def _bounded(node: Node, change: Change, weights: KeyWeights) -> Change:
    """The same change, where the step bounds how far records move, and where the unit is alone what its keys weigh."""
    masses = _least([*change.masses.items(), *node.moves_at_most.items()])
    if change.alone:
        by_key = ((columns, weights.of(node, columns.union(change.fixed))) for columns in {NONE: 0, **masses})
        masses = _least([*masses.items(), *((columns, most) for columns, most in by_key if most is not None)])
    free = ((columns.difference(change.fixed), mass) for columns, mass in masses.items())
    masses = _least([*masses.items(), *free])
    l0 = change.l0
    if l0 is not None and masses and not node.dithers:
        masses = _least([*masses.items(), (NONE, l0 * min(masses.values()))])
    if NONE in masses:
        steps = math.floor(masses[NONE] * node.resolution)
        l0 = steps if l0 is None else min(l0, steps)
    return change._replace(masses=masses, l0=l0)


def _least(masses: Iterable[tuple[frozenset[str], Fraction]]) -> dict[frozenset[str], Fraction]:
    """The smallest of the masses by each of the columns."""
    result: dict[frozenset[str], Fraction] = {}
    for columns, mass in masses:
        result[columns] = min(mass, result.get(columns, mass))
    return result
