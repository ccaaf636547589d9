"""What tools take: from these classes their JSON schemas are made, and by them arguments are read, strictly."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from wpinq.apps.remote import wire

QUESTIONS = 20
"""Questions that are priced in one call."""
BINS = 1_000
"""Groups or bins of one call."""
QUERY = 10_000
"""Characters of a query."""

Sql = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=QUERY,
        description="One SELECT in PostgreSQL's dialect over the tables that `data` lists: COUNT, SUM, AVG, MEDIAN and"
        " others, with WHERE, GROUP BY, HAVING, ORDER BY.",
    ),
]
Epsilon = Annotated[
    wire.Amount,
    msgspec.Meta(description="The most that it may cost in epsilon, exactly, as '0.1'. More is nearer to the truth."),
]
Delta = Annotated[
    wire.Amount,
    msgspec.Meta(description="What publishing groups by a threshold may cost in delta, where no `keys` are given."),
]
Keys = Annotated[
    list[wire.Bin],
    msgspec.Meta(
        min_length=1,
        max_length=BINS,
        description="The groups to show, whether they exist or not: values, or lists of them for several columns.",
    ),
]
Most = Annotated[int, msgspec.Meta(ge=1, description="Records of each person that it looks at; fewer is less noise.")]
Ends = Annotated[
    dict[str, tuple[wire.Amount, wire.Amount]],
    msgspec.Meta(description="For sums, means and quantiles: what each column is clamped to, {'size': [0, 100]}."),
]
Name = Annotated[wire.Word, msgspec.Meta(description="Another name makes it a new question, with other noise; rarely.")]
Skip = Annotated[int, msgspec.Meta(ge=0, description="Rows to leave out, where there were more; asking again is free.")]
Measured = Annotated[wire.Word, msgspec.Meta(description="The name of a measurement that `data` lists.")]
Bins = Annotated[
    list[wire.Bin],
    msgspec.Meta(min_length=1, max_length=BINS, description="Bins, whether they exist or not: values, or lists."),
]


class Nothing(wire.Request, frozen=True):
    """It takes nothing."""


class Question(wire.Request, frozen=True, kw_only=True):
    """A question in SQL, with the most that it may cost."""

    query: Sql
    epsilon: Epsilon
    delta: Delta | None = None
    keys: Keys | None = None
    at_most: Most | None = None
    bounds: Ends | None = None
    name: Name | None = None

    def request(self, *, dry: bool) -> wire.Sql:
        """The same as the server takes it: to be priced where it is `dry`, else to be answered."""
        return wire.Sql(
            query=self.query, epsilon=self.epsilon, delta=self.delta, keys=self.keys, at_most=self.at_most,
            bounds=self.bounds or {}, name=self.name, dry=dry,
        )  # fmt: skip


class Ask(Question, frozen=True, kw_only=True):
    """A question in SQL, with the most that it may cost."""

    skip: Skip = 0


class Price(wire.Request, frozen=True, kw_only=True):
    """Questions to be priced."""

    questions: Annotated[list[Question], msgspec.Meta(min_length=1, max_length=QUESTIONS)]


class Look(wire.Request, frozen=True, kw_only=True):
    """Bins of a measurement."""

    measurement: Measured
    bins: Bins


def schema(request: type[wire.Request]) -> dict[str, Any]:
    """The JSON schema of what a tool takes, an object at its root as the protocol wants it.

    >>> schema(Nothing)["type"], schema(Ask)["required"]
    ('object', ['query', 'epsilon'])
    """
    parts = msgspec.json.schema(request)
    definitions = parts["$defs"]
    root = dict(definitions.pop(request.__name__))
    return root | ({"$defs": definitions} if definitions else {})
