"""SQL over protected tables: one SELECT, translated into the same plans that Python writes.

tables     the protected table, and public tables as lookups of one record
clauses    which clauses are read
numbers    SUM and AVG, within declared bounds
statement  what a SELECT asks for, or why it cannot be answered
answer     measured, published, and finished by what touches released numbers only
"""

from __future__ import annotations

from wpinq.query.answer import Answer, sql
from wpinq.query.statement import Statement, prepare

__all__ = ["Answer", "Statement", "prepare", "sql"]
