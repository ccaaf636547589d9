"""`--status FILE`: how a stream is doing, in exact counts, for its curator alone."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.storage import appearing

if TYPE_CHECKING:
    from wpinq.streaming import Live
    from wpinq.streaming.answers import Answers

FOR = "the curator alone: counts of records are exact and no noise protects them; never publish them"


def write_status(path: Path, views: Live, answers: Answers) -> None:
    """Replace the file, which only its owner can read; a stream goes on where it cannot be written."""
    received, state = views._received, views._data.ledger.state()
    promise, spent = state.promise, state.spent
    content = {
        "for": FOR,
        "written": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "epoch": views.epoch,
        "late": answers._late,
        "offered": received.offered,
        "records": received.records,
        "dropped": received.offered - received.records,
        "nulls": dict(received.nulls),
        "epsilon": {"spent": None if spent.gaussian else float(spent.epsilon), "left": float(promise.left(spent))},
        **(
            {promise.kind: {"spent": float(spent.divergence), "left": float(promise.limit - spent.divergence)}}
            if spent.curves
            else {}
        ),
        "budget": promise.text,
        "sinks": answers.delivery.state(),
    }
    with suppress(OSError), appearing(path) as file:
        file.write(json.dumps(content, indent=1).encode() + b"\n")
