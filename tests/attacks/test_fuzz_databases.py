"""Random SQL against DuckDB: few cases here, `python -m attacks.fuzz --of databases` goes on, with PostgreSQL too."""

from unittest.mock import patch

import pytest
from attacks.fuzz import databases
from depth import deeper, often


@deeper
@pytest.mark.parametrize("first", [20, 60])
def test_answers_are_those_of_a_database(first):
    with patch.object(databases, "server", lambda: None):
        for seed in range(first, first + often(16, 4)):
            assert not databases.FUZZER.wrong(seed)
