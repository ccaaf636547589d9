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
    from wpinq.core.ledger.secret import Secret
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
    from wpinq.query import consistent, plan_tables, sql, table
    from wpinq.sources.databases.postgres import postgres
    from wpinq.sources.databases.sqlite import sqlite
    from wpinq.streaming import Live, live
    from wpinq.streaming.kafka import kafka

_HOMES = {
    "Answer": "core.measurements.answer",
    "Collection": "collection",
    "Live": "streaming",
    "Measurement": "core.measurements.measurement",
    "Quote": "core.pricing.quote",
    "Secret": "core.ledger.secret",
    "Unit": "core.plan.unit",
    "kafka": "streaming.kafka",
    "limit_memory": "core.state.memory",
    "live": "streaming",
    "loss": "aggregates",
    "budget": "protection",
    "consistent": "query.adding_up",
    "connect": "apps.remote.client",
    "plan_budget": "aggregates.budget_split",
    "plan_tables": "query.table_planning",
    "postgres": "sources.databases.postgres",
    "processes": "distributed.processes",
    "protect": "protection",
    "spark": "distributed.spark",
    "sql": "query.answer",
    "sqlite": "sources.databases.sqlite",
    "table": "query.crosstab",
    "suggest_bound": "aggregates",
    "suggest_bounds": "aggregates",
    "users": "core.plan.unit",
    "versioned": "core.functions.versioned",
    **dict.fromkeys(
        (
            "BinError", "BudgetError", "ChangedError", "EngineError", "ExactnessError", "InternalError", "LedgerError",
            "NotReadyError", "PlanError", "SourceError", "UntraceableError", "WpinqError",
        ),
        "errors",
    ),
}  # fmt: skip

__all__ = [
    "Answer",
    "BinError",
    "BudgetError",
    "ChangedError",
    "Collection",
    "EngineError",
    "ExactnessError",
    "InternalError",
    "LedgerError",
    "Live",
    "Measurement",
    "NotReadyError",
    "PlanError",
    "Quote",
    "Secret",
    "SourceError",
    "Unit",
    "UntraceableError",
    "WpinqError",
    "aggregates",
    "budget",
    "connect",
    "consistent",
    "degrees",
    "graphs",
    "kafka",
    "limit_memory",
    "live",
    "loss",
    "plan_budget",
    "plan_tables",
    "postgres",
    "processes",
    "protect",
    "spark",
    "sql",
    "sqlite",
    "suggest_bound",
    "suggest_bounds",
    "table",
    "users",
    "versioned",
]


ABOVE = {
    "answer_chart": "show.answers", "answer_frame": "show.answers", "answer_html": "show.answers",
    "answer_text": "show.answers", "budget_html": "show.notebook", "chart": "postprocess.charts",
    "explain_measurement": "show.explain", "explain_plan": "show.explain", "measurement_html": "show.notebook",
    "measurement_text": "show.notebook", "public_table": "sources.public", "quote_html": "show.notebook",
    "quote_text": "show.explain", "replacing": "postprocess.degrees.synthesis.writers",
}  # fmt: skip
"""What the core asks of the rooms that stand on it, and where that is."""
_provide(ABOVE)


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = _late(__name__, _HOMES, ("aggregates", "degrees", "graphs"))
