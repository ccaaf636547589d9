"""SQL over protected tables: one SELECT, translated into the same plans that Python writes.

`README.md` says what each file knows.
"""

from __future__ import annotations

from wpinq.query.answer import sql
from wpinq.query.prepare import prepare
from wpinq.query.statement import Statement

__all__ = ["Statement", "prepare", "sql"]
