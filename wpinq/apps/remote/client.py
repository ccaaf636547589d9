"""`wpinq.connect`: a server's collections, measurements and fits from Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wpinq import Unit, users
from wpinq.apps.remote import wire
from wpinq.apps.remote.answers import RemoteAnswer, RemoteMeasurement, RemoteQuote
from wpinq.apps.remote.collection import RemoteCollection, Sent
from wpinq.apps.remote.releases import RemoteRelease
from wpinq.apps.remote.transport import Transport, as_json
from wpinq.core import Kind
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact
from wpinq.protection import protect

if TYPE_CHECKING:
    from wpinq.postprocess.degrees.fit import Fit


LIMITLESS = 10**12
"""The budget of collections without records, in which only mistakes show."""


def connect(url: str, token: str, *, timeout: float = 600) -> Connection:
    """Connect to a server of `wpinq serve`, as an analyst.

    Args:
        url: Its address, `https://...`; `http://` for one on this machine.
        token: The token that its curator made.
        timeout: Seconds to wait for an answer. What was charged by then is free when it is asked again.

    Raises:
        PlanError: The address or the token cannot be one.
        SourceError: The server cannot be reached, or refuses the token.
    """
    return Connection(Transport(url, token, timeout))


class Connection:
    """A server, as one analyst sees it.

    Args:
        transport: How it is asked.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._listed = transport.ask("/api/measurements", wire.Listed)

    @cached_property
    def measurements(self) -> Mapping[str, RemoteMeasurement]:
        """The measurements that the curator serves, by name; observing them is free."""
        return {one.name: RemoteMeasurement(self._transport, one, None) for one in self._listed.measurements}

    @cached_property
    def data(self) -> Mapping[str, RemoteCollection]:
        """The data sets of which questions may be asked, by name."""
        return {one.name: self._collection(one) for one in self._listed.data if one.questions}

    @cached_property
    def releases(self) -> Mapping[str, RemoteRelease]:
        """The published releases that the server serves, by name; reading them is free."""
        return {name: RemoteRelease(self._transport, name) for name in self._listed.releases}

    @property
    def budget(self) -> list[wire.Left]:
        """What is left of the own caps and of the budgets."""
        return self._transport.ask("/api/budget", wire.Budget).data

    def fit(self, name: str) -> Fit:
        """A degree distribution of the server, fitted here to its two measurements; free.

        Raises:
            PlanError: There is none of this name.
        """
        from wpinq.postprocess.degrees.reconcile import reconcile

        found = {one.name: one for one in self._listed.fits}
        if name not in found:
            raise PlanError(f"fit({name!r}): there are {', '.join(found) or 'none'}.")
        return reconcile(self.measurements[found[name].cdf], self.measurements[found[name].sequence])

    def quote_sql(self, query: str, epsilon: Amount | None = None, **asked: Any) -> RemoteQuote:
        """What `sql` would cost, and what is left then; nothing is charged."""
        price = self._sql(query, epsilon, asked, dry=True).price
        assert price is not None  # noqa: S101  a dry question is answered by its price
        return RemoteQuote(price)

    def sql(self, query: str, epsilon: Amount | None = None, **asked: Any) -> RemoteAnswer:
        """Answer one SELECT over the data sets, which are tables by their names; see `wpinq.sql`.

        Args:
            query: The query.
            epsilon: What it may cost.
            **asked: `within`, `delta`, `keys`, `bounds`, `at_most` (up to the curator's) and `name`, as `wpinq.sql`
                takes them.

        Raises:
            PlanError, BudgetError, SourceError: See `RemoteCollection.measure`.
        """
        return RemoteAnswer(self._sql(query, epsilon, asked, dry=False))

    def _sql(self, query: str, epsilon: Amount | None, asked: Mapping[str, Any], *, dry: bool) -> wire.Answered:
        if odd := set(asked) - {"within", "delta", "keys", "bounds", "at_most", "name"}:
            raise PlanError(f"sql({min(odd)}=...): cannot be sent to a server.")
        amounts = {"epsilon": epsilon, "within": asked.get("within"), "delta": asked.get("delta")}
        body = {name: str(exact(one, f"sql({name}=...)")) for name, one in amounts.items() if one is not None}
        keys = asked.get("keys")
        return self._transport.ask("/api/sql", wire.Answered, {
            "query": query, "dry": dry, **body, "name": asked.get("name"),
            "at_most": asked.get("at_most"),
            "keys": None if keys is None else [as_json(one) for one in keys],
            "bounds": {name: [str(exact(one, "sql(bounds=...)")) for one in ends]
                       for name, ends in (asked.get("bounds") or {}).items()},
        })  # fmt: skip

    def _collection(self, one: wire.DataTold) -> RemoteCollection:
        kinds = {column.name: None if column.type == Kind.ANY.value else column.type for column in one.columns}
        here = protect([], LIMITLESS, delta="0.5", columns=kinds, name=one.name, unit=_unit(one.unit))
        return RemoteCollection(here._node, self._transport, Sent("table", (), {"name": one.name}))

    def __repr__(self) -> str:
        return f"{self._transport!r}: {', '.join((*self.data, *self.measurements)) or 'nothing'}"


def _unit(told: wire.Unit | None) -> Unit:
    """Whom answers protect, as collections here hold it."""
    if told is None:
        return Unit()
    per = next(iter(told.per.items()), None)
    return users(told.column, told.at_most, per=per, shared=told.shared, period=told.period, at=told.at, zone=told.zone)
