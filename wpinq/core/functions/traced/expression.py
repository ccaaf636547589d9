"""The column expressions of traced functions: a small tree, its Polars expression, and a test of where Python agrees.

Every rule has a value and, where Polars and Python differ, a `safe` test: records that fail it are computed by the
plain way (privacy rule 16). Examples are integers beyond 64 bits, division by zero, letters beyond ASCII whose case or
white space the two treat differently, and NaN in comparisons.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from wpinq.core.functions import tree
from wpinq.core.functions.traced.rules import RULES, Rule
from wpinq.core.functions.tree import Node, col, lit, when
from wpinq.core.records.canonical import canonical
from wpinq.core.records.kinds import PHYSICAL, read, write
from wpinq.core.records.schema import Kind, polars_type
from wpinq.core.records.values import encode

CASE = 3
"""Letters that one may become in another case: `"\N{LATIN SMALL LIGATURE FFI}".upper()`."""


class Untraced(Exception):  # noqa: N818
    """A function is not column arithmetic; the plain way is taken."""


@dataclass(frozen=True)
class Expression:
    """One step of a column expression.

    Attributes:
        name: `column`, `constant`, or the name of a rule.
        kind: The kind of its value.
        inputs: The expressions that it works on.
        options: Constants: the name of a column, the stored value of a constant, the arguments of a rule.
    """

    name: str
    kind: Kind
    inputs: tuple[Expression, ...] = ()
    options: tuple[Any, ...] = ()

    @classmethod
    def of_column(cls, name: str, kind: Kind) -> Expression:
        """A column of the input."""
        return cls("column", kind, (), (name,))

    @classmethod
    def of_constant(cls, value: Any, kind: Kind) -> Expression:
        """A constant, held as a column of this kind would store it."""
        return cls("constant", kind, (), (write(value, kind),))

    @classmethod
    def of_rule(
        cls, name: str, inputs: tuple[Expression, ...], options: tuple[Any, ...], call: str = "trace"
    ) -> Expression:
        """A rule applied to expressions.

        Raises:
            Untraced: There is no such rule for operands of these kinds.
            TooLargeError: It stands for too large an expression.
        """
        rule = RULES.get((name, *(node.kind for node in inputs)))
        if rule is None or (rule.admits is not None and not rule.admits(*options)):
            raise Untraced
        made = cls(name, rule.kind, inputs, options)
        tree.insist(made.size, call, name)
        return made

    @cached_property
    def value_tree(self) -> Node:
        """Its value, right wherever Python agrees."""
        if self.name == "column":
            return col(self.options[0])
        if self.name == "constant":
            dtype = polars_type(self.kind)
            return (
                lit(self.options[0], pl.Int64()).cast(dtype) if self.kind in PHYSICAL else lit(self.options[0], dtype)
            )
        value = self._rule.value(*[node.value_tree for node in self.inputs], *self.options)
        return canonical(value.cast(polars_type(self.kind)), self.kind, when)

    @cached_property
    def test(self) -> Node | None:
        """Where Python agrees, as far as this step says; None where that is everywhere."""
        if self.name == "column":
            return self.value_tree.is_not_null()
        if self.name == "constant" or self._rule.safe is None:
            return None
        return self._rule.safe(*[node.value_tree for node in self.inputs], *self.options)

    @property
    def _rule(self) -> Rule:
        return RULES[(self.name, *(part.kind for part in self.inputs))]

    @property
    def size(self) -> int:
        """How many nodes its value and its test have."""
        return self.value_tree.size + (0 if self.test is None else self.test.size)

    def __str__(self) -> str:
        if self.name == "column":
            return str(self.options[0])
        if self.name == "constant":
            return repr(self.value)
        return f"{self.name}({', '.join([*map(str, self.inputs), *map(repr, self.options)])})"

    def parts(self) -> Iterator[Expression]:
        """It and all that it is made of, inputs before what works on them."""
        for node in self.inputs:
            yield from node.parts()
        yield self

    @property
    def value(self) -> Any:
        """The value of a constant, as Python has it."""
        return read(self.options[0], self.kind)

    def growth(self) -> int:
        """How many characters its value has for each of a column's, at the most; constants are not counted."""
        grown = [node.growth() for node in self.inputs]
        if self.name == "add":
            return max(1, sum(size for size, node in zip(grown, self.inputs, strict=True) if node.name != "constant"))
        if self.name in ("lower", "upper"):
            return CASE * grown[0]
        if self.name == "replace":
            old, new = self.options
            return max(1, -(-len(new) // len(old))) * grown[0]
        return max(grown, default=1)

    def code(self) -> bytes:
        """Canonical bytes: equal for equal expressions, in any process."""
        head: Any = (self.name, self.kind.value, tuple(node.code() for node in self.inputs))
        return encode((*head, tuple((type(option).__name__, option) for option in self.options)))


def safe(nodes: Iterable[Expression]) -> pl.Expr | None:
    """Where the values of these nodes are what Python computes; None when that is everywhere."""
    parts = dict.fromkeys(part for node in nodes for part in node.parts())
    tests = [part.test.expr for part in parts if part.test is not None]
    return functools.reduce(lambda left, right: left & right, tests).fill_null(value=False) if tests else None
