"""A process that runs tasks of the plans of a script: `python -m wpinq.apps.scripts.worker`."""

from __future__ import annotations

from wpinq.apps.scripts.distributed import rebuilt_from_script
from wpinq.core import serve_tasks
from wpinq.distributed.data import opened

if __name__ == "__main__":
    serve_tasks(rebuilt_from_script, opened)
