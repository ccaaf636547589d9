"""SQL over protected tables: one SELECT, translated into the same plans that Python writes."""

from __future__ import annotations

from wpinq.query.adding_up import consistent
from wpinq.query.answer import Quoted, quoted, sql
from wpinq.query.contribution import rebounded, settling
from wpinq.query.prepare import prepare
from wpinq.query.quoted_select import WrittenKeys
from wpinq.query.united import divided, prepared

__all__ = [
    "Quoted", "WrittenKeys", "consistent", "divided", "prepare", "prepared", "quoted", "rebounded", "settling", "sql",
]  # fmt: skip
