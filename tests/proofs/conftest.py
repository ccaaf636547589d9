"""All proofs, compiled once."""

import os

import coq
import pytest


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """The directory of the compiled proofs, and of the program that Coq makes of their definitions."""
    coq.needed()
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "proofs"  # all workers share one
    place.mkdir(exist_ok=True)
    return coq.compiled(place)


@pytest.fixture(scope="session")
def program(place):
    """The program that is made of the definitions."""
    return coq.program(place)
