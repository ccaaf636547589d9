"""`--recover DIR`: a run that was killed continues from what it has read."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core import DataSet, Node


def recovering(views: Collection, folder: Path, script: Path) -> Collection:
    """The same records, read through what is kept in a directory.

    What is kept is bound to the data set, its version and unit, and the script.

    Raises:
        SourceError: The directory belongs to something else, or cannot be used.
    """
    from wpinq.core import Source, rewrite
    from wpinq.sources.recovered import recovered

    def change(node: Node) -> Node:
        if type(node) is not Source:
            return node
        data = node.data
        return Source(replace(data, reader=recovered(data.reader, folder, recovery_key(data, script))))

    return views._then(rewrite(views._node, change))


def recovery_key(data: DataSet, script: Path) -> bytes:
    """The key of what is kept of a data set for a script."""
    digest = blake2b(script.read_bytes(), digest_size=32).digest()
    return data.ledger.secret.derive("recovery", data.name, data.version, data.unit.text, digest)
