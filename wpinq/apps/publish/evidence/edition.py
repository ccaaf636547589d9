"""The files of a period: tables in every format, pictures, and the evidence beside them."""

from __future__ import annotations

import io
import json
import platform
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from wpinq.apps.publish.answers import LOSS
from wpinq.apps.publish.evidence.registry_entry import entry
from wpinq.apps.publish.evidence.report import page, report
from wpinq.apps.publish.files import digest
from wpinq.apps.publish.price import Price
from wpinq.core import RHO
from wpinq.errors import installed, lacking
from wpinq.html.written import csv_bytes, in_text, json_text

if TYPE_CHECKING:
    from wpinq.apps.publish.answers import Answered
    from wpinq.apps.publish.file.declared import File
    from wpinq.apps.publish.file.periods import Period
    from wpinq.apps.publish.questions import Asked
    from wpinq.core import DataSet


@dataclass(frozen=True)
class Known:
    """What is known of a period before it is computed.

    Attributes:
        release: The release's name.
        file: What its file says.
        definition: A digest of what is asked.
        period: The period.
        data: Its records, of which nothing but public facts is told.
        began: When the period was begun, and what was spent by then. Of one that was computed before, all facts: what
            they say of the ledger of then stays.
    """

    release: str
    file: File
    definition: str
    period: Period
    data: DataSet
    began: Mapping[str, Any]


INTERVALS = "intervals"
"""What a Parquet file tells of which columns hold the ends of which intervals."""
OF_THEN = ("by itself", "budget", "ledger")
"""Facts of the state of a ledger, which goes on."""
FACTS, REPORT, PAGE, ENTRY = "evidence.json", "report.md", "report.html", "registry.json"


