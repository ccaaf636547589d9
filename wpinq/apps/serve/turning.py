"""The clock of a server: when it says another name of a version, the data set is opened under that name.

Nothing but the clock begins it: the file is opened whether it changed or not, once for each name, and never again where
that failed. Questions meanwhile are answered from what was opened before. Where it fails, for whatever reason, the data
set is stopped: what costs nothing says what it would have said, and what is charged or shows counts is refused, as for
every stop. Were it left as it was, content would choose which version an answer is of, and which questions are free.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from types import TracebackType

from wpinq.apps.serve.catalogue import Catalogue, ordered, renewed, wanted
from wpinq.apps.serve.operations import Site
from wpinq.collection import Collection
from wpinq.core import DataSet, Node, Source, rewrite
from wpinq.errors import SourceError, WpinqError

EVERY = 1.0
"""Seconds from one look at the clock to the next."""
LOG = logging.getLogger("wpinq.apps.serve")


def clock() -> dt.datetime:
    """The time."""
    return dt.datetime.now(dt.UTC)


class Turning:
    """Opens the next versions in a thread of its own, as long as its block lasts.

    Args:
        site: What is served; its catalogue is replaced.
        now: Tells the time.
    """

    def __init__(self, site: Site, now: Callable[[], dt.datetime] | None = None) -> None:
        self._site, self._now = site, now or clock
        self._latest = self._now()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="turning", daemon=True)

    def __enter__(self) -> Turning:
        if any("{" in (data_set.file.version or "") for data_set in self._site.catalogue.data.values()):
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()  # what is being opened is left: what it charged is free after the restart

    def turn(self) -> None:
        """Open what the clock says another name of. A clock that is set back names nothing."""
        self._latest = max(self._latest, self._now())
        for name in ordered(self._site.catalogue.config):
            catalogue = self._site.catalogue
            data_set = catalogue.data[name]
            version, owners = wanted(name, data_set.file, catalogue.data, self._latest)
            if (version, owners) != data_set.named and not self._end.is_set():
                self._site.catalogue = _next(catalogue, name, version, owners)

    def _look(self) -> None:
        while not self._end.wait(EVERY):
            self.turn()


@dataclass(frozen=True, eq=False, slots=True)
class Stopped(DataSet):
    """A version that was not opened: it can be priced, and is refused before any charge."""

    def pin(self) -> None:
        """Refuse.

        Raises:
            SourceError: Always.
        """
        raise SourceError(f"{self.name}: version {self.version} was not opened.")


def _next(catalogue: Catalogue, name: str, version: str | None, owners: str | None) -> Catalogue:
    """The catalogue with the next version of a data set and of its owners, or with that data set stopped."""
    try:
        return renewed(catalogue, name, version)
    except BaseException as error:  # noqa: BLE001  whatever it is, a panic of Polars too, the same is seen of it
        reason = f"{type(error).__name__}: {error}" if isinstance(error, WpinqError) else type(error).__name__
    before = catalogue.data[name]
    shown = version or before.version.partition(",")[0]
    shown = shown if owners is None else f"{shown}, {owners}"
    LOG.error("data.%s: version %s is not answered until the next, or a restart: %s", name, shown, reason[:500])

    def stop(node: Node) -> Node:
        if not isinstance(node, Source):
            return node
        values = {field.name: getattr(node.data, field.name) for field in fields(DataSet)}
        return Source(Stopped(**{**values, "version": shown, "held": [], "made": {}}))

    views = Collection(rewrite(before.views._node, stop))
    return catalogue.having(replace(before, views=views, stopped=True, named=(version, owners)), {})
