"""Plans as JSON and back: their steps, functions and data sets, as a closed grammar. No code and no secret travels.

What is told of a data set are its public facts, how its files are opened, and the keys that identify and sample its
records (privacy rule 37). Whoever rebuilds the plans compares what they mean, so that two processes never compute
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wpinq.aggregates.bounding import Lengths
from wpinq.aggregates.clipping_loss import Dropped
from wpinq.aggregates.grid import Cells
from wpinq.aggregates.moments import Moments
from wpinq.core.functions import Function
from wpinq.core.operators.concat import Sum
from wpinq.core.operators.contribution.first import First
from wpinq.core.operators.contribution.preprocess import Derive
from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.share import Share
from wpinq.core.operators.contribution.weight import Weigh
from wpinq.core.operators.distinct import Distinct
from wpinq.core.operators.filter import Filter
from wpinq.core.operators.group_by import GroupBy
from wpinq.core.operators.group_columns import GroupColumns
from wpinq.core.operators.join import Join
from wpinq.core.operators.join_rows import JoinRows, LeftRows
from wpinq.core.operators.keys import Extend
from wpinq.core.operators.look_up import LookUp
from wpinq.core.operators.map import Map
from wpinq.core.operators.partition import Part
from wpinq.core.operators.resolution import Align, Coarse
from wpinq.core.operators.semijoin import Fill
from wpinq.core.operators.shave import Shave
from wpinq.core.operators.union import Extreme
from wpinq.core.operators.window import Window
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, Source, fingerprints, sources, steps
from wpinq.distributed.data import Lent, data_told, data_untold
from wpinq.distributed.functions import function_told, function_untold
from wpinq.distributed.values import Json, UntoldError, members, record, untold
from wpinq.errors import InternalError, PlanError

STEPS: dict[str, type[Node]] = {
    step.__name__: step
    for step in (
        Align, Bound, Cells, Coarse, Derive, Distinct, Dropped, Extend, Extreme, Fill, Filter, First, GroupBy,
        GroupColumns, Join, JoinRows, LeftRows, Lengths, LookUp, Map, Moments, Part, Share, Shave, Source, Sum, Weigh,
        Window,
    )
}  # fmt: skip
"""The steps that travel, with what they hold."""


def plans_told(roots: Sequence[Node]) -> dict[str, Json]:
    """Some plans as JSON.

    Raises:
        PlanError: A step of theirs cannot travel.
    """
    places: dict[Node, int] = {}
    found: list[DataSet] = list(dict.fromkeys(data for root in roots for data in sources(root)))
    written: list[Json] = []

    def other(value: object) -> Json:
        if isinstance(value, Node):
            return {"step": places[value]}
        if isinstance(value, Function):
            return {"function": function_told(value)}
        if isinstance(value, DataSet):
            return {"data": found.index(value)}
        return record(value)

    for node in steps(*roots):
        try:
            written.append({"is": _name(node), **members(node, other)})
        except UntoldError:
            raise PlanError(untellable(node)) from None
        places[node] = len(places)
    digests = fingerprints(*roots)
    meant = [None if (digest := digests[root]) is None else digest.hex() for root in roots]
    return {
        "steps": written, "roots": [places[root] for root in roots], "meant": meant,
        "data": [data_told(data) for data in found],
    }  # fmt: skip


def _name(node: Node) -> str:
    name = type(node).__name__
    if STEPS.get(name) is not type(node):
        raise UntoldError
    return name


def untellable(node: Node) -> str:
    """Why a step cannot travel, and what to do."""
    return (
        f"{node.title}: cannot be told to another process: only expressions of Polars and SQL, names of columns, and "
        "lambdas that are column arithmetic travel, and steps of them. Write it so, run it as a script (wpinq run), "
        "or in one process. Nothing was charged."
    )


def plans_untold(told: Mapping[str, Json], lend: Callable[[Json], Lent] = data_untold) -> list[Node]:
    """The plans that were told.

    Raises:
        SourceError: Files are not as they were.
        InternalError: They mean something else here.
    """
    data = [lend(one) for one in told["data"]]
    made: list[Node] = []

    def other(given: Mapping[str, Json]) -> Any:
        if "step" in given:
            return made[given["step"]]
        if "function" in given:
            return function_untold(given["function"])
        if "data" in given:
            return data[given["data"]]
        raise InternalError("a plan holds what no plan can hold; please report this.")

    for one in told["steps"]:
        values = {name: untold(value, other) for name, value in one["fields"].items()}
        made.append(STEPS[one["is"]](**values))
    roots = [made[place] for place in told["roots"]]
    digests = fingerprints(*roots)
    if any(meant is not None and (digests[root] or b"").hex() != meant
           for root, meant in zip(roots, told["meant"], strict=True)):  # fmt: skip
        raise InternalError("the plans mean something else in another process; please report this.")
    return roots
