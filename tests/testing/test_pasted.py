"""What `help()` shows of the public face runs when it is pasted: examples import what they use."""

import doctest
import inspect

import pytest

import wpinq
import wpinq.testing

FACES = [wpinq, wpinq.degrees, wpinq.aggregates, wpinq.testing]
PARTS = [getattr(face, name) for face in FACES for name in face.__all__]
METHODS = [one for part in PARTS if inspect.isclass(part) for _, one in inspect.getmembers(part, callable)]
FINDER = doctest.DocTestFinder(recurse=False)
EXAMPLES = {}
for part in [*PARTS, *METHODS]:
    if inspect.isroutine(part) or inspect.isclass(part):
        for test in FINDER.find(inspect.unwrap(part), globs={}):
            if test.examples:
                EXAMPLES[f"{inspect.unwrap(part).__module__}.{part.__qualname__}"] = test


def test_there_are_examples():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_runs_as_pasted(name, monkeypatch):
    monkeypatch.setattr("wpinq.core.functions.versioned._CONTENTS", {})  # as in a process that has run no other example
    test = EXAMPLES[name]
    runner = doctest.DocTestRunner(verbose=False)
    said = []
    assert runner.run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)


def test_public_calls_name_their_options():
    """Names of columns are the caller's own, and `but` is for the package itself: it takes the fields of a quote."""
    calls = {one for one in [*PARTS, *METHODS] if inspect.isfunction(one) and one.__module__.startswith("wpinq.")}
    open_ended = {
        one.__qualname__
        for one in calls
        if any(its.kind is its.VAR_KEYWORD for its in inspect.signature(one).parameters.values())
    }
    assert len(calls) > 50
    assert {name for name in open_ended if "._" not in name} == {"protected", "Quote.but"}
