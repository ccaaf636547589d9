"""A dataflow script in several processes: its plans travel as plans; where one cannot, the script travels as a script.

Then each process runs the script anew over a collection that it cannot charge for, and takes the plans of the same
names. What they mean is compared, and where that cannot be told, the text of the script. The script's words are said
once, by the first process.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.apps.scripts import WORKER
from wpinq.core import Job, Node, fingerprints, sources
from wpinq.distributed.data import data_from_json
from wpinq.distributed.plans import plans_from_json, plans_to_json, rebuilt
from wpinq.distributed.processes import Processes
from wpinq.errors import EngineError, PlanError

if TYPE_CHECKING:
    from wpinq import Measurement
    from wpinq.collection import Collection
    from wpinq.distributed.data import Lent

CALL = "--processes"


class ScriptProcesses(Processes):
    """Runs the plans of a script in some processes of this machine.

    Args:
        engine: The processes, which may have started.
        script: The script.
    """

    def __init__(self, engine: Processes, script: Path) -> None:
        super().__init__(engine.number, WORKER)
        self._started.extend(engine.handed(WORKER))
        self._script = script
        self._views: Node | None = None
        self._names: dict[Node, str] = {}

    def rehearse(self, measurements: Mapping[str, Measurement]) -> None:
        """Refuse a script that several processes cannot compute; nothing was charged.

        Args:
            measurements: What the script measures of no records.

        Raises:
            PlanError: Some plan can travel neither as a plan nor with the script.
        """
        for name, measurement in measurements.items():
            why = _why(measurement.node)
            if why is None:
                continue
            if not measurement.times.once:
                raise PlanError(f"{CALL}: {name} is measured window by window or for ever, and {why}")
            if measurement.settled:
                raise PlanError(f"{CALL}: the dataflow observes {name} while it is made, and {why}")

    def begin(self, views: Collection) -> Collection:
        """Note the collection that the script is given, before it is."""
        self._views = views._node
        return views

    def know(self, measurements: Mapping[str, Measurement]) -> None:
        """Note the measurements that the script has made, by their names."""
        self._names = {measurement.node: name for name, measurement in measurements.items()}

    def check(self, roots: Sequence[Node]) -> None:
        """Refuse plans that can travel neither as plans nor with the script; nothing was charged.

        Raises:
            PlanError: There is one.
        """
        for root in roots:
            why = _why(root)
            if why is not None and (self._views is None or sources(root) != sources(self._views)):
                raise PlanError(f"{CALL}: the dataflow reads other sources than INPUT, and {why}")

    def message(self, job: Job) -> Mapping[str, Any]:
        """What the other processes are told: the plans, or the script and the names of the plans.

        Raises:
            EngineError: They can be told neither way.
        """
        if all(_why(root) is None for root in job.roots):
            return super().message(job)
        if self._views is None or not all(root in self._names for root in job.roots):
            raise EngineError(
                f"{CALL}: the script measures what it does not return, and that cannot be told to another process; "
                "return all that it measures, or run it in one process."
            )
        digests = fingerprints(*job.roots)
        return {
            "script": str(self._script.resolve()), "text": _digest(self._script),
            "views": plans_to_json([self._views]), "names": [self._names[root] for root in job.roots],
            "meant": [None if (digest := digests[root]) is None else digest.hex() for root in job.roots],
            "key": job.key.hex(),
        }  # fmt: skip


def rebuilt_from_script(message: Mapping[str, Any]) -> Job:
    """The plans that a process was told, as a job; see `ScriptProcesses.told`.

    Raises:
        SourceError: The input is not that of the first process.
        EngineError: The script makes other plans here.
    """
    if "script" not in message:
        return rebuilt(message)
    from wpinq.apps.scripts.script import load
    from wpinq.collection import Collection
    from wpinq.core import Asked, Ledger
    from wpinq.protection import LIMITLESS

    def lend(data: Mapping[str, Any]) -> Lent:
        lent = data_from_json(data)
        book = Ledger.open(None, name=lent.name, unit=lent.unit.whom, terms=Asked.of("run", None, rho=LIMITLESS))
        return data_from_json(data, book)

    script = Path(message["script"])
    (views,) = plans_from_json(message["views"], lend)
    with contextlib.redirect_stdout(io.StringIO()):
        made = load(str(script))(Collection(views))
    if _digest(script) != message["text"] or not made.keys() >= set(message["names"]):
        raise EngineError(CHANGED)
    roots = [made[name].node for name in message["names"]]
    digests = fingerprints(*roots)
    if [None if (digest := digests[root]) is None else digest.hex() for root in roots] != message["meant"]:
        raise EngineError(CHANGED)
    return Job(roots, bytes.fromhex(message["key"]))


CHANGED = "the script makes other measurements each time it is run, or was changed meanwhile; nothing was answered."


def _why(root: Node) -> str | None:
    """Why a plan does not travel; None if it does."""
    try:
        plans_to_json([root])
    except PlanError as error:
        return str(error)
    return None


def _digest(script: Path) -> str:
    return blake2b(script.read_bytes(), digest_size=32).hexdigest()
