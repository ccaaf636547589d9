"""Where bytecode lies, and that workers compile a clone once together instead of each for itself."""

import compileall
import os
import sys
from contextlib import suppress
from pathlib import Path

from _pytest.assertion import rewrite

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "wpinq"


def keep():
    """Let bytecode lie with pytest's own files, where none may lie beside a source (PYTHONDONTWRITEBYTECODE).

    Tests start hundreds of processes, and three workers read each file: each would compile all that it imports anew.
    """
    if sys.dont_write_bytecode and not sys.pycache_prefix:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(HERE.parent / ".pytest_cache" / "bytecode")
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
        del os.environ["PYTHONDONTWRITEBYTECODE"]


def share(config):
    """Compile every n-th file, if this is one of n workers: the others do the others meanwhile.

    All workers read the files in one order and at one time. In a fresh clone each would compile all of the package and
    rewrite the asserts of all tests, which is ten seconds of processor time.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode or rewrite.assertstate_key not in config.stash:
        return
    state, first = config.stash[rewrite.assertstate_key], int(worker["workerid"].removeprefix("gw"))
    for path in sorted(PACKAGE.rglob("*.py"))[first :: worker["workercount"]]:
        compileall.compile_file(path, quiet=2)  # what is up to date stays; an error is told where it is imported
    roots = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    paths = [path for path in sorted(HERE.rglob("test_*.py")) if any(path.is_relative_to(root) for root in roots)]
    for path in paths[first :: worker["workercount"]]:
        compiled = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(path, compiled) is None and rewrite.try_makedirs(compiled.parent):
            with suppress(SyntaxError):  # of which its collection tells
                rewrite._write_pyc(state, *reversed(rewrite._rewrite_test(path, config)), compiled)
