"""Requests that are nearly right: whatever is changed in them, the answer has the shape of the contract, and no 5xx."""

import json

import hypothesis.strategies as st
from depth import often
from hypothesis import HealthCheck, given, settings

VALUES = [
    None, True, 0, -1, 2**63, 1e308, "", "views", "page", "p1", "\0", "'; DROP", "1/0", [], {}, [[]], {"is": "sql"},
]  # fmt: skip
PAGE = {"is": "column", "name": "page"}
CUT = {"is": "do", "name": "slice", "of": [{"is": "do", "name": "lower", "of": [PAGE]}], "options": [1, None]}
TRACED = {"is": "traced", "reads": ["page"], "names": ["v"], "values": [CUT]}
KEY = {"is": "chosen", "names": ["user"]}
PLAN = [
    {"do": "table", "name": "views"},
    {"do": "filter", "of": 0, "function": {"is": "sql", "text": "size > 3"}},
    {"do": "join", "left": 0, "right": 1, "left_key": KEY, "right_key": KEY, "at_most": 20},
    {"do": "part", "of": 2, "key": KEY, "parts": ["u1", "u2"], "part": 1},
    {"do": "group_by", "of": 3, "key": {"is": "chosen", "names": ["page"]}},
    {"do": "map", "of": 4, "function": TRACED},
    {"do": "shave", "of": 5, "thickness": ["1/2"]},
]
BODIES = [
    ("/api/measure", {"plan": PLAN, "epsilon": "1/3", "name": "x", "mechanism": "geometric"}),
    ("/api/measure", {"plan": [PLAN[0], {"do": "map", "of": 0, "function": TRACED}], "within": 50}),
    ("/api/sql", {"query": "SELECT page, COUNT(*) FROM views GROUP BY page", "keys": ["p1", None], "epsilon": 0.5}),
    ("/api/sql", {"query": "SELECT SUM(size) FROM views", "bounds": {"size": [0, "7"]}, "epsilon": "1e-3"}),
    ("/api/measurements/views.cdf/observe", {"range": {"first": 1, "last": 5}, "level": 0.9}),
    ("/api/measurements/views.pages/observe", {"bins": ["p1", "p2"]}),
]


def test_what_is_changed_is_right_before(site):
    token = site.token("right", 1_000)
    found = [site.ask(token, "POST", path, body) for path, body in BODIES]
    assert {one.status for one in found} == {200}, [one.body for one in found if one.status != 200]


@st.composite
def changed(draw, whole):
    """The same with one part replaced, left out, doubled or added."""
    if isinstance(whole, dict) and whole and draw(st.integers(0, 5)):
        name = draw(st.sampled_from(sorted(whole)))
        how = draw(st.integers(0, 7))
        if how == 0:
            return {key: value for key, value in whole.items() if key != name}
        if how == 1:
            return {**whole, draw(st.sampled_from(["x", "is", "do", "analyst", ""])): whole[name]}
        return {**whole, name: draw(changed(whole[name]))}
    if isinstance(whole, list) and whole and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(whole) - 1))
        new = draw(st.sampled_from([[], [whole[place]] * 2])) if not draw(st.integers(0, 7)) else None
        return [*whole[:place], *([draw(changed(whole[place]))] if new is None else new), *whole[place + 1 :]]
    return draw(st.sampled_from(VALUES))


@settings(max_examples=often(250), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_request_that_is_nearly_right_fails_inside(site, data):
    path, body = data.draw(st.sampled_from(BODIES))
    for _ in range(data.draw(st.integers(0, 2))):
        body = data.draw(changed(body))
    token = getattr(site, "fuzzer", None) or site.token("fuzzer", 1)
    site.fuzzer = token
    found = site.ask(token, "POST", path, raw=json.dumps(body).encode())
    assert found.status in (200, 403, 409, 413, 422), (body, found.body)
    assert found.status == 200 or set(found.body["error"]) == {"status", "code", "message"}
