"""How many cores this process may use, and how many threads are worth it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

MOST_THREADS = 16
THREADS = "WPINQ_THREADS"
"""A name in the environment: how many threads a process may have at once; worker processes are told their part."""
QUOTAS = (("/sys/fs/cgroup/cpu.max",), ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"))
"""Where a container says which part of the machine it has: a quota and a period, in versions 2 and 1 of its groups."""


def cores() -> int:
    """How many threads of this process are busy at once."""
    setting = os.environ.get(THREADS, "")
    most = int(setting) if setting.isdecimal() else MOST_THREADS
    return max(1, min(machine(), most))


@cache
def machine() -> int:
    """How many cores this process may use: those that it is bound to, and no more than its container's quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for paths in QUOTAS:
        try:
            quota, period = map(float, " ".join(Path(path).read_text() for path in paths).split())
        except (OSError, ValueError):  # there is none: "max", or no such file
            continue
        if quota > 0 and period > 0:
            bound = min(bound, max(1, round(quota / period)))
    return bound
