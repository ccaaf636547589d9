"""`wpinq.connect`: a server's collections, measurements and fits from Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from wpinq import Unit, users
from wpinq.apps.remote import wire
from wpinq.apps.remote.answers import RemoteAnswer, RemoteMeasurement, RemoteQuote
from wpinq.apps.remote.cells import as_json
from wpinq.apps.remote.collection import RemoteCollection, Sent
from wpinq.apps.remote.releases import RemoteRelease
from wpinq.apps.remote.transport import Transport
from wpinq.core import Kind
from wpinq.errors import PlanError
from wpinq.exact import Amount, exact
from wpinq.protection import LIMITLESS, protect

if TYPE_CHECKING:
    from wpinq.postprocess.degrees.fit import Fit


Has = TypeVar("Has")
OPTIONS = frozenset({"within", "rho", "mechanism", "delta", "keys", "bounds", "at_most", "name"})
"""What `sql` takes beside epsilon."""


class Named(dict[str, Has]):
    """What a server has, by name; asked for another name, it says which there are."""

    def __missing__(self, name: object) -> NoReturn:
        raise PlanError(f"[{name!r}]: there are {', '.join(self) or 'none'}.")


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
        listed = self._listed.measurements
        return Named({told.name: RemoteMeasurement(self._transport, told, None) for told in listed})

    @cached_property
    def data(self) -> Mapping[str, RemoteCollection]:
        """The data sets of which questions may be asked, by name."""
        asked = [data_set for data_set in self._listed.data if data_set.questions]
        return Named({data_set.name: self._collection(data_set) for data_set in asked})

    @cached_property
    def releases(self) -> Mapping[str, RemoteRelease]:
        """The published releases that the server serves, by name; reading them is free."""
        return Named({name: RemoteRelease(self._transport, name) for name in self._listed.releases})

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

        fits = {fit_.name: fit_ for fit_ in self._listed.fits}
        if name not in fits:
            raise PlanError(f"fit({name!r}): there are {', '.join(fits) or 'none'}.")
        return reconcile(self.measurements[fits[name].cdf], self.measurements[fits[name].sequence])

    def quote_sql(self, query: str, epsilon: Amount | None = None, **options: Any) -> RemoteQuote:
        """What `sql` would cost, and what is left then; nothing is charged."""
        price = self._sql(query, epsilon, options, dry=True).price
        assert price is not None  # noqa: S101  a dry question is answered by its price
        return RemoteQuote(price)

    def sql(self, query: str, epsilon: Amount | None = None, **options: Any) -> RemoteAnswer:
        """Answer one SELECT over the data sets, which are tables by their names; see `wpinq.sql`.

        Args:
            query: The query.
            epsilon: What it may cost.
            **options: `within`, `rho`, `mechanism`, `delta`, `keys`, `bounds`, `at_most` (up to the curator's) and
                `name`, as `wpinq.sql` takes them.

        Raises:
            PlanError, BudgetError, SourceError: See `RemoteCollection.measure`.
        """
        return RemoteAnswer(self._sql(query, epsilon, options, dry=False))

    def _sql(self, query: str, epsilon: Amount | None, options: Mapping[str, Any], *, dry: bool) -> wire.Answered:
        if odd := sorted(set(options) - OPTIONS):
            told = "quote_sql(...) tells the price" if odd[0] == "dry" else f"there are {', '.join(sorted(OPTIONS))}"
            raise PlanError(f"sql({odd[0]}=...): cannot be sent to a server; {told}.")
        amounts = {"epsilon": epsilon, **{name: options.get(name) for name in ("within", "rho", "delta")}}
        body = {name: str(exact(amount, f"sql({name}=...)")) for name, amount in amounts.items() if amount is not None}
        body |= {"mechanism": options["mechanism"]} if options.get("mechanism") is not None else {}
        keys = options.get("keys")
        return self._transport.ask("/api/sql", wire.Answered, {
            "query": query, "dry": dry, **body, "name": options.get("name"),
            "at_most": options.get("at_most"),
            "keys": None if keys is None else [as_json(key) for key in keys],
            "bounds": {name: [str(exact(end, "sql(bounds=...)")) for end in ends]
                       for name, ends in (options.get("bounds") or {}).items()},
        })  # fmt: skip

    def _collection(self, data_set: wire.DataTold) -> RemoteCollection:
        kinds = {column.name: None if column.type == Kind.ANY.value else column.type for column in data_set.columns}
        here = protect([], LIMITLESS, delta="0.5", columns=kinds, name=data_set.name, unit=_unit(data_set.unit))
        return RemoteCollection(here._node, self._transport, Sent("table", (), {"name": data_set.name}))

    def __repr__(self) -> str:
        return f"{self._transport!r}: {', '.join((*self.data, *self.measurements)) or 'nothing'}"


def _unit(unit: wire.Unit | None) -> Unit:
    """Whom answers protect, as collections here hold it."""
    if unit is None:
        return Unit()
    per = next(iter(unit.per.items()), None)
    return users(unit.column, unit.at_most, per=per, shared=unit.shared, period=unit.period, at=unit.at, zone=unit.zone)
