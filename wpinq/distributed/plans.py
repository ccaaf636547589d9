"""Plans as JSON and back: their steps, functions and data sets, as a closed grammar. No code and no secret travels.

What is told of a data set are its public facts, how its files are opened, and the keys that identify and sample its
records (privacy rule 37). Whoever rebuilds the plans compares what they mean, so that two processes never compute
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from wpinq.core.engines.job import Job
from wpinq.core.functions.function import Function
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, fingerprints, sources, steps
from wpinq.distributed.data import Lent, data_from_json, data_to_json
from wpinq.distributed.functions import function_from_json, function_to_json
from wpinq.distributed.values import Json, UnwritableError, from_json, members, record
from wpinq.errors import InternalError, PlanError

OPERATORS, INSIDE = "wpinq.core.operators", "wpinq.core.operators.contribution"
STEPS: dict[str, str] = {
    **dict.fromkeys(("Align", "Coarse"), f"{OPERATORS}.resolution"),
    **dict.fromkeys(("Bound", "BoundBySource"), f"{INSIDE}.sample"),
    **dict.fromkeys(("Cells", "FineCells"), "wpinq.aggregates.scale"),
    "Derive": f"{INSIDE}.preprocess",
    "Distinct": f"{OPERATORS}.distinct",
    "Dropped": "wpinq.aggregates.clipping_loss",
    "Extend": f"{OPERATORS}.keys",
    "Extreme": f"{OPERATORS}.union",
    "Fill": f"{OPERATORS}.semijoin",
    "Filter": f"{OPERATORS}.filter",
    "GroupBy": f"{OPERATORS}.group_by",
    "GroupColumns": f"{OPERATORS}.group_columns",
    "Join": f"{OPERATORS}.join",
    **dict.fromkeys(("JoinRows", "LeftRows"), f"{OPERATORS}.join_rows"),
    "Lengths": "wpinq.aggregates.lengths",
    "LookUp": f"{OPERATORS}.look_up",
    "Map": f"{OPERATORS}.map",
    "Moments": "wpinq.aggregates.moments",
    "Part": f"{OPERATORS}.partition",
    "Scores": "wpinq.aggregates.scoring",
    "Share": f"{INSIDE}.share",
    "Shave": f"{OPERATORS}.shave",
    "Source": "wpinq.core.plan.node",
    "Sum": f"{OPERATORS}.concat",
    "Weigh": f"{INSIDE}.weight",
    "Whole": f"{INSIDE}.unit_key",
    "Window": f"{OPERATORS}.window",
}
"""The steps that travel, with what they hold, and their homes: a process loads those that its plans have."""


def step_named(name: str) -> type[Node]:
    """The class of a step that travels."""
    step_class: type[Node] = getattr(import_module(STEPS[name]), name)
    return step_class


def plans_to_json(roots: Sequence[Node]) -> dict[str, Json]:
    """Some plans as JSON.

    Raises:
        PlanError: A step of theirs cannot travel.
    """
    numbers: dict[Node, int] = {}
    data_sets: list[DataSet] = list(dict.fromkeys(data for root in roots for data in sources(root)))
    written: list[Json] = []

    def other(value: object) -> Json:
        if isinstance(value, Node):
            return {"step": numbers[value]}
        if isinstance(value, Function):
            return {"function": function_to_json(value)}
        if isinstance(value, DataSet):
            return {"data": data_sets.index(value)}
        return record(value)

    for node in steps(*roots):
        try:
            written.append({"is": _name(node), **members(node, other)})
        except UnwritableError:
            raise PlanError(untellable(node)) from None
        numbers[node] = len(numbers)
    digests = fingerprints(*roots)
    meant = [None if (digest := digests[root]) is None else digest.hex() for root in roots]
    return {
        "steps": written, "roots": [numbers[root] for root in roots], "meant": meant,
        "data": [data_to_json(data) for data in data_sets],
        "readers": [next(i for i, data_ in enumerate(data_sets) if data_.reader is data.reader) for data in data_sets],
    }  # fmt: skip


def _name(node: Node) -> str:
    name = type(node).__name__
    if STEPS.get(name) != type(node).__module__:
        raise UnwritableError
    return name


def untellable(node: Node) -> str:
    """Why a step cannot travel, and what to do."""
    return (
        f"{node.title}: cannot be told to another process: only expressions of Polars and SQL, names of columns, and "
        "lambdas that are column arithmetic travel, and steps of them. Write it so, run it as a script (wpinq run), "
        "or in one process. Nothing was charged."
    )


def plans_from_json(message: Mapping[str, Json], lend: Callable[[Json], Lent] = data_from_json) -> list[Node]:
    """The plans that were told.

    Raises:
        SourceError: Files are not as they were.
        InternalError: They mean something else here.
    """
    data = [lend(entry) for entry in message["data"]]
    data = [entry if data[reader_number] is entry else replace(entry, reader=data[reader_number].reader)
            for entry, reader_number in zip(data, message["readers"], strict=True)]  # fmt: skip
    made: list[Node] = []

    def other(reference: Mapping[str, Json]) -> Any:
        if "step" in reference:
            return made[reference["step"]]
        if "function" in reference:
            return function_from_json(reference["function"])
        if "data" in reference:
            return data[reference["data"]]
        raise InternalError("a plan holds what no plan can hold; please report this.")

    for step in message["steps"]:
        values = {name: from_json(value, other) for name, value in step["fields"].items()}
        made.append(step_named(step["is"])(**values))
    roots = [made[number] for number in message["roots"]]
    digests = fingerprints(*roots)
    if any(meant is not None and (digests[root] or b"").hex() != meant
           for root, meant in zip(roots, message["meant"], strict=True)):  # fmt: skip
        raise InternalError("the plans mean something else in another process; please report this.")
    return roots


def rebuilt(message: Mapping[str, Any]) -> Job:
    """The plans that a process was told, as a job."""
    return Job(plans_from_json(message["plans"]), bytes.fromhex(message["key"]))
