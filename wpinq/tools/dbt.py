"""A plug-in for dbt-duckdb: a source whose table is a private answer, with its price where its documentation is.

The plug-in's `config` in `profiles.yml` protects records; the `meta` of a source's table asks of them, in SQL, where
their table is `data`. What dbt's documentation shows as the price is what is charged: both are that `meta`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dbt.adapters.duckdb.plugins import BasePlugin

from wpinq.core.plan.unit import users
from wpinq.errors import PlanError, redacted
from wpinq.protection import protect
from wpinq.query.answer import sql

if TYPE_CHECKING:
    import pyarrow as pa
    from dbt.adapters.duckdb.utils import SourceConfig

ASKED = ("epsilon", "rho", "delta", "within", "mechanism", "keys", "bounds", "loss", "name", "analyst")
"""Of `meta`, what `wpinq.sql` takes beside `sql`."""


class Plugin(BasePlugin):
    """What dbt-duckdb calls."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Take the `config` of the plug-in.

        Args:
            plugin_config: `source`, and what else `wpinq.protect` takes; `unit` with what `wpinq.users` takes, as in
                `unit: {column: user, at_most: 20}`.

        Raises:
            PlanError: There is no source, or no ledger: dbt runs again and again; or what else it has is not taken.
        """
        self._options = dict(plugin_config)
        if missing := {"source", "ledger"} - set(self._options):
            raise PlanError(f"wpinq.tools.dbt: its config says no {' and no '.join(sorted(missing))}.")
        _refuse_others(self._options, protect, "config")
        if self._options.get("unit") is not None:
            _refuse_others(self._options["unit"], users, "unit")

    def load(self, source_config: SourceConfig) -> pa.Table:
        """Answer the question of a source's table; that of before is answered as before, at no further cost.

        Raises:
            PlanError: Its `meta` has no `sql`, or asks what cannot be answered; nothing was charged.
            BudgetError: It costs more than is left; nothing was charged.
            SourceError, EngineError, LedgerError: The records could not be read.
        """
        meta = source_config.meta
        if not isinstance(meta.get("sql"), str):
            raise PlanError(f"source {source_config.name}: its meta has no sql: a question of the table data.")
        options = {name: meta[name] for name in ASKED if name in meta}
        return redacted("dbt", lambda: sql(meta["sql"], {"data": self._records()}, **options).to_arrow())

    def _records(self) -> Any:
        options = dict(self._options)
        unit = options.pop("unit", None)
        return protect(options.pop("source"), unit=None if unit is None else users(**unit), **options)


def _refuse_others(given: Any, call: Callable[..., Any], what: str) -> None:
    """Refuse what a call does not take.

    Raises:
        PlanError: There is such a word, or there are no words at all.
    """
    known = inspect.signature(call).parameters
    if not isinstance(given, dict):
        raise PlanError(f"wpinq.tools.dbt: {what} is a mapping, such as {{column: user, at_most: 20}}.")
    if others := [str(word) for word in given if word not in known]:
        raise PlanError(f"wpinq.tools.dbt: {what} takes no {' and no '.join(others)}; it takes {', '.join(known)}.")