def compose(
    known: Known, questions: Sequence[Asked], answers: Mapping[str, Answered]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The facts and files of a period. Everything in them was released, declared, or is a code.

    Args:
        known: What is known of the period.
        asked: The questions.
        answers: Their answers, by name.
    """
    files: dict[str, bytes] = {}
    missing = any(priced.question.plot for priced in questions) and lacking("plot")
    if missing:
        warnings.warn(f"{known.period.name}: is without pictures: {missing}.", RuntimeWarning, stacklevel=2)
    for priced in questions:
        answer = answers[priced.question.name]
        for name, (cells, ends) in answer.tables.items():
            files |= tabled(name, cells, ends, answer.abouts[name])
        if priced.question.plot and not missing:
            files |= {f"{name}.png": _picture(draw) for name, draw in answer.draw.items()}
    facts = _facts(known, questions, answers)
    facts["files"] = {name: sha256(content).hexdigest() for name, content in sorted(files.items())}
    text = report(facts, known.file.about, {name: table for answer in answers.values() for name, table in
                                            answer.tables.items()})  # fmt: skip
    files |= {
        FACTS: (json.dumps(facts, indent=1) + "\n").encode(),
        REPORT: text.encode(),
        PAGE: page(text, str(facts["title"])).encode(),
        ENTRY: (json.dumps(entry(facts, known.file.about), indent=1) + "\n").encode(),
    }
    return {**facts, "digest": digest(files)}, files


def tabled(name: str, cells: pl.DataFrame, ends: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, bytes]:
    """A table in every format, each number with the ends of its interval; Parquet and JSON hold what describes it."""
    stated = {key: value for key, value in about.items() if key != "date"}  # the day of the computing, not of the data
    names = {column: ends_of(column, cells.columns) for column in ends}
    table = pl.DataFrame(
        [*cells.get_columns(), *(end.alias(name) for column, pair in ends.items()
                                 for name, end in zip(names[column], pair, strict=True))]
    )  # fmt: skip
    both, parquet = in_text(table, pl.Object), io.BytesIO()
    both.write_parquet(parquet, metadata={"wpinq": json.dumps(stated), INTERVALS: json.dumps(names)})
    content = {**stated, "columns": both.columns, "rows": both.rows()}
    return {
        f"{name}.csv": csv_bytes(both),
        f"{name}.parquet": parquet.getvalue(),
        f"{name}.json": (json_text(content) + "\n").encode(),
    }


def ends_of(column: str, taken: Sequence[str]) -> tuple[str, str]:
    """The names of the columns that hold where the interval of each number of a column begins and ends.

    >>> ends_of("views", ["page", "views", "views_low"])
    ('views_interval_low', 'views_interval_high')
    """
    ends = f"{column}_low", f"{column}_high"
    return ends_of(f"{column}_interval", taken) if set(ends) & set(taken) else ends


def restored(files: Mapping[str, bytes], *, ends: bool = False) -> dict[str, Any]:
    """The tables of a period from its files, by name; with `ends`, the ends of intervals apart from the numbers."""
    result: dict[str, Any] = {}
    for file, content in files.items():
        if not file.endswith(".parquet"):
            continue
        both = pl.read_parquet(io.BytesIO(content))
        noisy = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[INTERVALS])
        pairs = {name: (both[low], both[high]) for name, (low, high) in noisy.items()}
        cells = both.drop([name for pair in noisy.values() for name in pair])
        result[file.removesuffix(".parquet")] = (cells, pairs) if ends else both
    return result


def naming_of(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """The columns that name the rows of each table, as the evidence of a period says it."""
    tables = [table for question in facts["questions"] for table in question["tables"].items()]
    return {name: about["keys"] for name, about in tables if "keys" in about}


def _picture(draw: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plot.png"
        draw(path)
        return path.read_bytes()


def _facts(known: Known, questions: Sequence[Asked], answers: Mapping[str, Answered]) -> dict[str, Any]:
    from wpinq.apps.publish.budgets import said

    file, data, period, state = known.file, known.data, known.period, known.data.ledger.state()
    price, promise, spent = sum((priced.price for priced in questions), Price()), state.promise, state.spent
    epsilon, delta = price.promised(promise)
    facts = {
        "title": f"{file.about.title or known.release}, {period.name}",
        "release": known.release,
        "period": {"name": period.name, "start": str(period.start), "end": str(period.end), "zone": file.period.zone},
        "at": known.began["at"],
        "unit": data.unit.text,
        "protects": data.unit.protects,
        "columns": str(data.reader.schema),
        "before the bound": {"where": file.data.where, "derive": file.data.derive},
        "cost": price.facts,
        "by itself": {"epsilon": str(epsilon), "delta": str(delta)},
        "budget": {
            "promise": promise.text, "accounting": promise.accounting, "in words": said(file.budget),
            "rho" if promise.accounting == RHO else "epsilon": str(promise.budget), "delta": str(promise.failing),
            "spent before": known.began.get("spent before"), "spent after": str(spent.epsilon),
            "delta spent after": str(spent.delta),
            **({"sums before": known.began.get("sums before"), "sums after": state.told} if spent.curves else {}),
        },
        "questions": [_question(priced, answers[priced.question.name]) for priced in questions],
        "records": {"version": data.version},
        "ledger": {"rows": state.rows, "head": state.code},
        "definition": known.definition,
        "wpinq": installed(),
        "python": platform.python_version(),
    }  # fmt: skip
    return {name: known.began.get(name, fact) if name in OF_THEN else fact for name, fact in facts.items()}


def _question(priced: Asked, answer: Answered) -> dict[str, Any]:
    return {
        "name": priced.question.name,
        "asked": priced.text,
        **priced.price.facts,
        "left out": left_out(answer),
        "groups": "declared"
        if priced.question.keys is not None
        else "above a threshold"
        if priced.price.delta
        else "one or none",
        "noise": [
            {"column": item.column, "mechanism": item.mechanism, "scale": item.scale, "half width": item.half_width}
            for item in priced.expected
        ],
        "tables": {
            name: {
                "rows": cells.height,
                "keys": answer.named(name),
                "threshold": answer.abouts[name].get("threshold"),
                "beside noise": answer.abouts[name].get("beside noise", []),
            }
            for name, (cells, _) in answer.tables.items()
        },
    }


def left_out(answer: Answered) -> list[str]:
    """What the bound and the threshold leave out, as sentences with a size; nothing where it was not asked."""
    sentences = []
    for name, (cells, ends) in answer.tables.items():
        if name.endswith(LOSS):
            low, high = ends["count"]
            parts = [
                f"about {round(row[1]):,} {row[0]} ({round(least):,} to {round(most):,})"
                for row, least, most in zip(cells.rows(), low, high, strict=True)
            ]
            sentences.append(f"What the bound and the threshold leave out of these numbers: {'; '.join(parts)}.")
    return sentences
