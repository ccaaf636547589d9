"""The dataflow of a recovered stream: the script of the last run, or one that measures more.

What is kept of a stream is its records, so any question about them is computed, and charged, as for a stream that
never stopped. But a script that measures other things under the names of before would mix two series of answers, and
one that was changed by mistake would be charged; so what was measured before must be there, unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.errors import PlanError, SourceError
from wpinq.storage import write

if TYPE_CHECKING:
    from wpinq import Measurement

NAME = "dataflow"


class KeptDataflow:
    """What a recovered stream measures, and since when.

    Args:
        folder: The directory of the stream; None where nothing is kept.
        script: A digest of the script of this run.
        closed: How many epochs are kept.
        whole: Whether the script does nothing but measure, so that its questions are known before they are charged.

    Attributes:
        since: For each measurement how many epochs had closed when it was added; it answers from the next one on.

    Raises:
        SourceError: It cannot be read.
        PlanError: It is another script, whose questions are not known before they are charged.
    """

    def __init__(self, folder: Path | None, script: bytes, closed: int, *, whole: bool) -> None:
        self._path, self._script, self._closed = folder and folder / NAME, script.hex(), closed
        self._questions: dict[str, str] = {}
        self.since: dict[str, int] = {}
        if self._path is None or not self._path.exists():
            return
        try:
            saved = json.loads(self._path.read_bytes())
            self._same, self._questions, self.since = (
                saved["script"] == self._script,
                saved["questions"],
                saved["since"],
            )
        except (OSError, ValueError, LookupError, TypeError):
            raise SourceError(f"--recover {folder}: its dataflow cannot be read; give a new directory.") from None
        if not self._same and not whole:
            raise PlanError(
                "--recover: the script was changed, and observes while it measures, so what it will be charged for is "
                "not known before; give a new directory."
            )

    def check(self, measurements: Mapping[str, Measurement]) -> None:
        """Refuse measurements that do not extend those of before, before they are charged.

        Raises:
            PlanError: One of before is missing, or another one now.
        """
        if not self._questions or self._same:
            return
        for name, question in self._questions.items():
            if name not in measurements or measurements[name].question != question:
                what = "is missing" if name not in measurements else "measures something else"
                raise PlanError(
                    f"--recover: what was kept belongs to another dataflow: {name!r} {what} now; leave what was "
                    "measured as it was and add to it, or give a new directory. Nothing was charged."
                )

    def keep(self, measurements: Mapping[str, Measurement]) -> None:
        """Write down what is measured from now on.

        Raises:
            SourceError: It cannot be written.
        """
        self.since = {name: self.since.get(name, self._closed) for name in measurements}
        if self._path is None:
            return
        questions = {name: measurement.question for name, measurement in measurements.items()}
        try:
            write(
                self._path, json.dumps({"script": self._script, "questions": questions, "since": self.since}).encode()
            )
        except OSError as error:
            raise SourceError(f"--recover {self._path.parent}: {error.strerror}; it must be writable.") from None
