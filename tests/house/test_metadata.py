"""What an index shows of the package: words that people search for, versions of Python, addresses."""

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from wpinq.core.functions.code import bytecode

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ADDRESSES = {"Documentation", "Source", "Changelog", "Issues", "Security"}


def unfilled(urls):
    """The names of addresses that nothing public stands behind yet (RFC 2606 keeps .invalid free for ever)."""
    return sorted(name for name, url in urls.items() if urlsplit(url).hostname.endswith(".invalid"))


def test_it_is_found_by_the_words_of_the_field():
    assert "differential privacy" in PROJECT["description"]
    assert len(PROJECT["description"]) <= 512, "an index takes no more"
    words = PROJECT["keywords"]
    assert len({word.lower() for word in words}) == len(words)
    assert {"differential privacy", "statistical disclosure control", "k-anonymity", "GDPR", "HIPAA"} <= set(words)


def test_every_python_that_is_taken_is_listed():
    """Newer ones are taken too, and see fewer functions (`core/functions/code/bytecode.py`)."""
    least = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1]
    listed = re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["classifiers"]))
    assert [int(minor) for minor in listed] == list(range(int(least), bytecode.NEWEST[1] + 1))


def test_classifiers_are_sorted_and_say_nothing_of_the_licence():
    """The licence is said by `license` (PEP 639)."""
    assert PROJECT["classifiers"] == sorted(set(PROJECT["classifiers"]))
    assert not [one for one in PROJECT["classifiers"] if one.startswith("License ::")]
    assert (ROOT / "wpinq" / "py.typed").exists() == ("Typing :: Typed" in PROJECT["classifiers"])


def test_a_placeholder_is_found():
    assert unfilled({"Source": "https://source.invalid/", "Issues": "https://wpinq.org/invalid"}) == ["Source"]


def test_addresses_are_filled_in():
    """Until the project is public it skips, and names what is missing; an address that is no https fails at once."""
    urls = PROJECT["urls"]
    assert set(urls) == ADDRESSES
    assert all(url.startswith("https://") and urlsplit(url).hostname for url in urls.values()), urls
    if missing := unfilled(urls):
        pytest.skip(f"to fill in in pyproject.toml before a release: {', '.join(missing)}")


def test_the_citation_has_the_version():
    cited = re.search(r"version = \{(.+?)\}", (ROOT / "wpinq" / "docs" / "installing.md").read_text())
    assert cited[1] == PROJECT["version"]
    citation = dict(re.findall(r"^([\w-]+): (.+)$", (ROOT / ".docs" / "CITATION.cff").read_text(), re.MULTILINE))
    assert citation["version"] == PROJECT["version"] and citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "type"} <= set(citation)


def test_where_a_hole_is_told_leads_to_the_page_that_says_how():
    told = (ROOT / ".github" / "SECURITY.md").read_text()
    for page, heading in re.findall(r"\]\(\.\./(\S+?)#([\w-]+)\)", told):
        assert f"\n## {heading.replace('-', ' ').capitalize()}\n" in (ROOT / page).read_text()
