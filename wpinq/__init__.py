"""Publish counts about people without exposing them: a streaming dataflow engine in the wPINQ style.

The names below are the public face; each is loaded when it is first used, so that importing wpinq costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpinq.lazy import late as _late
from wpinq.lazy import provide as _provide

if TYPE_CHECKING:
    from wpinq import aggregates, degrees, graphs
    from wpinq.aggregates import loss, suggest_bound, suggest_bounds
    from wpinq.aggregates.budget_split import plan_budget
    from wpinq.apps.remote.client import connect
    from wpinq.collection import Collection
    from wpinq.core.functions.versioned import versioned
    from wpinq.core.ledger.rows.secret import Secret
    from wpinq.core.measurements.answer import Answer
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.unit import Unit, users
    from wpinq.core.pricing.quote import Quote
    from wpinq.core.state.memory import limit_memory
    from wpinq.distributed.processes import processes
    from wpinq.distributed.spark import spark
    from wpinq.errors import (
        BinError,
        BudgetError,
        ChangedError,
        EngineError,
        ExactnessError,
        InternalError,
        LedgerError,
        NotReadyError,
        PlanError,
        SourceError,
        UntraceableError,
        WpinqError,
    )
    from wpinq.protection import budget, protect
    from wpinq.query import consistent, sql
    from wpinq.query.crosstabs.crosstab import table
    from wpinq.query.crosstabs.planning import plan_tables
    from wpinq.sources.databases.postgres import postgres
    from wpinq.sources.databases.sqlite import sqlite
    from wpinq.streaming.collection import Live
    from wpinq.streaming.source import live
    from wpinq.streaming.topic import kafka

_HOMES = {
    "aggregates": "loss suggest_bound suggest_bounds",
    "aggregates.budget_split": "plan_budget",
    "apps.remote.client": "connect",
    "collection": "Collection",
    "core.functions.versioned": "versioned",
    "core.ledger.rows.secret": "Secret",
    "core.measurements.answer": "Answer",
    "core.measurements.measurement": "Measurement",
    "core.plan.unit": "Unit users",
    "core.pricing.quote": "Quote",
    "core.state.memory": "limit_memory",
    "distributed.processes": "processes",
    "distributed.spark": "spark",
    "errors": "BinError BudgetError ChangedError EngineError ExactnessError InternalError LedgerError NotReadyError"
              " PlanError SourceError UntraceableError WpinqError",
    "protection": "budget protect",
    "query.adding_up": "consistent",
    "query.answer": "sql",
    "query.crosstabs.crosstab": "table",
    "query.crosstabs.planning": "plan_tables",
    "sources.databases.postgres": "postgres",
    "sources.databases.sqlite": "sqlite",
    "streaming.collection": "Live",
    "streaming.source": "live",
    "streaming.topic": "kafka",
}  # fmt: skip
"""For each file, the names of it that are here."""
__all__ = [
    "Answer", "BinError", "BudgetError", "ChangedError", "Collection", "EngineError", "ExactnessError", "InternalError",
    "LedgerError", "Live", "Measurement", "NotReadyError", "PlanError", "Quote", "Secret", "SourceError", "Unit",
    "UntraceableError", "WpinqError", "aggregates", "budget", "connect", "consistent", "degrees", "graphs", "kafka",
    "limit_memory", "live", "loss", "plan_budget", "plan_tables", "postgres", "processes", "protect", "spark", "sql",
    "sqlite", "suggest_bound", "suggest_bounds", "table", "users", "versioned",
]  # fmt: skip
_ABOVE = {
    "html.numbers": "framed",
    "html.written": "csv_bytes in_text json_text",
    "postprocess.charts": "chart",
    "show.answers": "answer_chart answer_html answer_text",
    "show.explain": "explain_measurement explain_plan quote_text",
    "show.notebook": "budget_html measurement_html measurement_text quote_html",
    "sources.public": "public_table",
}  # fmt: skip
"""For each file that stands above the core, what the core asks of it."""
_provide(_ABOVE)


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = _late(__name__, _HOMES, ("aggregates", "degrees", "graphs"))
