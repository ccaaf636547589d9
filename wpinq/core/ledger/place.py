"""Where a new ledger lies: whether its secret could leave with a commit, or be replaced by others. It is said once."""

from __future__ import annotations

import stat
import warnings
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path


def warn_of(ledger: Path | None) -> None:
    """Warn where a ledger that was just made lies in a git work tree that does not ignore it, or in a shared folder.

    Nobody but their owner can read a ledger and its secret (mode 0600), so a folder is shared where others may write:
    they could remove both. Nothing is refused, and what cannot be looked at is not said.
    """
    try:
        faults = [] if ledger is None else list(_faults(ledger.resolve()))
    except OSError:
        return
    for line in faults:
        warnings.warn(f"ledger {ledger}: {line}", RuntimeWarning, stacklevel=4)


def _faults(ledger: Path) -> Iterable[str]:
    root = next((folder for folder in ledger.parents if (folder / ".git").exists()), None)
    if root is not None and not all(_ignored(path, root) for path in (ledger, Path(f"{ledger}.secret"))):
        yield (
            f"it lies in the git work tree {root}; whoever gets its secret by a commit knows all noise. Add "
            f"{ledger.name}* to .gitignore, or give ledger= another place."
        )
    if _open_to_others(ledger.parent.stat().st_mode):
        yield (
            f"others may write into {ledger.parent}, so they could remove it and its secret. Give ledger= a folder of "
            "your own, or take their right to write away."
        )


def _open_to_others(mode: int) -> bool:
    """Whether others may remove files of a folder that are not theirs."""
    return bool(mode & (stat.S_IWGRP | stat.S_IWOTH)) and not mode & stat.S_ISVTX


def _ignored(path: Path, root: Path) -> bool:
    """Whether a plain line of a .gitignore from the root on names the file, or a folder that it is in."""
    for folder in path.parents:
        lines = folder / ".gitignore"
        if lines.is_file():
            patterns = [line.strip().strip("/") for line in lines.read_text("utf-8", "replace").splitlines()]
            parts = path.relative_to(folder).parts
            if any(
                fnmatch(part, pattern) for pattern in patterns if pattern[:1] not in ("", "#", "!") for part in parts
            ):
                return True
        if folder == root:
            break
    return False
