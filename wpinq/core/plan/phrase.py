"""A plan in words: the name of a charge that nobody named, and the bias of an answer.

The name is the calls of the plan, as Python has them, or the SQL of a query. It is the analyst's own text, cut to a
size; it says nothing of records and decides nothing. The bias is what bounds, clamping and weights keep out of an
answer. It is no noise, and no interval covers it.
"""

from __future__ import annotations

import re

from wpinq.core.plan.node import Node, steps

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


def biases(root: Node) -> tuple[str, ...]:
    """What the steps of a plan keep out of its answers, each once."""
    result = [node.bias for node in steps(root)]
    return tuple(dict.fromkeys(item for item in result if item))
