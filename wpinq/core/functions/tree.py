"""The tree of an expression: operations of Polars on each element alone, over columns and constants.

SQL, traced functions and Polars' own expressions all make it. Each node knows how large its tree is and which columns
it reads before Polars makes anything; a part that is used twice is one node, however large the tree becomes.

Size of expressions: the nodes of their trees (`Node.size`), which are bounded before Polars makes any.

Some rules use a part several times: `a % b` as a quotient and as a product, `nullif(a, b)` as a test and as a value. So
a short text may stand for a tree that doubles with each pair of brackets, and Polars walks trees.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from wpinq.core.functions.operations import METHODS, TABLE
from wpinq.core.records.values import digest
from wpinq.errors import PlanError

Name: TypeAlias = str
Given: TypeAlias = "Node | Any"
"""A node, or a constant."""
SPACES = ("str", "dt", "list")


def _operator(name: str) -> Callable[[Node, Given], Node]:
    return lambda self, other: of_all(name, (self, other))


def _turned(name: str) -> Callable[[Node, Given], Node]:
    return lambda self, other: of_all(name, (other, self))


class Methods:
    """The operations of a namespace of Polars, `str`, `dt` or `list`, on a node."""

    def __init__(self, node: Node, space: str) -> None:
        self._node, self._space = node, space

    def __getattr__(self, name: str) -> Callable[..., Node]:
        method = self._space + name
        if method not in METHODS:
            raise AttributeError(method)
        return lambda *inputs, **options: of_all(method, (self._node, *inputs), **options)


class Node:
    """An operation; further ones are written as in Polars, with constants that are no input as keywords.

    Attributes:
        name: What Polars' trees call it: `Column`, `Literal`, `Alias`, `Cast`, `Ternary`, an operator as `Plus`, or a
            function as `StringExpr.Lowercase`.
        inputs: What it works on.
        options: Its constants.
        method: How Polars is told to make it, where it is a function.
        size: How many nodes the tree has, as Polars tells it; a type counts as one.
        depth: How many nodes there are one in the other.
        columns: The columns that it reads, in the order in which they come.
        told: What Polars tells of it, if somebody else made it.
    """

    serialised: Any = None

    def __init__(
        self, name: Name, inputs: tuple[Node, ...] = (), options: Mapping[Name, Any] | None = None, method: Name = ""
    ) -> None:
        self.name = name = METHODS[method] if method else name  # so it says what is made
        self.inputs, self.options, self.method = inputs, options or {}, method
        known = TABLE.get(name) if method or name == "Cast" else None
        self.size: int = 1 + (known.added if known else 0) + sum(part.size for part in inputs)
        self.depth: int = 1 + max((part.depth for part in inputs), default=0)
        read = [self.options["name"]] if name == "Column" else [column for part in inputs for column in part.columns]
        self.columns: tuple[Name, ...] = tuple(dict.fromkeys(read))
        self._expr: pl.Expr | None = None

    @property
    def expr(self) -> pl.Expr:
        """The expression of Polars."""
        for node in walk(self, lambda node: node._expr is None):  # not by recursion: a chain may be long
            node._expr = node._made()
        assert self._expr is not None  # noqa: S101  it comes last
        return self._expr

    def _made(self) -> pl.Expr:
        parts, options = [part.expr for part in self.inputs], self.options
        match self.name:
            case "Column":
                return pl.col(options["name"])
            case "Literal":
                return pl.lit(options["value"], options["dtype"])
            case "Alias":
                return parts[0].alias(options["name"])
            case "Cast":
                return parts[0].cast(options["dtype"], strict=options["strict"])
            case "Ternary":
                return pl.when(parts[0]).then(parts[1]).otherwise(parts[2])
        space, _, name = self.method.rpartition(".")
        made: Any
        if space == "op":
            made = getattr(operator, name)(*parts)
        elif space == "pl":
            made = getattr(pl, name)(parts, **options)
        else:
            more = [part.options["value"] if part.bare else part.expr for part in self.inputs[1:]]
            made = operator.attrgetter(self.method)(parts[0])(*more, **options)
        return made  # type: ignore[no-any-return]

    @property
    def bare(self) -> bool:
        """Whether it is a constant of whatever type fits."""
        return self.name == "Literal" and self.options["dtype"] is None

    @property
    def code(self) -> bytes:
        """What it means: equal for equal expressions, in any process."""
        coded: dict[int, bytes] = {}
        for node in walk(self):
            options = tuple((name, type(value).__name__, repr(value)) for name, value in sorted(node.options.items()))
            coded[id(node)] = digest(node.name, node.method, options, tuple(coded[id(part)] for part in node.inputs))
        return coded[id(self)]

    def alias(self, name: Name) -> Node:
        """It, under this name."""
        return Node("Alias", (self,), {"name": name})

    def cast(self, dtype: Any, *, strict: bool = True) -> Node:
        """It, in a type of Polars."""
        return Node("Cast", (self,), {"dtype": dtype, "strict": strict})

    if TYPE_CHECKING:
        str: Methods
        dt: Methods
        list: Methods

    def __getattr__(self, name: Name) -> Callable[..., Node]:
        result: Any = Methods(self, f"{name}.") if name in SPACES else getattr(Methods(self, ""), name)
        return result  # type: ignore[no-any-return]

    __hash__ = object.__hash__
    __eq__ = _operator("op.eq")  # type: ignore[assignment]
    __ne__ = _operator("op.ne")  # type: ignore[assignment]
    __lt__, __le__, __gt__, __ge__ = _operator("op.lt"), _operator("op.le"), _operator("op.gt"), _operator("op.ge")
    __add__, __sub__, __mul__ = _operator("op.add"), _operator("op.sub"), _operator("op.mul")
    __radd__, __rsub__, __rmul__ = _turned("op.add"), _turned("op.sub"), _turned("op.mul")
    __and__, __or__, __xor__ = _operator("op.and_"), _operator("op.or_"), _operator("op.xor")
    __truediv__, __floordiv__, __mod__ = _operator("op.truediv"), _operator("op.floordiv"), _operator("op.mod")

    def __bool__(self) -> bool:
        raise TypeError("a tree is neither true nor false: compare trees by `is`, or by their codes.")

    def __neg__(self) -> Node:
        return of_all("__neg__", (self,))

    def __invert__(self) -> Node:
        return of_all("__invert__", (self,))


def walk(root: Node, enters: Callable[[Node], bool] = lambda node: True) -> Iterator[Node]:
    """The nodes of a tree, each once, after what it works on; below some that `enters` refuses nothing is looked at."""
    visited: set[int] = set()
    pending = [(root, False)] if enters(root) else []
    while pending:
        node, done = pending.pop()
        if done:
            yield node
        elif id(node) not in visited:
            visited.add(id(node))
            pending.append((node, True))
            pending.extend((part, False) for part in reversed(node.inputs) if id(part) not in visited and enters(part))


def lift(value: Given) -> Node:
    """A node, or a constant as one."""
    return value if isinstance(value, Node) else lit(value)


def col(name: str) -> Node:
    """A column."""
    return Node("Column", (), {"name": name})


def lit(value: Any, dtype: Any = None) -> Node:
    """A constant, of this type of Polars or whatever fits."""
    return Node("Literal", (), {"value": value, "dtype": dtype})


def when(test: Node, value: Given, otherwise: Given = None) -> Node:
    """One value where a test holds, and another elsewhere."""
    return Node("Ternary", (test, lift(value), lift(otherwise)))


def none_null(names: Iterable[str]) -> Node:
    """Whether none of these columns is null."""
    return of_all("pl.all_horizontal", [col(name).is_not_null() for name in names])


def of_all(method: str, parts: Sequence[Given], **options: Any) -> Node:
    """What a method of the table makes of some parts."""
    return Node("", tuple(map(lift, parts)), options, method)


MOST = 5_000
"""Nodes of one expression."""
TOGETHER = 4 * MOST
"""Nodes of all expressions of one question."""


class TooLargeError(PlanError):
    """An expression is too large to be made."""


class Total:
    """Counts the nodes of one question's expressions."""

    def __init__(self) -> None:
        self._left = TOGETHER

    def holds(self, nodes: int) -> bool:
        """Whether there is place for so many."""
        return nodes <= self._left

    def add(self, nodes: int, call: str, text: str = "") -> None:
        """Count an expression, or a copy of one.

        Raises:
            TooLargeError: There are too many.
        """
        self._left -= nodes
        if self._left < 0:
            where = f": {text}" if text else ""
            raise TooLargeError(
                f"{call}{where}: with it all expressions together have more than {TOGETHER:,} nodes; ask for less at a "
                "time."
            )


