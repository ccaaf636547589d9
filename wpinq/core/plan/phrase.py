"""What a charge is named by where nobody named it: the calls of its plan, as Python has them, or the SQL of a query.

It is the asker's own text, cut to a size, and says nothing of records. It decides nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wpinq.core.plan.node import Node

LONGEST = 200
"""Characters of a name that a ledger keeps of a text."""
HOW = re.compile(r"(^|\(|: )(?:columns|polars|traced): ")
"""How a function runs, which is for `explain` alone."""


def phrase(node: Node, last: str = "") -> str:
    """The calls that made a plan, in their order, without those that only a unit or the engine brought.

    Of what joins others the first is followed. Of a long plan the last calls are told.

    Args:
        node: The plan.
        last: What was asked of it: an aggregate.

    >>> from wpinq.testing import protected
    >>> views = protected(user="text", page="text")
    >>> phrase(views._node), phrase(views._node, "count()"), phrase(views.filter("page <> 'a'").map("page")._node)
    ('all records', 'count()', 'filter([(col("page")) != ("a")]).map(page)')
    """
    calls = [HOW.sub(r"\1", last)] if last else []
    size = len(last)
    while node.inputs and size <= LONGEST:
        if not node.silent:
            call = HOW.sub(r"\1", node.title)
            calls.append(call if "(" in call else f"{call}()")
            size += len(calls[-1]) + 1
        node = node.inputs[0]
    text = ".".join(reversed(calls)) or "all records"
    if len(calls) == 1 or len(text) <= LONGEST:
        return shortened(text)
    return f"...{text[3 - LONGEST :]}"


def shortened(text: str) -> str:
    """A text in one line, cut to a size.

    >>> shortened("SELECT COUNT(*)   FROM views"), len(shortened("x" * 1000))
    ('SELECT COUNT(*) FROM views', 200)
    """
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
