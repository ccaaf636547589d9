"""The kernels, compiled for these tests."""

import os
import shutil

import pytest

from wpinq.core import kernels
from wpinq.core.kernels import build


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The kernels, compiled here, so that no test depends on how the package was installed."""
    if shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("there is no C compiler")
    patch = pytest.MonkeyPatch()
    made = tmp_path_factory.mktemp("kernels") / "kernels.so"
    for module in (build, kernels):
        patch.setattr(module, "LIBRARY", made)
    assert build.compile_kernels() == made
    yield kernels.load()
    patch.undo()
