"""A process that runs tasks of plans: `python -m wpinq.distributed`."""

from __future__ import annotations

from wpinq.core.engines.shuffle.worker import serve_tasks
from wpinq.distributed.processes import opened, rebuilt

if __name__ == "__main__":
    serve_tasks(rebuilt, opened)
