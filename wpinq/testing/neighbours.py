"""Random inputs of a dataflow, and inputs that differ by one privacy unit, as strategies of hypothesis.

`check_stability` compares the exact movement of a dataflow between neighbours with the stability that it states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from wpinq.arguments import COLLECTION, MAPPING, NOTHING, WHOLE, takes
from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Record, Source
from wpinq.core.plan.person_bound import mover
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import needs
from wpinq.testing.case import FEW
from wpinq.testing.evaluation import distance, given_to, leaves

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

MANY = 6
"""Records of an input, and of a person, at the most: what breaks a stability does so with few."""

Values = Mapping[str, Sequence[Any]] | None
"""Values to draw from, by the name of a column."""


class Neighbours(NamedTuple):
    """Inputs of a dataflow without and with one privacy unit.

    Attributes:
        without: The records of each source.
        with_one: The same, and one unit more: a record in one of them, or a person in all of their ledger's.
        data: A data set that the unit is in.
    """

    without: tuple[list[Record], ...]
    with_one: tuple[list[Record], ...]
    data: DataSet


def inputs(collection: Collection, values: Values = None) -> SearchStrategy[tuple[list[Record], ...]]:
    """Random records for each protected collection that a dataflow is made of, in the order of `evaluate`.

    Args:
        collection: What the dataflow returns.
        values: For some columns the values to draw from, such as those that a filter looks for.

    Raises:
        PlanError: Hypothesis is not installed.
    """
    st = needed("hypothesis.strategies")
    records = [st.lists(_records(source, values), max_size=MANY) for source in leaves(collection)]
    result: SearchStrategy[tuple[list[Record], ...]] = st.tuples(*records)
    return result


def neighbours(collection: Collection, values: Values = None) -> SearchStrategy[Neighbours]:
    """Random inputs that differ by one privacy unit: one record, or all records of one person.

    Arguments and errors are those of `inputs`.
    """
    st = needed("hypothesis.strategies")
    read = leaves(collection)

    def draw_both(draw: Callable[[Any], Any]) -> Neighbours:
        index = draw(st.integers(0, len(read) - 1))
        data, without = read[index].data, list(draw(inputs(collection, values)))
        unit = draw(st.lists(_records(read[index], values), min_size=1, max_size=MANY))
        unit = _one_unit(read[index], unit)
        whose = _whose(read[index], unit[0])
        with_one = [list(records) for records in without]
        for at, source in enumerate(read):
            if at == index or (whose and mover(source.data) == mover(data)):
                more = unit if at == index else draw(st.lists(_records(source, values), max_size=MANY))
                without[at] = _others(source, without[at], whose)
                with_one[at] = [*without[at], *(_as(source, record, whose) for record in more)]
        return Neighbours(tuple(without), tuple(with_one), data)

    result: SearchStrategy[Neighbours] = st.composite(draw_both)()
    return result


def needed(module: str) -> ModuleType:
    """Hypothesis, where it is installed.

    Raises:
        ExtraError: It is not.
    """
    from importlib import import_module

    needs("testing", "wpinq.testing")
    return import_module(module)


def _records(source: Source, values: Values) -> Any:
    st = needed("hypothesis.strategies")
    pools = values or {}
    return st.tuples(*(st.sampled_from(list(pools.get(c.name, FEW[c.kind]))) for c in source.schema))


def _one_unit(source: Source, records: list[Record]) -> list[Record]:
    """Records that are all of one unit: the first of some, or all of them as if the person of the first had them."""
    unit, names = source.data.unit, source.schema.names
    if unit.column is None:
        return records[:1]
    fixed = {names.index(name) for name in unit.columns}
    return [tuple(records[0][at] if at in fixed else value for at, value in enumerate(record)) for record in records]


def _whose(source: Source, record: Record) -> tuple[Any, ...]:
    """What names the unit of a record, a person; nothing where it is the record."""
    names = source.schema.names
    return tuple(record[names.index(name)] for name in source.data.unit.columns)


def _as(source: Source, record: Record, whose: tuple[Any, ...]) -> Record:
    """A record as if the unit had it."""
    named = dict(zip(source.data.unit.columns, whose, strict=False))
    return tuple(named.get(name, value) for name, value in zip(source.schema.names, record, strict=True))


def _others(source: Source, records: list[Record], whose: tuple[Any, ...]) -> list[Record]:
    """The records of others than one person."""
    if not whose:
        return records
    at = source.schema.names.index(str(source.data.unit.column))
    return [record for record in records if record[at] != whose[0]]


@takes(collection=COLLECTION, examples=WHOLE, values=MAPPING | NOTHING)
def check_stability(collection: Collection, *, examples: int = 200, values: Values = None) -> None:
    """Search for neighbouring inputs between which a dataflow moves further than it states.

    Noise hides one privacy unit if what is measured moves no further than its stated sensitivity when the unit comes
    or goes. The operators are proved to be stable. What this finds are operators of your own, and functions that are
    not functions: that remember other records, draw random numbers, or read what changes.

    Inputs are the same in every run of the same code.

    Args:
        collection: What the dataflow returns.
        examples: How many neighbours to try.
        values: For some columns the values to draw from, such as those that a filter looks for.

    Raises:
        AssertionError: There are such neighbours; the smallest that were found are shown.
        PlanError: Hypothesis is not installed.

    >>> from wpinq.testing import check_stability, protected
    >>> views = protected(user="text", page="text")
    >>> check_stability(views.group_by("user", len), examples=20)

    A function that remembers other records is found:

    >>> seen = []
    >>> def numbered(user, page):
    ...     seen.append(page)
    ...     return len(seen)
    >>> check_stability(views.map(numbered, columns={"n": int}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: one unit more of 'records' moves the output by 3, and 1 is stated; ...
    """
    hypothesis = needed("hypothesis")
    root = fit_noise(collection._node)
    stated = sensitivities(root)

    def moves_within(pair: Neighbours) -> None:
        without, with_one = (reference.run(root, given_to(root, side)) for side in pair[:2])
        moved = distance(without, with_one)
        most = sum((move for data, move in stated.items() if mover(data) == mover(pair.data)), Fraction(0))
        if most:
            hypothesis.target(float(moved / most))
        assert moved <= most, (  # noqa: S101  it is a check of tests
            f"one unit more of {pair.data.name!r} moves the output by {moved}, and {most} is stated; without it the "
            f"input is {pair.without}, with it {pair.with_one}."
        )

    profile = hypothesis.settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=set(hypothesis.Phase) - {hypothesis.Phase.explain},  # the message says all, and it takes the longest
    )  # fmt: skip
    profile(hypothesis.given(neighbours(collection, values))(moves_within))()
