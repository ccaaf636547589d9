"""Whether the exact movement of a dataflow between neighbours is within the stability that it states."""

from __future__ import annotations

from fractions import Fraction

from wpinq.arguments import COLLECTION, MAPPING, NOTHING, WHOLE, takes
from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.person_bound import mover
from wpinq.core.plan.stability import sensitivities
from wpinq.testing.evaluation import distance, given_to
from wpinq.testing.neighbours import Neighbours, Values, needed, neighbours


@takes(collection=COLLECTION, examples=WHOLE, values=MAPPING | NOTHING)
def check_stability(collection: Collection, *, examples: int = 200, values: Values = None) -> None:
    """Search for neighbouring inputs between which a dataflow moves further than it states.

    Noise hides one privacy unit if what is measured moves no further than its stated sensitivity when the unit comes
    or goes. The operators are proved to be stable. What this finds are operators of your own, and functions that are
    not functions: that remember other records, draw random numbers, or read what changes.

    Inputs are the same in every run of the same code.

    Args:
        collection: What the dataflow returns.
        examples: How many neighbours to try.
        values: For some columns the values to draw from, such as those that a filter looks for.

    Raises:
        AssertionError: There are such neighbours; the smallest that were found are shown.
        PlanError: Hypothesis is not installed.

    >>> from wpinq.testing import check_stability, protected
    >>> views = protected(user="text", page="text")
    >>> check_stability(views.group_by("user", len), examples=20)

    A function that remembers other records is found:

    >>> seen = []
    >>> def numbered(user, page):
    ...     seen.append(page)
    ...     return len(seen)
    >>> check_stability(views.map(numbered, columns={"n": int}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: one unit more of 'records' moves the output by 3, and 1 is stated; ...
    """
    hypothesis = needed("hypothesis")
    root = fit_noise(collection._node)
    stated = sensitivities(root)

    def moves_within(pair: Neighbours) -> None:
        without, with_one = (reference.run(root, given_to(root, side)) for side in pair[:2])
        moved = distance(without, with_one)
        most = sum((move for data, move in stated.items() if mover(data) == mover(pair.data)), Fraction(0))
        if most:
            hypothesis.target(float(moved / most))
        assert moved <= most, (  # noqa: S101  it is a check of tests
            f"one unit more of {pair.data.name!r} moves the output by {moved}, and {most} is stated; without it the "
            f"input is {pair.without}, with it {pair.with_one}."
        )

    profile = hypothesis.settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    profile(hypothesis.given(neighbours(collection, values))(moves_within))()
