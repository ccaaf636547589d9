"""The measurements that are methods of collections, each loaded when it is first used; as for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpinq.lazy import late

if TYPE_CHECKING:
    from wpinq.core.measurements.measure import explain, measure, quote
    from wpinq.core.measurements.select import select

__all__ = ["explain", "measure", "quote", "select"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = late(__name__, {
        **dict.fromkeys(("explain", "measure", "quote"), "core.measurements.measure"),
        "select": "core.measurements.select",
    })  # fmt: skip
