"""Which parts are parallel, so that together they cost what the largest of them costs.

Parts of one step are disjoint: what a unit moves of the step is split among them, so all parts together move no further
than the step. That speaks of one collection. The step over a live source is another collection at each epoch, and parts
that are measured at two epochs are parts of two. They are still parallel where a unit moves the step alike at every
epoch from its own first on: where each step up to there is linear for each record, so that what becomes of a record
depends on nothing else. Where records meet (`shave` over pages, a sample of each user), one early record moves another
part at every epoch, and what the epochs cost adds up: the epoch is then part of the name by which the ledger knows the
partition. A finite source has no epochs; two versions of it are two sources, and their parts two partitions.

Source: McSherry, PINQ, SIGMOD 2009 (parallel composition); the induction over plans is in `ledger/cost.py`.
"""

from __future__ import annotations

from wpinq.operators.contribution.sample import Bound
from wpinq.operators.contribution.share import Share
from wpinq.operators.contribution.unit_key import UnitKey, origin
from wpinq.operators.window import Window
from wpinq.plan.node import Node, sources, steps
from wpinq.plan.shapes import Keyed
from wpinq.plan.stability import Survey


def combines_records(node: Node) -> bool:
    """Whether records meet in a step, so that what becomes of one may depend on others."""
    return isinstance(node.lower(frozenset(node.schema.names)), Keyed)


def linear(root: Node) -> bool:
    """Whether a unit moves the output alike at every epoch: no records of a live source meet up to there."""
    return not any(combines_records(node) for node in steps(root) if any(data.grows for data in sources(node)))


def parallel(window: Window) -> bool:
    """Whether each unit is in one window only, whichever epochs the windows are measured at.

    So it is where all steps below are linear. A person is in many windows, unless the unit is a person in one window of
    which these are made: then nobody else's records, and none of another window, decide what is kept of it.
    """
    below = window.source
    if linear(below):
        return True
    if not isinstance(below, (Bound, Share)):
        return False
    own = UnitKey(origin(below).data.unit, below.source.schema)
    return own.span is not None and own.unit.columns[1] == window.at and window.span % own.span == 0


def each_is_charged(survey: Survey) -> bool:
    """Whether every window that is asked for is charged: a unit may move the plan in other ways than in one window."""
    one = {node.group for node in survey.steps if isinstance(node, Window) and parallel(node)}
    return any(not any(group in one for group, _ in parts) for _, parts in survey.paths)
