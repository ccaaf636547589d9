"""What a check of wpinq itself did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One check.

    Attributes:
        passed: Whether nothing was wrong.
        tried: How many draws, pairs, or whatever `of` names.
        of: What was counted.
        text: What was wrong; where nothing was, what was looked at.
        alarm: The probability, at the most, that a right product fails.
        broke: Whether the check itself could not be carried out. What broke has not passed.
    """

    passed: bool
    tried: int
    of: str
    text: str
    alarm: float = 0.0
    broke: bool = False


def judged(tried: int, of: str, problems: Sequence[str], looked: str, alarm: float = 0.0) -> Result:
    """A result from what is wrong; of many problems the first three are named."""
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return Result(not problems, tried, of, "; ".join(problems[:3]) + more if problems else looked, alarm)
