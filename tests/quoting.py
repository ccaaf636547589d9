"""What tests of quotes and commits share: plans that can and cannot be fingerprinted, and what was charged for them."""

import wpinq
from wpinq.core.plan.node import fingerprints, sources
from wpinq.core.runs import run as runs

ROWS = [("ann", "a", 1), ("bob", "b", 2)] * 20
KINDS = {"user": str, "page": str, "n": int}


class Opaque:
    """Has a method, whose code cannot be covered by a fingerprint."""

    def same(self, text):
        return text


def opaque(budget=1, **more):
    """A collection whose plan cannot be told from others, and what was spent on it."""
    thing = Opaque()
    views = wpinq.protect(ROWS, budget=budget, columns=KINDS, **more)
    found = views.map(lambda page, n: (thing.same(page), n), columns={"page": str, "n": int})
    assert fingerprints(found._node)[found._node] is None
    return found, sources(views._node)[0].ledger


def entries(ledger, kind="charge"):
    return [one for one in ledger.entries() if one.kind == kind]


def table(budget=1, name="views", **more):
    return wpinq.protect(ROWS, budget=budget, columns=KINDS, name=name, **more)


def book(collection):
    return sources(collection._node)[0].ledger


def waiting(collection):
    """Charged queries of a collection's data set that wait for a run."""
    return [one for one in runs._waiting if one.key_owner is sources(collection._node)[0]]
