"""The table of proofs: every operator is in it, and what it calls proved is a theorem that nothing is left out of."""

import re
from pathlib import Path

import coq

from wpinq.core.operators import methods as operators

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "wpinq/docs/proofs.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines() if line.startswith("| ")]
LEFT_OUT = (
    r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Abort|Hypothes[ie]s\s+\w+\s*:\s*False)\b|Unset \w+ Checking"
)


def test_every_operator_has_a_row():
    named = {name for first, *_ in ROWS for name in re.findall(r"`(\w+)`", first)}
    assert set(operators.__all__) <= named


def test_what_is_proved_is_a_theorem():
    known = {f"{file}.{name}" for file, names in coq.theorems().items() for name in names}
    cited = {name for _, proved, *_ in ROWS for name in re.findall(r"`(\w+\.\w+)`", proved)}
    assert cited
    assert cited <= known


def test_every_test_that_is_named_exists():
    cited = {name for *_, tested in ROWS for name in re.findall(r"`(tests/[\w/.]+)`", tested)}
    assert cited
    assert not [name for name in cited if not (ROOT / name).exists()]


def test_no_proof_leaves_anything_out():
    found = {path.name: re.findall(LEFT_OUT, _code(path.read_text())) for path in coq.PROOFS.glob("*.v")}
    assert not {name: words for name, words in found.items() if words}
    assert re.findall(LEFT_OUT, _code("Lemma x : False. (* as above *)\nAdmitted."))


def _code(text):
    return re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
