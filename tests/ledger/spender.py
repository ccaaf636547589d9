"""A process that spends, is killed, or runs out of room; started by the tests, prints JSON."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

from wpinq.core.ledger import Asked, Charge, Cost, Ledger, charge_all, replay, transaction
from wpinq.core.ledger.stores.address import ledger_path
from wpinq.core.ledger.sums import accountant
from wpinq.core.ledger.versions import Pin
from wpinq.errors import BudgetError, LedgerError

CROSSING = 7
"""Questions of one act that has several checkpoints."""
LOOP = Cost("1/100000", curve=(Fraction(1, 100_000), Fraction(1, 100_000)))
TRACED = {"file.py", "chain.py", "transaction.py", "ledger.py", "secret.py", "replay.py", "checkpoint.py", "several.py",
          "storage.py", "postgres.py", "anchor.py", "server.py"}  # fmt: skip
"""The files that lock, write and decide."""
CONTENT = Pin("1", "views", "csv", b"content")


def checkpoints(every: int) -> None:
    """Have one row in so many be a checkpoint."""
    for module in (accountant, replay, transaction):
        module.EVERY = every  # type: ignore[attr-defined]


def measured(ledger: Ledger, many: int) -> None:
    """Charge questions, and pin what they are asked of, as one act."""
    charge_all([(ledger, Charge(f"{1 + n:08x}", (Cost(Fraction(9, 10 * many)),), "1", "at step")) for n in range(many)],
               [(ledger, CONTENT)])  # fmt: skip


def located(path: str) -> Path:
    """The path, or what stands for a ledger in a database, with what a test has added to it."""
    url = os.environ.get("LEDGER")
    return Path(path) if url is None else ledger_path(url + path.removeprefix(os.environ["ANCHOR"]))


def opened(path: str) -> Ledger:
    accounting = os.environ.get("ACCOUNTING", "pure")
    asked = Asked.of("protect", 1, 0 if accounting == "pure" else os.environ.get("DELTA"), accounting=accounting)
    return Ledger.open(located(path), name="views", unit="record", terms=asked)


def spend(path: str, who: str, epsilon: str) -> list[str]:
    """Spend until nothing is left, rho of Gaussian noise where the ledger takes it; the questions that were granted."""
    ledger, granted = opened(path), []
    cost = Cost(epsilon) if ledger.curves is False else Cost(0, rho=epsilon)
    for number in range(10_000):
        question = f"{int(who):04x}{number:08x}"
        try:
            ledger.charge(question, [cost], version="1", label=who)
        except BudgetError:
            return granted
        granted.append(question)
    raise AssertionError("the budget never ended")


def some(path: str, who: str, many: str) -> list[str]:
    """Spend so often; the questions."""
    ledger, questions = opened(path), [f"{int(who) + 1:04x}{number:08x}" for number in range(int(many))]
    assert all(ledger.charge(one, [Cost("1/1000")], version="1", label=who) for one in questions)
    return questions


def room(path: str, limit: str) -> dict[str, Any]:
    """Spend with files limited to a size, as on a full disk; what was granted, and how it ended."""
    ledger, granted = opened(path), []
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        for number in range(10_000):
            question = f"{number:08x}"
            ledger.charge(question, [Cost("1/100000")], version="1", label="x" * 500)
            granted.append(question)
    except LedgerError as error:
        return {"granted": granted, "error": str(error)}
    raise AssertionError("the room never ended")


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Run in a child; its process and the end of the pipe that it writes to."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        work(writer)
    finally:
        os._exit(0)


def collected(child: int, reader: int) -> tuple[str, bool]:
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text, os.WIFSIGNALED(status)


def kill(path: str, rounds: str, seed: str) -> dict[str, Any]:
    """Kill a spending child at random moments; what every child was granted, and what the ledger says.

    On a machine so busy that few of them come to spend, more are killed.
    """
    moments, granted, trouble, killed = random.Random(int(seed)), [], [], 0
    opened(path)
    for turn in range(10 * int(rounds)):
        if turn >= int(rounds) and len(granted) >= 100:
            break

        def loop(writer: int, turn: int = turn) -> None:
            ledger = opened(path)
            for number in range(10_000):
                question = f"{turn:04x}{number:08x}"
                ledger.charge(question, [LOOP], version="1", label="loop")
                os.write(writer, f"{question}\n".encode())

        child, reader = forked(loop)
        time.sleep(moments.uniform(0.002, 0.06))
        os.kill(child, signal.SIGKILL)
        text, by_signal = collected(child, reader)
        killed += by_signal
        granted += [line for line in text.split("\n") if len(line) == 12]
        try:
            opened(path).remaining()
        except LedgerError as error:
            trouble.append(str(error))
    return {"granted": granted, "killed": killed, "trouble": trouble}


def steps(path: str, action: str, stride: str) -> dict[str, Any]:
    """Kill a child at its first line in the ledger's code, and at one in so many after it, until it gets through."""
    lost, step = [], 1 - int(stride)
    while True:
        step += int(stride)
        target = f"{path}{step}"
        if action != "open":
            opened(target).charge("00000000", [Cost("1/10")], version="1", label="before")

        def work(writer: int, target: str = target, step: int = step) -> None:
            ledger = None if action == "open" else opened(target)
            sys.settrace(killer(step))
            if ledger is None:
                opened(target)
            elif action == "charge":
                ledger.charge("00000001", [Cost("9/10")], version="1", label="at step")
            elif action == "measure":
                measured(ledger, 1)
            elif action == "cross":
                measured(ledger, CROSSING)
            else:
                ledger.seal("00000000", "1", b"digest")
            sys.settrace(None)
            os.write(writer, b"done")

        text, by_signal = collected(*forked(work))
        if problem := wrong(target, action, text):
            lost.append(f"step {step}: {problem}")
        if not by_signal:
            return {"steps": step - int(stride), "lost": lost, "finished": text}


