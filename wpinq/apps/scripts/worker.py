"""A process that runs tasks of the plans of a script: `python -m wpinq.apps.scripts.worker`."""

from __future__ import annotations

from wpinq.apps.scripts.distributed import rebuilt_from_script
from wpinq.core.engines.shuffle.worker import main

if __name__ == "__main__":
    main(rebuilt_from_script)
