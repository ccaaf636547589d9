"""Parallel composition: of which parts the ledger charges only the costliest.

The parts of one step are disjoint: the change that a unit causes in the step is divided among them, so all parts
together change no more than the step. This holds for one collection. A step over a live source is another collection at
each epoch, and parts that are measured at two epochs belong to two collections. They still compose in parallel where a
unit causes the same change of the step at every epoch from its first on: where every step from the source on is linear
for each record, so that the output for a record depends on no other record. After a step that combines records (`shave`
over pages, a sample of each user) one early record can change another part at every epoch, and the costs of epochs add
up: the name of the partition in the ledger then holds the epoch. A finite source has no epochs; two versions of it are
two sources, and their parts are parts of two partitions.

Source: McSherry, PINQ, SIGMOD 2009 (parallel composition); the induction over plans is in `core/ledger/cost.py`.
"""

from __future__ import annotations

from wpinq.core.operators.contribution.sample import Bound
from wpinq.core.operators.contribution.share import Share
from wpinq.core.operators.window import Window
from wpinq.core.plan.node import Node, sources, steps
from wpinq.core.plan.shapes import Keyed
from wpinq.core.plan.stability import Survey


def combines_records(node: Node) -> bool:
    """Whether a step combines records, so that its output for one record may depend on others."""
    return isinstance(node.lower(frozenset(node.schema.names)), Keyed)


def linear(root: Node) -> bool:
    """Whether a unit changes the output alike at every epoch: no step over a live source combines records."""
    return not any(combines_records(node) for node in steps(root) if any(data.grows for data in sources(node)))


def parallel(window: Window) -> bool:
    """Whether each unit is in one window only, whichever epochs the windows are measured at.

    That holds where all steps below are linear. A person is in many windows, unless the unit is a person in one period
    and these windows are unions of whole ones: then what is kept of a unit depends on its own records alone.
    """
    below = window.source
    if linear(below):
        return True
    if not isinstance(below, (Bound, Share)):
        return False
    unit_key = below.unit_key
    return unit_key.span is not None and unit_key.unit.columns[1] == window.at and window.span.made_of(unit_key.span)


def each_is_charged(survey: Survey) -> bool:
    """Whether each measured window is charged: because a unit may change the plan outside of one window."""
    parallel_groups = {node.group for node in survey.steps if isinstance(node, Window) and parallel(node)}
    return any(not any(group in parallel_groups for group, _ in parts) for _, parts in survey.paths)
