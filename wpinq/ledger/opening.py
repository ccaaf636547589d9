"""The first row of a ledger, and what must fit it when the ledger is opened again, or by another table.

Tables of the same people may share a ledger. Each charge is what it costs a person by that table's own bound, and all
are added up, so that the total is what one person loses over all tables: a person who is in only some of them loses
less. The bounds of tables may differ; the column that tells people apart, and their period, may not, so that the unit
is one. A table of records may not join one of people: what a person loses by it nobody bounds.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from typing import Any

from wpinq.exact import decimal
from wpinq.ledger.accountant import FORMAT, Accountant
from wpinq.ledger.chain import RefusedError
from wpinq.ledger.cost import ALLOWED, write

BOUND = re.compile(r", (?:at most [0-9]+ records|a weight of 1 shared by its records).*")


def opening(name: str, unit: str, budget: Fraction | None, delta: Fraction | None) -> dict[str, Any]:
    """The first row.

    Raises:
        RefusedError: There is no budget.
    """
    if budget is None:
        raise RefusedError("a new ledger needs a budget; give budget=, for example budget=0.2.")
    return {
        "kind": "open", "format": FORMAT, "id": os.urandom(16).hex(), "name": name, "unit": unit,
        "budget": write(budget), "delta": write(ALLOWED if delta is None else delta),
    }  # fmt: skip


def joined(
    accountant: Accountant,
    name: str | None,
    unit: str,
    budget: Fraction | None,
    delta: Fraction | None,
    *,
    shared: bool,
) -> dict[str, Any] | None:
    """The row of a table that comes to those that a ledger has; None where it has it.

    Raises:
        RefusedError: It may not come, or its unit or its budget is another one.
    """
    name = name or accountant.name
    own = accountant.unit if name == accountant.name else accountant.tables.get(name)
    if own is not None and own != unit:
        raise accountant.other_unit(unit, own)
    if own is None and not (shared and BOUND.sub("", accountant.unit) == BOUND.sub("", unit)):
        raise RefusedError(
            f"it is data set {accountant.name!r}'s, not {name!r}'s; give each data set a ledger= of its own. Tables of"
            f" the same people share one where ledger= and name= say so, and the column of {accountant.unit!r} tells"
            f" people apart in each; in this one it is {unit!r}."
        )
    _check_budget(accountant, budget, accountant.delta if delta is None else delta)
    return None if own is not None else {"kind": "table", "name": name, "unit": unit}


def _check_budget(accountant: Accountant, budget: Fraction | None, delta: Fraction) -> None:
    """Refuse another budget; floats were once read as the decimals that they print, and are still known."""
    if budget is None:
        return
    pairs = ((budget, accountant.budget), (delta, accountant.delta))
    if any(given != held and float(given) != float(held) for given, held in pairs):
        raise RefusedError(
            f"its budget is epsilon {decimal(accountant.budget)}, delta {decimal(accountant.delta)}, and not epsilon"
            f" {decimal(budget)}, delta {decimal(delta)}, as was given. Give what it"
            f" holds, or to spend more: `wpinq ledger raise PATH EPSILON`."
        )
