"""Charges: what one query costs one data set, and as which row the ledger keeps it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from wpinq.core.ledger.cost import Cost, read_amount, write_amount
from wpinq.core.records.fields import encode
from wpinq.errors import InternalError, PlanError


@dataclass(frozen=True)
class Charge:
    """The charge for one query to one data set.

    Args:
        question: The question's fingerprint, in hexadecimal digits.
        costs: Every path from the data set to the measurement.
        version: The version of the data.
        label: The measurement's name, for people.
        analyst: Who asks, where that is known.
        asked: What people take for one question, on whatever version; "" where that is not known. It decides nothing
            but a warning, and an older wpinq passes over it.
        within: Within which bound of each person's records it was asked, for people; it decides nothing.
    """

    question: str
    costs: tuple[Cost, ...]
    version: str
    label: str
    analyst: str | None = None
    asked: str = ""
    within: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch("[0-9a-f]{8,128}", self.question):
            raise InternalError("charge(question=...): a question is known by 8 to 128 hexadecimal digits only.")
        if not self.costs:
            raise InternalError("charge(costs=...): a question costs something; none was given.")

    @property
    def key(self) -> bytes:
        """What makes it the same question: its fingerprint, on one version."""
        return key(self.question, self.version)

    @property
    def code(self) -> bytes:
        """What tells its costs from others, in whatever order."""
        return _code(self.costs)

    def body(self, *, curves: bool = False) -> dict[str, Any]:
        """The charge as a row of the ledger; with the curves of its costs, which a ledger of pure epsilon has not."""
        costs = [[*_texts(cost), *(_curve(cost) if curves else ())] for cost in self.costs]
        optional = {name: value for name, value in (("asked", self.asked), ("within", self.within)) if value}
        return {
            "kind": "charge", "question": self.question, "version": self.version, "label": self.label,
            "analyst": self.analyst, "costs": costs, **optional,
        }  # fmt: skip


def _texts(cost: Cost) -> list[Any]:
    return [write_amount(cost.epsilon), write_amount(cost.delta), cost.under, write_amount(cost.times)]


def _curve(cost: Cost) -> list[Any]:
    return [write_amount(cost.rho), None if cost.curve is None else [write_amount(loss) for loss in cost.curve]]


def costs_of(body: dict[str, Any], *, curves: bool) -> tuple[Cost, ...]:
    """The costs of a charge, as its row says them.

    Raises:
        ValueError: They have curves in a ledger that has none, or none in one that has.
    """
    return tuple(_cost(curves, *map(_frozen, fields)) for fields in body["costs"])


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@lru_cache(1024)
def _cost(curves: bool, epsilon: str, delta: str, under: tuple[tuple[str, str], ...], times: str, *more: Any) -> Cost:
    rho, curve = more if curves else ("0/1", None, *more)
    known = None if curve is None else (read_amount(curve[0]), read_amount(curve[1]))
    return Cost(read_amount(epsilon), read_amount(delta), under, read_amount(rho), read_amount(times), known)


@lru_cache(1024)
def _code(costs: tuple[Cost, ...]) -> bytes:
    texts = ([*_texts(cost), *([write_amount(cost.rho)] if cost.rho else [])] for cost in costs)
    return blake2b("\n".join(sorted(map(json.dumps, texts))).encode(), digest_size=16).digest()


def key(question: str, version: str) -> bytes:
    """A question on one version, in 32 bytes, however long the name of the version is."""
    return blake2b(encode(question, version), digest_size=32).digest()


def wording(name: object, call: str) -> str | None:
    """A name that the ledger keeps: text, or a whole number, which is read as text, or None.

    Raises:
        PlanError: It is neither, or cannot be written as UTF-8.

    >>> wording("July", "measure(name=...)"), wording(7, "measure(name=...)"), wording(None, "measure(name=...)")
    ('July', '7', None)
    """
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    if name is not None and not isinstance(name, str):
        raise PlanError(f"{call}: takes text, and got {type(name).__name__}.")
    try:
        (name or "").encode()
    except UnicodeEncodeError:
        raise PlanError(f"{call}: holds what is no valid text; decode it first.") from None
    return name
