"""SQL over protected tables: one SELECT, translated into the same plans that Python writes.

tables     the protected table, and public tables as lookups of one record
clauses    which clauses are read
reach      declared bounds, and what follows from them for expressions
numbers    sums, means, spreads and ranks, within these bounds
asked      what a SELECT asks for
statement  how it is read, or why it cannot be answered
answer     measured, published, and finished by what touches released numbers only
"""

from __future__ import annotations

from wpinq.query.answer import sql
from wpinq.query.prepare import prepare
from wpinq.query.statement import Statement

__all__ = ["Statement", "prepare", "sql"]
