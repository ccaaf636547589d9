"""What attacks start from: a file of views, and a way to ask a question about people who are there or are not."""

import pytest

import wpinq
from wpinq.core.ledger import Ledger


@pytest.fixture(autouse=True)
def no_secret_in_environment(monkeypatch):
    monkeypatch.delenv("WPINQ_SECRET", raising=False)
    monkeypatch.delenv("WPINQ_SECRET_FILE", raising=False)


@pytest.fixture
def spent():
    """What was spent of the budget of a file or of a measurement."""

    def call(where):
        if isinstance(where, wpinq.Measurement):
            return where.key_owner.ledger.spent()[0]
        return Ledger.existing(where.with_name(where.name + ".ledger")).spent()[0]

    return call


@pytest.fixture
def outcomes():
    """Ask one question of data without and with alice's record, and tell the kind of what comes back."""

    def call(ask, columns=("user", "page"), alice=("alice", "secret"), others=(("bob", "home"),) * 3, without=True):
        found = []
        for records in (others, (*others, alice)) if without else ((*others, alice),):
            views = wpinq.protect(list(records), budget=10**6, columns=columns)
            try:
                answer = ask(views)
                found.append(type(answer).__name__)
            except BaseException as error:  # a panic is no Exception
                found.append(f"{type(error).__name__}: {error}")
        return found

    return call
