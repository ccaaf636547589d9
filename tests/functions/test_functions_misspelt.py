"""Functions that ask every record for what no value of a column's type has."""

import pytest

import wpinq
from wpinq.testing import protected

PERSONS = {"region": "text", "age": int, "born": "date"}
FACTOR = 2


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda region: region.uper(), "Did you mean 'upper'?"),
        (lambda region: region.uper(), "a text has no 'uper', so the function fails for every record. Did you mean"),
        (lambda region: region.strip().split(" ")[0].lowr(), "Did you mean 'lower'"),
        (lambda age: age.lower(), "an integer has no 'lower'"),
        (lambda born: born.yeer, "a date has no 'yeer', so the function fails for every record. Did you mean 'year'"),
        (lambda region, age: (region, f"{age.bit_lenght()}"), "Did you mean 'bit_length'"),
    ],
)  # fmt: skip
def test_a_misspelt_method_is_refused_where_it_is_written(function, what):
    with pytest.raises(wpinq.PlanError, match="map: ") as caught:
        protected(**PERSONS).map(function)
    assert what in str(caught.value)
    with pytest.raises(wpinq.PlanError, match="has no"):
        protected(**PERSONS).filter(function)


def test_what_may_work_for_some_record_is_not_refused():
    persons = protected(**PERSONS)
    maybe = [
        lambda region: region.uper() if region == "x" else region,
        lambda region: hasattr(region, "uper") and region.uper(),
        lambda region: region.split("b")[5].upper(),
        lambda age: (1, "a")[age].upper(),
        lambda age: {1: "a"}[age].upper(),
        lambda age: 1 / (age - 1),
    ]
    for function in maybe:
        persons.map(function)
    protected(word=None).map(lambda word: word.uper())
    persons.flat_map(lambda region: region.split())
    with pytest.raises(wpinq.PlanError, match="flat_map: a text has no 'splitt'"):
        persons.flat_map(lambda region: region.splitt())
