"""The core: what carries the guarantee. It knows nothing of programs, pictures and the forms of files.

The names below are its face: all that programs (`wpinq.apps`) import of it. Each is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpinq.lazy import late

if TYPE_CHECKING:
    from wpinq.core.engines import engine_name
    from wpinq.core.engines.job import Engine, Job
    from wpinq.core.engines.shuffle.worker import serve_tasks
    from wpinq.core.functions.bind import bind
    from wpinq.core.functions.function import Function
    from wpinq.core.functions.isolate import dropping
    from wpinq.core.functions.sql.calls import listed
    from wpinq.core.functions.traced.columnar import Columnar
    from wpinq.core.functions.traced.expression import Expression
    from wpinq.core.functions.traced.trace import Formula
    from wpinq.core.functions.tree import question_size, total_size
    from wpinq.core.ledger.budget import Allowance
    from wpinq.core.ledger.ledger import Ledger
    from wpinq.core.ledger.open import Asked
    from wpinq.core.ledger.rows.chain import Change
    from wpinq.core.ledger.stores.file import ENDS
    from wpinq.core.ledger.sums.accountant import Entry
    from wpinq.core.ledger.sums.cost import Charge, Composition, write_amount
    from wpinq.core.ledger.sums.privacy_filter import PURE, RENYI, RHO, Promise
    from wpinq.core.ledger.sums.renyi import epsilon_of
    from wpinq.core.ledger.versions import rendered
    from wpinq.core.measurements.answer import LEVEL, About
    from wpinq.core.measurements.query import ChargedQuery, charge, commit
    from wpinq.core.operators.contribution.contributions import contributions
    from wpinq.core.operators.keys import keyed
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.plan.node import Node, Source, fingerprints, rewrite, sources, steps
    from wpinq.core.plan.phrase import biases
    from wpinq.core.pricing.privacy_cost import GAUSSIAN, Terms
    from wpinq.core.pricing.question_limits import check_limits
    from wpinq.core.records.bins import bin_blocks, bin_frame
    from wpinq.core.records.clocks import instant_of
    from wpinq.core.records.kinds import declared_kinds
    from wpinq.core.records.reader import Reader
    from wpinq.core.records.schema import Column, Kind, Schema, in_columns, polars_type
    from wpinq.core.records.text import parse_column
    from wpinq.core.runs.chosen_rows import ChosenRows, columns_read
    from wpinq.core.runs.run import settle

_HOMES = {
    "core.engines": "engine_name",
    "core.engines.job": "Engine Job",
    "core.engines.shuffle.worker": "serve_tasks",
    "core.functions.bind": "bind",
    "core.functions.function": "Function",
    "core.functions.isolate": "dropping",
    "core.functions.tree": "question_size total_size",
    "core.functions.sql.calls": "listed",
    "core.functions.traced.columnar": "Columnar",
    "core.functions.traced.expression": "Expression",
    "core.functions.traced.trace": "Formula",
    "core.ledger.budget": "Allowance",
    "core.ledger.ledger": "Ledger",
    "core.ledger.open": "Asked",
    "core.ledger.rows.chain": "Change",
    "core.ledger.stores.file": "ENDS",
    "core.ledger.sums.accountant": "Entry",
    "core.ledger.sums.cost": "Charge Composition write_amount",
    "core.ledger.sums.privacy_filter": "PURE Promise RENYI RHO",
    "core.ledger.sums.renyi": "epsilon_of",
    "core.ledger.versions": "rendered",
    "core.measurements.answer": "About LEVEL",
    "core.measurements.query": "ChargedQuery charge commit",
    "core.operators.contribution.contributions": "contributions",
    "core.operators.keys": "keyed",
    "core.plan.phrase": "biases",
    "core.plan.dataset": "DataSet",
    "core.plan.node": "Node Source fingerprints rewrite sources steps",
    "core.pricing.privacy_cost": "GAUSSIAN Terms",
    "core.pricing.question_limits": "check_limits",
    "core.records.bins": "bin_blocks bin_frame",
    "core.records.clocks": "instant_of",
    "core.records.kinds": "declared_kinds",
    "core.records.reader": "Reader",
    "core.records.schema": "Column Kind Schema in_columns polars_type",
    "core.records.text": "parse_column",
    "core.runs.chosen_rows": "ChosenRows columns_read",
    "core.runs.run": "settle",
}
"""For each file of the core, the names of it that programs use."""
__all__ = sorted(name for names in _HOMES.values() for name in names.split())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = late(__name__, _HOMES)
