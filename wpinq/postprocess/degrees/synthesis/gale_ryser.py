"""Pairs of degree sequences: when a bipartite graph without repeated edges has them, and one that does.

Degrees are int64 arrays in decreasing order without zeros. Prefix sums decide everything: users `b` and pages `a`
of equal totals have a simple graph exactly when B_k <= C_k for all k, where B sums the k largest of `b` and C sums the
first k of a's conjugate c (c_k = number of pages with at least k views): the theorem of Gale and of Ryser, 1957.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wpinq.core.kernels.loops import compiled
from wpinq.errors import InternalError
from wpinq.postprocess.degrees.path import Ints, conjugate

Indices = NDArray[np.int32]


def equal(total: int, parts: int) -> Ints:
    """Split `total` into `parts` degrees as equal as possible, dropping zeros.

    >>> equal(7, 3).tolist(), equal(2, 5).tolist()
    ([3, 2, 2], [1, 1])
    """
    parts = min(parts, total)
    return total // max(parts, 1) + (np.arange(parts) < total % max(parts, 1)).astype(np.int64)


def rescale(degrees: Ints, total: int) -> Ints:
    """Move the sum of `degrees` to `total` by the fewest single views, each node in proportion to its views beyond one.

    The number of nodes stays while `total` allows one view for each. All changes have one sign, so exactly
    |total - sum| views are added or removed.

    >>> rescale(np.array([5, 3, 1]), 15).tolist(), rescale(np.array([5, 3, 1]), 6).tolist()
    ([9, 5, 1], [3, 2, 1])
    """
    beyond = np.cumsum(degrees - 1)
    if total <= len(degrees) or not len(degrees) or beyond[-1] == 0:
        return equal(total, max(len(degrees), 1))
    whole, extra = int(beyond[-1]), total - len(degrees)
    quotient, rest = divmod(extra, whole)
    wide = beyond if whole < 2**31 else beyond.astype(object)  # 64 bits hold the product, or plain integers do
    shares = beyond * quotient + (wide * rest // whole).astype(np.int64)
    return -np.sort(-(1 + np.diff(shares, prepend=0)))


def nearest(users: Ints, pages: Ints) -> tuple[Ints, int]:
    """Move the fewest views between users, or to new ones, so that a simple graph exists; pages stay as they are.

    With the excess e_k = max(0, B_k - C_k), take from B_k the least unimodal bound E >= e (running maximum from the
    left up to the peak of e, from the right beyond it). B - E stays concave, since B has the larger slope wherever
    E rises and the smaller one wherever it falls, so its differences are again decreasing degrees. Exactly max(e)
    views move; fewer cannot do, since moving one view changes a prefix sum by at most one.

    Args:
        users: Degrees of the users, decreasing.
        pages: Degrees of the pages, decreasing, with the same sum.

    Returns:
        The users' new degrees, decreasing, and the number of views that moved.

    >>> users, moved = nearest(np.array([4, 1, 1]), np.array([3, 3]))  # two pages: nobody can view four
    >>> users.tolist(), moved
    ([2, 2, 2], 2)
    >>> nearest(np.array([3, 2]), np.array([2, 2, 1]))[1]  # fits already
    0
    """
    limit = conjugate(pages)
    length = max(len(users), len(limit))
    before = np.cumsum(np.pad(users, (0, length - len(users))))
    excess = np.maximum(before - np.cumsum(np.pad(limit, (0, length - len(limit)))), 0)
    moved = int(excess.max(initial=0))
    if not moved:
        return users, 0
    peak = int(excess.argmax())
    bound = np.concatenate([np.maximum.accumulate(excess[:peak]), np.maximum.accumulate(excess[peak:][::-1])[::-1]])
    after = np.diff(before - bound, prepend=0)
    return after[after > 0], moved


def construct(users: Ints, pages: Ints) -> tuple[Indices, Indices]:
    """Build one simple graph with feasible degrees: each node of the smaller side takes the largest of the other.

    Linear in the edges. The larger side stays sorted without sorting: among equals, the last ones are taken.

    Returns:
        The user and the page of each edge, counted from 0.

    Raises:
        InternalError: The degrees are not feasible (`nearest` makes them so).
    """
    if len(users) > len(pages):
        page_of, user_of = construct(pages, users)
        return user_of, page_of
    left = -pages.astype(np.int64)  # negated, so that it ascends
    taken = np.empty(int(users.sum()), dtype=np.int32)
    if not take(np.ascontiguousarray(users), left, taken):
        raise InternalError("construct: the degrees have no simple graph.")
    return np.repeat(np.arange(len(users), dtype=np.int32), users), taken


@compiled
def take(degrees: Ints, left: Ints, taken: Indices) -> bool:
    """Let each degree in turn take one of the largest of `left`, negated, and write which; false where it cannot."""
    end = 0
    for degree in degrees:
        if degree > len(left):
            return False
        level = left[degree - 1]
        first, last = np.searchsorted(left, level, side="left"), np.searchsorted(left, level, side="right")
        start = last - (degree - first)
        for low, high in ((0, first), (start, last)):
            left[low:high] += 1
            taken[end : end + high - low] = np.arange(low, high)
            end += high - low
    return not bool(left.any())
