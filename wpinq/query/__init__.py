"""SQL over protected tables: one SELECT, translated into the same plans that Python writes."""

from __future__ import annotations

from wpinq.query.adding_up import consistent
from wpinq.query.answer import Quoted, quoted, sql
from wpinq.query.contribution import rebounded, settling
from wpinq.query.crosstab import table
from wpinq.query.prepare import prepare
from wpinq.query.quoted_select import QuotedSql, WrittenKeys
from wpinq.query.statement import Statement
from wpinq.query.table_answer import Table
from wpinq.query.table_plan import PlannedTables, TablePlan
from wpinq.query.table_planning import plan_tables
from wpinq.query.united import QuotedUnion, divided, prepared

__all__ = [
    "PlannedTables", "Quoted", "QuotedSql", "QuotedUnion", "Statement", "Table", "TablePlan", "WrittenKeys",
    "consistent", "divided", "plan_tables", "prepare", "prepared", "quoted", "rebounded", "settling", "sql", "table",
]  # fmt: skip
