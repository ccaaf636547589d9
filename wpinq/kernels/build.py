"""Compile the kernels: `python -m wpinq.kernels` in a checkout, and `hook.py` when a wheel is built."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("kernels.c")
LIBRARY = Path(__file__).with_name("kernels.dll" if sys.platform == "win32" else "kernels.so")


def digest() -> bytes:
    """Tells one version of the source from another."""
    return hashlib.blake2b(SOURCE.read_bytes(), digest_size=16).hexdigest().encode()


def compile_kernels() -> Path | None:
    """Compile the library beside its source, by `CC` or `cc`; None where there is no compiler or it fails."""
    import shutil
    import subprocess

    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or sys.byteorder != "little":
        return None
    made = LIBRARY.with_suffix(f".{os.getpid()}")
    flags = ("-O3", "-shared", "-fPIC", "-fvisibility=hidden", f'-DWPINQ_SOURCE="{digest().decode()}"')
    done = subprocess.run([compiler, *flags, str(SOURCE), "-o", str(made)], check=False, capture_output=True)  # noqa: S603
    if done.returncode:
        made.unlink(missing_ok=True)
        return None
    made.replace(LIBRARY)
    return LIBRARY
