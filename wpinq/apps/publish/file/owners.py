"""Whom the answers of a file protect, also where records do not name them: tables of owners, opened in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wpinq import Unit, users
from wpinq.apps.publish.file.declared import Person
from wpinq.core import sources
from wpinq.errors import PlanError
from wpinq.sources.owned import read_way

if TYPE_CHECKING:
    from wpinq.collection import Collection

CALL = "unit.through"


class Owning(Protocol):
    """A table of a file, of people or of what leads to them."""

    @property
    def unit(self) -> Person | None:
        """Whose its records are."""


T = TypeVar("T", bound=Owning)


def unit_of(given: Person | None, owners: Mapping[str, Owning], led: tuple[str, ...] = ()) -> Unit:
    """The privacy unit of a file.

    Args:
        given: What the file says.
        owners: The tables that a way may lead through.
        led: The tables that have led here.

    Raises:
        PlanError: It cannot be.
    """
    if given is None:
        return Unit()
    if len(given.per) > 1:
        raise PlanError("data.unit.per: one column and a number, such as per = { page = 1 }.")
    own: dict[str, Any] = {
        "per": next(iter(given.per.items()), None), "shared": given.shared, "epsilon": given.epsilon,
        "bins": 1 if given.bins is None else given.bins, "asking": 1 if given.asking is None else given.asking,
    }  # fmt: skip
    if given.through is None:
        return users(given.column, given.at_most, period=given.period, at=given.at, zone=given.zone, **own)
    if (given.column, given.period, given.at, given.zone) != (None, None, None, None):
        raise PlanError(f"{CALL}: goes without column and period, which are those of the table of owners.")
    key, table, found = hop(given.through, owners, led)
    owner = unit_of(owners[table].unit, owners, (*led, table))
    if owner.column is None:
        raise PlanError(f"{CALL}: table {table!r} names nobody; give it a unit, such as {{ column = 'customer' }}.")
    unit = users(owner.column, given.at_most, **own)
    return replace(unit, way=((key, table, found), *owner.way), period=owner.period, zone=owner.zone)


def hop(through: str, owners: Mapping[str, Owning], led: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """The column that is looked up, the table, and the column there.

    Raises:
        PlanError: There is no such table, or the way leads in a circle.
    """
    key, table, column = read_way(through, CALL)
    if table not in owners or table in led:
        raise PlanError(f"{CALL}: leads to {table!r}, which is no other table of the file that leads to people.")
    return key, table, column


def led(person: Person | None, owners: Mapping[str, T], opened: Callable[[str, T, Unit], Collection]) -> Unit:
    """The privacy unit with the table that the way leads to first, opened; the others are opened before it.

    Args:
        given: What the file says.
        owners: The tables that a way may lead through.
        opened: Protects one of them.

    Raises:
        PlanError: It cannot be.
    """
    unit = unit_of(person, owners)
    if person is None or person.through is None:
        return unit
    _, table, _ = hop(person.through, owners)
    (data,) = sources(opened(table, owners[table], led(owners[table].unit, owners, opened))._node)
    return replace(unit, owner=data)
