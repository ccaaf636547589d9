"""Files that a command writes: found out to be writable before anything is charged, written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from wpinq.errors import SourceError, needs
from wpinq.storage import replacing

ROOM = 1 << 20
"""Bytes that a disk must have left for what a command writes."""


def check_outputs(wanted: dict[str, tuple[Path | None, tuple[str, ...]]], keep: Collection[Path] = ()) -> None:
    """Make sure that every file can be written.

    Args:
        wanted: For each option its path, if it was given, and the endings that it can write; none means any.
        keep: Files that must not be replaced.

    Raises:
        SourceError: One of them cannot be written; nothing was.
    """
    taken = set(keep)
    for option, (path, suffixes) in wanted.items():
        if path is None:
            continue
        call = f"{option} {path}"
        if path.resolve() in taken:
            raise SourceError(f"{call}: would replace what is read, its ledger or another output; choose another name.")
        if suffixes and path.suffix.lower() not in suffixes:
            raise SourceError(f"{call}: the file's name must end in one of {', '.join(suffixes)}.")
        _check_writable(call, path)
        taken.add(path.resolve())


def check_fit(json: Path | None, plot: Path | None, synthesize: Path | None, keep: Collection[Path]) -> list[Path]:
    """Make sure that the files of a fit can be written: `--json`, `--plot`, `--synthesize`; see `check_outputs`.

    Returns:
        Those that were asked for.

    Raises:
        ExtraError: Nothing can draw here.
        SourceError: One of them cannot be written; nothing was.
    """
    wanted: dict[str, tuple[Path | None, tuple[str, ...]]] = {"--json": (json, ())}
    if plot is not None:
        from wpinq.postprocess.style import SUFFIXES

        needs("plot", "--plot")
        wanted["--plot"] = plot, SUFFIXES
    if synthesize is not None:
        from wpinq.postprocess.degrees.synthesis.writers import WRITERS

        wanted["--synthesize"] = synthesize, tuple(WRITERS)
    check_outputs(wanted, keep)
    return [path for path, _ in wanted.values() if path is not None]


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file, whole or not at all, one line for each entry."""
    from wpinq.html.written import json_page

    write_text("--json", path, json_page(content))


def write_text(option: str, path: Path, text: str) -> None:
    """Write a file of text, whole or not at all."""
    with replacing(option, path, (path.suffix.lower(),)) as file:
        file.write(text.encode())


def _check_writable(call: str, path: Path) -> None:
    """Make a file where the output will be made, and take it away again: nothing else tells for certain."""
    try:
        other = path.is_symlink() or (path.exists() and not path.is_file())
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
        os.close(descriptor)
        Path(name).unlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise SourceError(f"{call}: cannot be written: {reason}; choose another place.") from None
    if shutil.disk_usage(path.parent).free < ROOM:
        raise SourceError(f"{call}: no room is left there; make room, or choose another place.")
    if other:
        raise SourceError(f"{call}: is there and is not a file; choose another name.")
