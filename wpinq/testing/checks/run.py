"""Run the checks of wpinq itself, each in a process of its own, on the package and on copies with a fault in them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wpinq.errors import installed, lacking
from wpinq.testing.checks import choices, losses, names, operators, samplers, spending, trees
from wpinq.testing.checks.plants import PLANTS, Plant, planted
from wpinq.testing.checks.report import Found, Report
from wpinq.testing.checks.result import Result

CHECKS: dict[str, Callable[[float], Result]] = {
    "law of geometric noise": samplers.geometric,
    "law of laplace noise": samplers.fine,
    "law of gaussian noise": samplers.gaussian,
    "each noise is drawn once": samplers.once,
    "delta of a threshold": samplers.threshold,
    "law of choices": choices.choices,
    "law of selections": names.partitions,
    "delta and loss of weighted selections": names.weighted,
    "noise of counting trees": trees.trees,
    "loss of neighbours": losses.losses,
    "loss, by JAX Privacy's auditor": losses.by_others,
    "stability, as defined": operators.defined,
    "stability, as computed": operators.computed,
    "charges of a ledger": spending.spending,
}
NEEDS = {"loss, by JAX Privacy's auditor": "audit"}
"""The extra that a check needs."""
LONG = {"law of choices", "stability, as defined", "stability, as computed", *NEEDS}
"""What takes longest begins first."""
PACKAGE = Path(__file__).parents[2]
MINUTES = 2
"""What all checks and plants take on two cores that have little else to do, at the most."""
PLANTED = 0.3
"""How much of a check is run on a plant: a fault of the size of these shows in less than what the check tries."""
PATIENCE = 20
"""Minutes after which a check has no end, for each minute that was asked for."""


def many() -> int:
    """How many checks and plants there are, at the most."""
    return len(CHECKS) + len(PLANTS)


def audited(minutes: float = MINUTES, progress: Callable[[int], None] = lambda _: None) -> Report:
    """Run all checks, and each planted fault against the check that must find it.

    Args:
        minutes: About how long, and so how many draws and pairs; what is planted takes the same time whatever this is.
        progress: Is called with 1 after each.
    """
    begun, effort = time.monotonic(), minutes / MINUTES
    absent = {name: text for name, extra in NEEDS.items() if (text := lacking(extra))}
    there = [name for name in CHECKS if name not in absent]
    plants = {name: plant for name, plant in PLANTS.items() if plant.check not in absent}
    limit = 60 * PATIENCE * max(minutes, 1)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        ordered = sorted(there, key=lambda name: name not in LONG)
        results = {name: pool.submit(checked, PACKAGE, name, effort, limit) for name in ordered}
        tried = {name: pool.submit(found, plant, limit) for name, plant in plants.items()}
        futures: list[Future[Any]] = [*results.values(), *tried.values()]
        for future in futures:
            future.add_done_callback(lambda _: progress(1))
        try:
            wait(futures)
        except BaseException:  # what waits for its turn is left; what runs is told by the terminal too
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Report(
        version=installed(), python=platform.python_version(), minutes=minutes, seconds=time.monotonic() - begun,
        checks={name: results[name].result() for name in there},
        plants={name: future.result() for name, future in tried.items()},
        absent=absent,
    )  # fmt: skip


def checked(package: Path, name: str, effort: float, limit: float) -> Result:
    """One check of a package, in a process of its own; what does not end or answer has broken.

    As many run at once as there are cores, so Polars has one thread in each: frames are small.
    """
    broke = partial(Result, passed=False, tried=0, of="", broke=True)
    command = [sys.executable, "-m", "wpinq.testing.checks", name, repr(effort)]
    paths = os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")]))
    apart = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    env = {"POLARS_MAX_THREADS": "1", **os.environ, **apart}
    with TemporaryDirectory(prefix="wpinq-audit-") as folder:
        try:
            done = subprocess.run(  # noqa: S603  it is this package, or a copy of it
                command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return broke(text=f"it did not end within {limit:.0f} seconds")
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
        if Path(answer.pop("package")) != package:
            return broke(text="another wpinq was loaded than the one to check")
        return Result(**answer)
    except (ValueError, IndexError, KeyError, TypeError):
        return broke(text=f"it ended with {done.returncode} and no answer: {_last(done.stderr)}")


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["nothing was said"])[-1][:200]


def found(plant: Plant, limit: float) -> Found:
    """Whether a planted fault is found in a copy of the package: its check fails, and does not merely break."""
    with TemporaryDirectory(prefix="wpinq-audit-") as folder:
        copy = Path(folder).resolve() / "wpinq"
        try:
            text = planted(PACKAGE, plant)
            shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("docs", "*.md"))
            file = copy / plant.file
            file.unlink()
            file.write_text(text, "utf-8")
        except (OSError, ValueError) as error:
            return Found(plant.what, plant.check, False, f"it could not be planted: {error}")
        result = checked(copy, plant.check, PLANTED, limit)
    caught = not result.passed and not result.broke
    return Found(plant.what, plant.check, caught, result.text)


def alone(name: str, effort: float) -> Result:
    """One check in this process; what it raises is a result too, by its kind and message."""
    try:
        return CHECKS[name](effort)
    except Exception as error:  # noqa: BLE001  the product may be broken in any way
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Result(passed=False, tried=0, of="", text=text, broke=True)


def answer(arguments: Iterable[str]) -> str:
    """What a process of a check prints: the result, and which package it is of."""
    name, effort = arguments
    return json.dumps({**asdict(alone(name, float(effort))), "package": str(PACKAGE)})
