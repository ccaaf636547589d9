"""Runs on many cores: what other processes are told of a plan, and the engines that run it there. See README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wpinq.distributed.processes import Processes


def engine_of(processes: int, worker: str | None = None) -> Processes | None:
    """What computes answers in so many processes; None where this one alone does. See `Processes`."""
    if processes == 1:
        return None
    from wpinq.distributed.processes import WORKER, Processes  # which loads what starts processes

    return Processes(processes, worker or WORKER)
