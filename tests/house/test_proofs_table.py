"""The tables of operators and of proofs: every operator is there, and what is called proved is a whole theorem."""

import re
from pathlib import Path

import coq

from wpinq.core import methods

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / f"wpinq/docs/{name}.md").read_text() for name in ("operators", "proofs")}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for text in PAGES.values()
    for line in text.splitlines()
    if line.startswith("| ")
]
THEOREM = r"`([A-Z]\w+\.(?!v`)\w+)`"
LEFT_OUT = (
    r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Abort|Hypothes[ie]s\s+\w+\s*:\s*False)\b|Unset \w+ Checking"
)


def test_every_operator_has_a_row_that_says_what_proves_it():
    rows = [cells for cells in ROWS if re.search(rf"{THEOREM}|^by hand", cells[-1])]
    proved = {name for first, *_ in rows for name in re.findall(r"`(\w+)`", first)}
    missing = set(methods.OPERATORS) - proved
    assert not missing, f"{sorted(missing)}: a row in docs/operators.md that ends in its theorem or `by hand`"


def test_what_is_proved_is_a_theorem():
    known = {f"{file}.{name}" for file, names in coq.theorems().items() for name in names}
    cited = {name for text in PAGES.values() for name in re.findall(THEOREM, text)}
    assert len(cited) > 50
    assert cited <= known


def test_every_test_that_is_named_exists():
    cited = {name for text in PAGES.values() for name in re.findall(r"`(tests/[\w/.]+)`", text)}
    assert cited
    assert not [name for name in cited if not (ROOT / name).exists()]


def test_no_proof_leaves_anything_out():
    found = {path.name: re.findall(LEFT_OUT, _code(path.read_text())) for path in coq.PROOFS.glob("*.v")}
    assert not {name: words for name, words in found.items() if words}
    assert re.findall(LEFT_OUT, _code("Lemma x : False. (* as above *)\nAdmitted."))


def _code(text):
    return re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
