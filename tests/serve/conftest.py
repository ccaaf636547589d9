"""One server for all tests of a file."""

import pytest
from serving import serving, written


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving(written(tmp_path_factory.mktemp("site"))) as asker:
        yield asker
