"""Compile the kernels: `python -m wpinq.core.kernels` in a checkout, and `hook.py` when a wheel is built."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

SOURCES = sorted(Path(__file__).parent.glob("*.[ch]"))
LIBRARY = Path(__file__).with_name("kernels.dll" if sys.platform == "win32" else "kernels.so")


def digest() -> bytes:
    """Tells one version of the sources from another."""
    result = hashlib.blake2b(digest_size=16)
    for source in SOURCES:
        result.update(hashlib.blake2b(source.read_bytes()).digest())
    return result.hexdigest().encode()


def compile_kernels() -> Path | None:
    """Compile the library beside its sources, by `CC` or `cc`; None where there is no compiler or it fails.

    No multiplication is fused with an addition: sums of doubles are then those of Python and of NumPy, bit for bit.
    """
    import shutil
    import subprocess

    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or sys.byteorder != "little":
        return None
    made = LIBRARY.with_suffix(f".{os.getpid()}")
    flags = ("-O3", "-ffp-contract=off", "-shared", "-fPIC", "-fvisibility=hidden")
    names = [f'-DWPINQ_SOURCE="{digest().decode()}"', *(str(path) for path in SOURCES if path.suffix == ".c")]
    done = subprocess.run([compiler, *flags, *names, "-lm", "-o", str(made)], check=False, capture_output=True)  # noqa: S603
    if done.returncode:
        made.unlink(missing_ok=True)
        return None
    made.replace(LIBRARY)
    return LIBRARY
