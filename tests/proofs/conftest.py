"""All proofs, compiled once."""

import coq
import pytest


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """The directory of the compiled proofs, and of the program that Coq makes of their definitions."""
    coq.needed()
    return coq.compiled(tmp_path_factory.mktemp("proofs"))
