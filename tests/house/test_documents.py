"""Documents: every citation of a rule or an attack leads to a heading, every test and link that is named exists."""

import re
from pathlib import Path

import pytest

import wpinq

PACKAGE = Path(wpinq.__file__).parent
ROOT = PACKAGE.parent
TESTS = ROOT / "tests"
DOCUMENTS = PACKAGE / "docs"
CODE = [*PACKAGE.rglob("*.py"), *TESTS.rglob("*.py")]
NUMBERS = r"\d+(?:(?:, (?:and )?| and | or | to )\d+)*"
NAMES = {"rule": "privacy-rules.md", "attack": "attacks.md"}
NOT_THERE = re.compile(r"\bstudy\b|[(,:] ?design, [A-Z]|\.\./shared|[Ff]ield study", re.MULTILINE)


def headings(kind):
    found = re.findall(rf"^### {kind.title()} (\d+)\. \S", (DOCUMENTS / NAMES[kind]).read_text(), re.MULTILINE)
    assert len(set(found)) == len(found)
    return {int(number) for number in found}


def cited(text, kind):
    """The numbers that a text cites: "rules 3 and 4", "attacks 16 to 18, 25", "test_attack_08_rule_05_..."."""
    for many in re.findall(rf"\b{kind}s?\s+({NUMBERS})", text, re.IGNORECASE):
        numbers = [int(one) for one in re.findall(r"\d+", many)]
        yield from numbers
        for first, last in re.findall(r"(\d+) to (\d+)", many):
            yield from range(int(first), int(last))
    for many in re.findall(rf"_{kind}s?((?:_\d+)+)", text):
        yield from map(int, many.strip("_").split("_"))


def test_what_is_cited_is_read():
    text = '"""Attacks 7, 16 to 18;\nrules 5, and 25."""\ndef test_attack_08_rules_05_36_x(): attack 44, privacy rule 2'
    assert sorted(cited(text, "attack")) == [7, 8, 16, 16, 17, 18, 44]
    assert sorted(cited(text, "rule")) == [2, 5, 5, 25, 36]


@pytest.mark.parametrize("kind", NAMES)
def test_every_citation_leads_to_a_heading(kind):
    known = headings(kind)
    wrong = {
        (str(path.relative_to(ROOT)), number)
        for path in [*CODE, *DOCUMENTS.glob("*.md")]
        for number in cited(path.read_text(), kind)
        if number not in known
    }
    assert not wrong


@pytest.mark.parametrize("kind", NAMES)
def test_the_numbers_have_no_holes(kind):
    assert headings(kind) == set(range(1, max(headings(kind)) + 1))


def test_nothing_cites_what_a_reader_does_not_have():
    own = Path(__file__)
    found = [str(path.relative_to(ROOT)) for path in CODE if path != own and NOT_THERE.search(path.read_text())]
    assert not found


def test_every_test_that_a_document_names_exists():
    known = {path.stem for path in TESTS.rglob("test_*.py")}
    for path in TESTS.rglob("*.py"):
        known |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    for document in DOCUMENTS.glob("*.md"):
        assert set(re.findall(r"\btest_[a-z0-9]\w*[^\W_]\b", document.read_text())) <= known, document


@pytest.mark.parametrize("document", [*sorted(DOCUMENTS.glob("*.md")), ROOT / "README.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        assert target.startswith("https://") or (document.parent / target).exists(), target


def test_the_index_names_every_document():
    index = (DOCUMENTS / "README.md").read_text()
    for document in DOCUMENTS.glob("*.md"):
        assert document.name == "README.md" or f"({document.name})" in index
    assert "(wpinq/docs/README.md)" in (ROOT / "README.md").read_text()


def test_every_file_that_a_document_names_exists():
    for document in DOCUMENTS.glob("*.md"):
        for name in re.findall(r"`([a-z_/.]+\.(?:py|c|md))`", document.read_text()):
            assert any((place / name).exists() for place in (ROOT, PACKAGE, DOCUMENTS)), (document.name, name)
