"""A process that runs tasks of plans: `python -m wpinq.distributed`."""

from __future__ import annotations

from wpinq.core.engines.shuffle.worker import serve_tasks
from wpinq.distributed.data import opened
from wpinq.distributed.plans import rebuilt

if __name__ == "__main__":
    serve_tasks(rebuilt, opened)