def wrong(target: str, action: str, text: str) -> str:
    """What is wrong with the ledger of a killed child, if anything."""
    try:
        ledger = opened(target)
        entries = ledger.entries()
    except LedgerError as error:
        return str(error)
    charges = [entry.question for entry in entries if entry.kind == "charge"]
    seals = [entry for entry in entries if entry.kind == "seal"]
    if action in ("measure", "cross"):
        return half_measured(ledger, charges, len(seals), 1 if action == "measure" else CROSSING, text)
    before = [] if action == "open" else ["00000000"]
    if charges not in (before, [*before, "00000001"]):
        return f"charges {charges}"
    if text == "done" and action == "charge" and charges == before:
        return "granted, not charged"
    if text == "done" and action == "seal" and len(seals) != 1:
        return "sealed, not kept"
    if ledger.charge("00000001", [Cost("9/10")], version="1", label="again") != (charges == before):
        return "charged twice, or free without a charge"
    return ""


def half_measured(ledger: Ledger, charges: list[str], pins: int, many: int, text: str) -> str:
    """What is wrong where questions and a pin were one act: all of it is there, or nothing."""
    if (len(charges), pins) not in ((1, 0), (1 + many, 1)):
        return f"{len(charges) - 1} of {many} charges, {pins} pins"
    if text == "done" and not pins:
        return "granted, not charged"
    before = ledger.spent()[0]
    measured(ledger, many)
    if ledger.spent()[0] != 1 or (pins and before != 1) or len(ledger.entries()) != ledger.state().rows:
        return "charged twice, or free without a charge"
    return ""


def killer(step: int) -> Callable[[FrameType, str, Any], Any]:
    """Kill this process at the `step`-th line of `TRACED`."""
    seen = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename.rpartition("/")[2] not in TRACED:
            return None
        if event == "line":
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if "EVERY" in os.environ:
        checkpoints(int(os.environ["EVERY"]))
    print(json.dumps({"spend": spend, "some": some, "room": room, "kill": kill, "steps": steps}[command](*words)))
