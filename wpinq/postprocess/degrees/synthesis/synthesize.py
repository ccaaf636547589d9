"""Synthetic views that fit released degrees: plain numbers in, a data set without repeated pairs out.

Post-processing: nothing here reads data, spends epsilon or draws noise, so it works with the data deleted. Its
randomness is ordinary (a NumPy generator), may be seeded and repeated, and protects nothing: the degrees are already
released.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from wpinq.arguments import NOTHING, WHOLE, Expected, instance, takes
from wpinq.errors import SourceError, needs
from wpinq.postprocess.degrees.path import Ints
from wpinq.postprocess.degrees.synthesis import gale_ryser
from wpinq.postprocess.degrees.synthesis.gale_ryser import Indices
from wpinq.postprocess.degrees.synthesis.sampler import sample
from wpinq.postprocess.degrees.synthesis.writers import WRITERS, schema, write_pairs
from wpinq.storage import replacing

if TYPE_CHECKING:
    import networkx as nx
    import pyarrow as pa


class Degrees(Protocol):
    """What is read of a fit."""

    @property
    def sequence(self) -> ArrayLike:
        """Degree of each item, largest first, in whole numbers."""


SEED = Expected("a whole number from zero on", lambda value: WHOLE.holds(value) and value >= 0) | instance(
    "a NumPy generator", np.random.Generator
)


@takes(path=instance("a path", str, os.PathLike) | NOTHING, seed=SEED | NOTHING)
def synthesize(
    fit: Degrees,
    path: str | Path | None = None,
    *,
    users: Degrees | int | None = None,
    columns: tuple[str, str] = ("user", "page"),
    seed: int | np.random.Generator | None = None,
) -> pa.Table | None:
    """Make random views with exactly the fitted page degrees, in which no user views a page twice.

    The pages' degrees never move; the users' do where they must. When `users` is a fit, its total is first brought to
    the pages' total by the fewest single views, spread over the users in proportion to what they have beyond one, so
    that the number of users stays; if more than a tenth differs, there is a warning. If no simple graph has both
    sequences (Gale, Ryser) the fewest views are moved between users, or to new users, and a warning says how many.
    Without `users` the degrees are as equal as possible over as many users as there are pages, or twice the largest
    degree if that is more (so that no page is viewed by more than half of the users), but never more than views.

    Users and pages are int64 ranks from 1: user 1 has most views, page 1 is viewed most. Rows are grouped by user, in
    rank order; their order says nothing else. The sampling is near-uniform over all such data sets (see `sampler`).

    Args:
        fit: Fit of the pages' degrees; only `fit.sequence` is read.
        path: Where to write: `.parquet`, `.arrow`, `.csv`, `.tsv` (both with a header) or `.txt` (pairs after a `#`
            line). The file appears whole or not at all. None returns the table instead.
        users: Fit of the users' degrees, or a number of users to spread the views over evenly.
        columns: Names of the users' and the pages' column.
        seed: Seed or generator; the same seed gives the same rows.

    Returns:
        A pyarrow table of two int64 columns, or None when `path` was written.

    Raises:
        SourceError: The suffix is unknown, the path cannot be written, or a sequence or column name is not valid.

    Warns:
        UserWarning: The users' degrees had to move.

    Source: Gale 1957; Ryser 1957.

    >>> from types import SimpleNamespace
    >>> table = synthesize(SimpleNamespace(sequence=[3, 2, 1]), users=SimpleNamespace(sequence=[3, 2, 1]), seed=1)
    >>> sorted(zip(*table.to_pydict().values()))  # the only such graph
    [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)]
    """
    _check_columns(columns)
    page_degrees = _degrees(fit, "fit")
    user_degrees = _users(page_degrees, users)
    rng = np.random.default_rng(seed)
    if path is None:
        return _table(*sample(user_degrees, page_degrees, rng), columns)
    with replacing("synthesize", path, tuple(WRITERS)) as file:
        write_pairs(file, Path(path).suffix.lower(), *sample(user_degrees, page_degrees, rng), columns)
    return None


@takes(table=Expected("what synthesize gave", lambda table: len(getattr(table, "column_names", ())) == 2))
def to_networkx(table: pa.Table) -> nx.Graph[Any]:
    """Turn synthetic views into a bipartite networkx graph.

    Nodes are pairs of a column's name and a rank, such as `("user", 1)`; their attribute `bipartite` is 0 for
    users and 1 for pages, as networkx expects.

    Raises:
        PlanError: It is no table of two columns.

    >>> from types import SimpleNamespace
    >>> from wpinq.degrees import to_networkx
    >>> from wpinq.postprocess.degrees.synthesis.synthesize import synthesize
    >>> graph = to_networkx(synthesize(SimpleNamespace(sequence=[2, 1]), users=2, seed=1))
    >>> sorted(graph.degree)
    [(('page', 1), 2), (('page', 2), 1), (('user', 1), 2), (('user', 2), 1)]
    """
    needs("graphs", "to_networkx(...)")
    import networkx as nx

    graph: nx.Graph[Any] = nx.Graph()
    sides = [[(name, rank) for rank in table[name].to_pylist()] for name in table.column_names]
    for number, nodes in enumerate(sides):
        graph.add_nodes_from(nodes, bipartite=number)
    graph.add_edges_from(zip(*sides, strict=True))
    return graph


def _table(users: Indices, pages: Indices, columns: tuple[str, str]) -> pa.Table:
    import pyarrow as pa

    return pa.table([users.astype(np.int64) + 1, pages.astype(np.int64) + 1], schema=schema(columns))


def _users(pages: Ints, users: Degrees | int | None) -> Ints:
    """Degrees of the users, decreasing, such that a simple graph with `pages` exists."""
    total = int(pages.sum())
    if users is None:
        return gale_ryser.equal(total, max(len(pages), 2 * int(pages.max(initial=0))))
    if isinstance(users, int | np.integer):
        if users < 1:
            raise SourceError(f"synthesize(users={users}): the number of users must be at least 1.")
        wanted = gale_ryser.equal(total, users)
    else:
        fitted = _degrees(users, "users")
        moved = abs(total - int(fitted.sum()))
        if 10 * moved > total:
            _warn(f"the users' views differ from the pages' by {moved} of {total}; the users were rescaled.")
        wanted = gale_ryser.rescale(fitted, total)
    feasible, moved = gale_ryser.nearest(wanted, pages)
    if moved:
        more = f", {len(feasible) - len(wanted)} users added" if len(feasible) > len(wanted) else ""
        _warn(
            f"no data without repeated pairs has both degree sequences (Gale-Ryser): {moved} of {total} views moved "
            f"between users{more}; the pages' degrees are exact."
        )
    return feasible


def _warn(what: str) -> None:
    warnings.warn(f"synthesize: {what}", UserWarning, stacklevel=4)


def _degrees(fit: Degrees, name: str) -> Ints:
    """Read a sequence as positive degrees, largest first."""
    if not hasattr(fit, "sequence"):
        raise SourceError(f"synthesize({name}=...): found {type(fit).__name__}; pass a fit, or a number of users.")
    raw = np.asarray(fit.sequence)
    whole = raw.astype(np.int64) if raw.dtype.kind in "iuf" and np.isfinite(raw).all() else None
    if raw.ndim != 1 or whole is None or (whole != raw).any() or (whole < 0).any():
        if raw.size:
            raise SourceError(f"synthesize: {name}.sequence must be a flat array of whole numbers, none negative.")
        whole = np.empty(0, dtype=np.int64)
    return -np.sort(-whole[whole > 0])


def _check_columns(columns: tuple[str, str]) -> None:
    good = (
        len(columns) == 2
        and columns[0] != columns[1]
        and all(isinstance(name, str) and name and name.isprintable() for name in columns)
    )
    if not good:
        raise SourceError(f"synthesize(columns={columns!r}): give two different names, for users and for pages.")