_QUESTION: ContextVar[Total | None] = ContextVar("question", default=None)


@contextmanager
def question_size() -> Iterator[None]:
    """All expressions that are made inside are of one question."""
    if _QUESTION.get() is not None:
        yield
        return
    token = _QUESTION.set(Total())
    try:
        yield
    finally:
        _QUESTION.reset(token)


def copied(node: Any, call: str, text: Callable[[], str]) -> None:
    """Count a part of a text that is written once and read again in another place, such as what a name stands for.

    Raises:
        TooLargeError: All that was read of the question is too much.
    """
    counts, nodes = total_size(), sum(1 for _ in islice(node.walk(), TOGETHER + 1))
    if not counts.holds(nodes):
        counts.add(nodes, call, text())
    counts.add(nodes, call)


def total_size() -> Total:
    """What counts the question that is being read; outside of one, what begins to count."""
    return _QUESTION.get() or Total()


def insist(nodes: int, call: str, text: str) -> None:
    """Refuse an expression.

    Raises:
        TooLargeError: It has too many nodes.
    """
    if nodes > MOST:
        raise TooLargeError(
            f"{call}: {text} stands for an expression of {nodes:,} nodes, and the most is {MOST:,}: what is nested in "
            "it is used several times over; compute a part of it beforehand, in a subquery or a step of its own."
        )
