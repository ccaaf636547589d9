"""Collections that tell how a bipartite graph hangs together, over its pairs of a left and a right node.

People and what they choose, say: the left are those with few pairs each, for all pairs of their choices are paths.

| query | bin | true weight | uses of the pairs |
|---|---|---|---|
| `pair_buckets` | (i, j) | 1/4 for each pair, shared among the buckets of its left and its right end | 4 |
| `butterfly_buckets` | (i, k) | slice k of what a right node shares with each other one, weighed as below | 3 |

**Butterflies** are cycles of four pairs: two left nodes that have the same two right ones. Two right nodes share the
weight s = sum over common left nodes u of 1/(2 d_u), and c common ones are c (c - 1) / 2 butterflies. So how often
right nodes share how much says how many butterflies there are, and where they lie: `shave` cuts s into slices, the
first up to 1/16 and each later one twice as far as the one before. A path through u weighs 1/(2 d_u), so one pair more
moves all of them together by one, and no bound on degrees is needed.

The weights that a right node q shares, S_q in all, are then counted in the buckets of its degree d (see `queries.py`),
at d / (S_q + d): between 2/3 and 1, as S_q is d / 2 at the most.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from wpinq.arguments import COLLECTION, takes
from wpinq.errors import PlanError
from wpinq.graphs.queries import MOST_BUCKETS

if TYPE_CHECKING:
    from wpinq.collection import Collection

LEAST_SHARED, MOST_SLICES = Fraction(1, 16), 36
"""How thick the first slice is, and how many there are before one as thick as the last follows another."""
SLICES = (LEAST_SHARED, *(LEAST_SHARED * 2**i for i in range(MOST_SLICES - 1)))


@takes("graphs.pairs", pairs=COLLECTION)
def pairs(pairs: Collection) -> Collection:
    """Name the two columns `left` and `right`, and count each pair once: what all queries here take.

    Raises:
        PlanError: There are not two columns.
    """
    names = pairs._node.schema.names
    if len(names) != 2:
        raise PlanError(
            f"graphs: a pair has two columns, left and right; found {', '.join(names)}. Choose two, by map or "
            "columns=('left', 'right')."
        )
    return pairs.map(lambda left, right: (left, right), columns=["left", "right"]).distinct()


def buckets(pairs: Collection, side: str) -> Collection:
    """Each node of a side in its buckets, at a weight of d in all: slices that are 1, 2, 4, 8, ... thick."""
    return pairs.map(side).shave([2**i for i in range(MOST_BUCKETS)], name="bucket")


@takes("graphs.pair_buckets", pairs=COLLECTION)
def pair_buckets(pairs: Collection) -> Collection:
    """Count pairs by the buckets of their left and of their right end.

    >>> from wpinq.graphs import pair_buckets
    >>> from wpinq.testing import evaluate, protected
    >>> found = evaluate(pair_buckets(protected(left="text", right="text")), [("ann", "a"), ("ann", "b")])
    >>> {bin: round(float(weight), 3) for bin, weight in sorted(found.items())}
    {(1, 1): 0.25, (2, 1): 0.25}
    """
    left = pairs.join(buckets(pairs, "left"), on="left", result=lambda left, right, bucket: (left, right, bucket))
    right = pairs.join(buckets(pairs, "right"), on="right", result=lambda left, right, bucket: (left, right, bucket))
    return left.join(right, on=["left", "right"], result=lambda bucket, bucket_2: (bucket, bucket_2))


@takes("graphs.butterfly_buckets", pairs=COLLECTION)
def butterfly_buckets(pairs: Collection) -> Collection:
    """Weigh what right nodes share, in slices, by the buckets of their degrees.

    >>> from wpinq.graphs import butterfly_buckets
    >>> from wpinq.testing import evaluate, protected
    >>> square = [("ann", "a"), ("ann", "b"), ("bob", "a"), ("bob", "b")]
    >>> found = evaluate(butterfly_buckets(protected(left="text", right="text")), square)
    >>> {bin: round(float(weight), 3) for bin, weight in sorted(found.items())}  # a and b share 1/2, at 2 / (1/2 + 2)
    {(1, 1): 0.05, (1, 2): 0.05, (1, 3): 0.1, (1, 4): 0.2, (2, 1): 0.05, (2, 2): 0.05, (2, 3): 0.1, (2, 4): 0.2}
    """
    paths = pairs.join(pairs, on="left", result=lambda right, right_2: (right, right_2))
    shared = paths.filter(lambda right, right_2: right != right_2).shave(list(SLICES), name="part")
    sliced = shared.map(lambda right, part: (right, part), columns=["right", "part"])
    return sliced.join(buckets(pairs, "right"), on="right", result=lambda bucket, part: (bucket, part))
