"""The example of noises: the numbers of its page, and which noise is better."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples import laplace_or_gaussian

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\|? +(\d+)(?: \|)?" + 4 * r" +([\d.,]+)(?: \|)?" + r" +(\w+)", re.MULTILINE)


def rows(text: str) -> dict[int, tuple[list[float], str]]:
    return {
        int(bins): ([float(number.replace(",", "")) for number in numbers], best)
        for bins, *numbers, best in ROW.findall(text)
    }


def test_the_page_s_numbers(tmp_path, capsys, monkeypatch):
    page = rows((ROOT / "wpinq" / "docs" / "noise.md").read_text())
    monkeypatch.setattr(laplace_or_gaussian, "BINS", tuple(page))
    laplace_or_gaussian.main(tmp_path)
    assert rows(capsys.readouterr().out) == page
    assert len(page) == 7
    for bins, ((epsilons, renyi, gaussian, exact), best) in page.items():
        assert exact <= gaussian <= 1.1 * exact + 1, "the ledger is within a tenth of what is possible"
        assert renyi <= epsilons == pytest.approx(3 * bins, rel=0.01)
        assert best == ("gaussian" if gaussian < epsilons else "geometric")
    assert (tmp_path / "noise.png").read_bytes().startswith(b"\x89PNG")
