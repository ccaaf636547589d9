"""Collections of a server: the operators of Python, tried here on no records, and sent as a plan when measured.

Each step is done twice: to a collection without records, which finds what is wrong here and at once, and in the grammar
of plans. Functions are traced here, and what cannot be traced is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from wpinq import Quote
from wpinq.apps.remote import grammar, wire
from wpinq.apps.remote.answers import RemoteMeasurement, RemoteQuote
from wpinq.apps.remote.bins import sent
from wpinq.apps.remote.cells import as_json
from wpinq.apps.remote.transport import Transport
from wpinq.collection import Collection
from wpinq.core import Node, bind, steps
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact


class RemoteCollection(Collection):
    """A collection of a server. What it cannot send it refuses, with the reason."""

    __slots__ = ("_step", "_transport")

    def __init__(self, node: Node, transport: Transport, step: Sent | None = None) -> None:
        super().__init__(node)
        self._transport, self._step = transport, step

    def _then(self, node: Node) -> RemoteCollection:
        return RemoteCollection(node, self._transport)

    def _as(self, made: Collection, step: Sent) -> RemoteCollection:
        return RemoteCollection(made._node, self._transport, step)

    def _commit(self, quotes: Sequence[Quote[Any]]) -> list[Any]:
        raise PlanError(f"{quotes[0].call}: a server takes measure(...) and SQL: connection.sql('SELECT ...').")

    def _bound(self, function: object, call: str, columns: Any = None, *, condition: bool = False) -> grammar.Function:
        """A function as it is sent."""
        if isinstance(function, str) and (condition or function not in self.columns):
            return grammar.Written(text=function)
        bound = bind(function, self._node.schema, call, columns=columns, condition=condition)
        if bound.projection is not None and bound.output.names == bound.projection and not condition:
            return grammar.Chosen(names=list(bound.projection))
        return sent(bound, call)

    def _key(self, key: object, call: str) -> grammar.Function:
        if isinstance(key, str):
            return grammar.Chosen(names=[key])
        if isinstance(key, Sequence):
            return grammar.Chosen(names=list(key))
        return self._bound(key, call)

    def map(self, function: object, columns: Sequence[str] | Mapping[str, object] | None = None) -> RemoteCollection:
        """See `Collection.map`; the function is traced."""
        made = super().map(function, columns)
        return self._as(made, Sent("map", (self,), {"function": self._bound(function, "map", columns)}))

    def filter(self, predicate: object) -> RemoteCollection:
        """See `Collection.filter`; the function is traced."""
        made = super().filter(predicate)
        return self._as(made, Sent("filter", (self,), {"function": self._bound(predicate, "filter", condition=True)}))

    def shave(self, thickness: Any = 1, name: str = "index", *, step: Amount | None = None) -> RemoteCollection:
        """See `Collection.shave`; thicknesses are numbers."""
        made = super().shave(thickness, name, step=step)
        if callable(thickness):
            raise PlanError("shave(thickness=...): a function of the record cannot be sent; give numbers.")
        many = thickness if isinstance(thickness, Sequence) and not isinstance(thickness, str) else [thickness]
        slices = [str(exact(level, "shave")) for level in many]
        return self._as(made, Sent("shave", (self,), {"thickness": slices, "name": name}))

    def distinct(self, at_most: Amount = 1) -> RemoteCollection:
        """See `Collection.distinct`."""
        bound = str(exact(at_most, "distinct(at_most=...)"))
        return self._as(super().distinct(at_most), Sent("distinct", (self,), {"at_most": bound}))

    def group_by(
        self, key: object, reduce: object = None, columns: Any = None, *, whole: bool = False
    ) -> RemoteCollection:
        """See `Collection.group_by`; `reduce` is `len`, or nothing."""
        made = super().group_by(key, reduce, columns, whole=whole)
        if reduce not in (None, len):
            raise PlanError("group_by(reduce=...): only len can be sent; measure sizes, or ask for sums in SQL.")
        names = {} if columns is None or reduce is None else {"name": next(iter(columns))}
        fields = {"key": self._key(key, "group_by"), "sizes": reduce is len, "whole": whole, **names}
        return self._as(made, Sent("group_by", (self,), fields))

    def limit(self, key: object, at_most: int = 1) -> RemoteCollection:
        """See `Collection.limit`."""
        made = super().limit(key, at_most)
        return self._as(made, Sent("limit", (self,), {"key": self._key(key, "limit"), "at_most": at_most}))

    def partition(self, key: object, parts: Iterable[Any]) -> dict[Any, Collection]:
        """See `Collection.partition`."""
        listed = list(parts)
        made = super().partition(key, listed)
        fields = {"key": self._key(key, "partition"), "parts": [as_json(value) for value in listed]}
        return {
            part: self._as(collection, Sent("part", (self,), {**fields, "part": number}))
            for number, (part, collection) in enumerate(made.items())
        }

    def _both(self, tag: str, other: Collection, made: Collection, **fields: Any) -> RemoteCollection:
        if not isinstance(other, RemoteCollection) or other._transport is not self._transport:
            raise PlanError(f"{tag}: the other collection is not of this connection.")
        return self._as(made, Sent(tag, (self, other), fields))

    def concat(self, other: Any) -> RemoteCollection:
        """See `Collection.concat`."""
        return self._both("concat", other, super().concat(other))

    def subtract(self, other: Any) -> RemoteCollection:
        """See `Collection.subtract`."""
        return self._both("subtract", other, super().subtract(other))

    def union(self, other: Any) -> RemoteCollection:
        """See `Collection.union`."""
        return self._both("union", other, super().union(other))

    def intersect(self, other: Any) -> RemoteCollection:
        """See `Collection.intersect`."""
        return self._both("intersect", other, super().intersect(other))

    def _matched(self, tag: str, other: Any, on: Any, keys: tuple[Any, Any], **more: Any) -> RemoteCollection:
        """A step by keys of both sides."""
        left, right = keys
        operator = getattr(Collection, tag)
        options = {name: value for name, value in more.items() if value is not None}
        made = operator(self, other, on, left=left, right=right, **options)
        if not isinstance(other, RemoteCollection):
            raise PlanError(f"{tag}: the other collection is not of this connection; public tables are for SQL.")
        ours, theirs = (on if side is None else side for side in (left, right))
        key_fields = {"left_key": self._key(ours, tag), "right_key": other._key(theirs, tag)}
        return self._both(tag, other, made, **key_fields, **options)

    def join(
        self, other: Any, on: object = None, *, left: object = None, right: object = None, result: object = None,
        at_most: int | None = None, columns: Any = None, how: str = "inner",
    ) -> RemoteCollection:  # fmt: skip
        """See `Collection.join`; `at_most` is needed, and `result` is a `map` after it."""
        if at_most is None or result is not None or columns is not None:
            raise PlanError("join: give at_most=, so that no key is too heavy; result= is map(...) after the join.")
        return self._matched("join", other, on, (left, right), at_most=at_most, how=how)

    def join_rows(
        self, other: Any, on: object = None, *, left: object = None, right: object = None, result: object = None,
        columns: Any = None, how: str = "inner",
    ) -> RemoteCollection:  # fmt: skip
        """See `Collection.join_rows`; `result` is a `map` after it."""
        if result is not None or columns is not None:
            raise PlanError("join_rows: leave result= and columns= out, and map(...) after it.")
        return self._matched("join_rows", other, on, (left, right), how=how)

    def semijoin(self, other: Any, on: Any = None, *, left: Any = None, right: Any = None) -> RemoteCollection:
        """See `Collection.semijoin`."""
        return self._matched("semijoin", other, on, (left, right))

    def antijoin(self, other: Any, on: Any = None, *, left: Any = None, right: Any = None) -> RemoteCollection:
        """See `Collection.antijoin`."""
        return self._matched("antijoin", other, on, (left, right))

    def quote(self, *arguments: Any, **options: Any) -> Any:
        """What `measure` would cost, and what is left then; nothing is charged."""
        answer = self._transport.ask("/api/measure", wire.Measured, self._request(arguments, options, dry=True))
        assert answer.price is not None  # noqa: S101  a dry question is answered by its price
        return RemoteQuote(answer.price)

    def measure(self, *arguments: Any, **options: Any) -> Any:
        """Charge for a noisy histogram, on the server; see `Collection.measure`.

        Raises:
            PlanError: A step or an argument cannot be sent.
            BudgetError: It costs more than is left of the own cap or of the budget; nothing was charged.
            SourceError: The server cannot be reached; asked again it is free, if it was charged.
        """
        request = self._request(arguments, options, dry=False)

        def again() -> wire.Described:
            described = self._transport.ask("/api/measure", wire.Measured, request).measurement
            assert described is not None  # noqa: S101  it was charged
            return described

        return RemoteMeasurement(self._transport, again(), again)

    def _request(self, arguments: tuple[Any, ...], options: dict[str, Any], *, dry: bool) -> grammar.Measure:
        """What is sent; what is wrong with it shows here."""
        options = {**dict(zip(("epsilon", "name", "mechanism"), arguments, strict=False)), **options}
        super().quote(**options)
        amounts = {name_: options.pop(name_, None) for name_ in ("epsilon", "within", "rho", "delta")}
        words = {name_: options.pop(name_) for name_ in ("name", "mechanism") if options.get(name_) is not None}
        if odd := {name for name, value in options.items() if value is not None}:
            raise PlanError(f"measure({min(odd)}=...): cannot be sent to a server.")
        exactly = {name_: str(exact(value, name_)) for name_, value in amounts.items() if value is not None}
        listed: list[dict[str, Any]] = []
        _listed(self, listed, {})
        plan = {"plan": listed, "dry": dry, **words, **exactly}
        return msgspec.convert(msgspec.to_builtins(plan), grammar.Measure)


class Sent:
    """A step of the grammar, and the collections that it reads."""

    def __init__(self, tag: str, reads: tuple[RemoteCollection, ...], fields: Mapping[str, Any]) -> None:
        self.tag, self.reads, self.fields = tag, reads, fields


def _listed(of: RemoteCollection, listed: list[dict[str, Any]], numbers: dict[Sent, int]) -> int:
    """Add a collection's steps to a plan, each once, and tell the place of the last."""
    if of._step is None:
        (*_, last) = steps(of._node)
        raise PlanError(f"{last.title}: this step cannot be sent to a server; it takes SQL as well: connection.sql.")
    if of._step in numbers:
        return numbers[of._step]
    at = [_listed(read, listed, numbers) for read in of._step.reads]
    names = ("left", "right") if len(at) == 2 else ("of",)
    listed.append({"do": of._step.tag, **dict(zip(names, at, strict=False)), **of._step.fields})
    numbers[of._step] = len(listed) - 1
    return len(listed) - 1
