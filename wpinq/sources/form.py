"""How a source is read, where its name and its columns do not tell: what its curator declares of its form.

Everything here is declared and nothing is found out from records. What goes wrong with a declaration is refused before
a record is read; what does not fit it is null or dropped, each field and row by itself (privacy rule 14).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypedDict, Unpack

from wpinq.errors import SourceError

ANEW = "write such files anew first, for example with iconv -f utf-16 -t utf-8"
SEPARATORS = ";\t|"
"""What else than a comma stands between the fields of files that are called CSV."""


class Words(TypedDict, total=False):
    """What may be said of the form of a source; `protect` says what each means."""

    header: bool
    format: str | None
    separator: str | None
    decimal: str | None
    encoding: str | None
    table: str | None
    tz: str | None


@dataclass(frozen=True, slots=True)
class Form:
    """The declared form of a source.

    Attributes:
        header: Whether the first line of a CSV or TSV file gives the names of its columns.
        format: The format of files, where their ending does not tell it, or the form of the lines of a log.
        separator: The character between the fields of a CSV file.
        decimal: The decimal mark of its numbers.
        encoding: Its encoding.
        table: The table of a database file.
        tz: The zone in whose time instants are given.
    """

    header: bool = True
    format: str | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    table: str | None = None
    tz: str | None = None

    @property
    def text(self) -> str:
        """All that was said, for fingerprints; nothing where nothing was, and as it was before there was more."""
        declared = [(field_.name, getattr(self, field_.name)) for field_ in fields(self)[1:]]
        return "; ".join(
            ([] if self.header else ["no header"])
            + [f"{name} {value!r}" for name, value in declared if value is not None]
        )

    def only(self, where: str, *allowed: str) -> None:
        """Refuse what means nothing for a source.

        Raises:
            SourceError: Something else than these was said.
        """
        for field_ in fields(self)[1:]:
            if getattr(self, field_.name) is not None and field_.name not in (*allowed, "tz"):
                raise SourceError(f"{where}: {field_.name}= means nothing here; {_MEANT[field_.name]}.")

    def delimiter(self, form: str) -> str:
        """The byte between fields.

        Raises:
            SourceError: It cannot be one.
        """
        mark = self.separator
        if mark is None:
            return "\t" if form == "tsv" else ","
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0' or mark.isalnum():
            raise SourceError("separator= takes one character, such as ';' or a tab.")
        return mark

    def comma(self) -> bool:
        """Whether numbers have a decimal comma.

        Raises:
            SourceError: There is no such mark.
        """
        if self.decimal not in (None, ".", ","):
            raise SourceError("decimal= takes '.' or ','.")
        return self.decimal == ","

    def charset(self) -> str | None:
        """The encoding of text, by the name that Python has for it; None for UTF-8.

        One in which a byte means something by its neighbours would let a damaged line change the next one.

        Raises:
            SourceError: It is not known, or not one of single bytes that agree with ASCII.
        """
        import codecs

        if self.encoding is None:
            return None
        try:
            name = codecs.lookup(self.encoding).name
            if name in ("utf-8", "utf-8-sig", "ascii"):
                return None
            text = bytes(range(256)).decode(name, "replace")
        except (LookupError, UnicodeError):
            name = text = ""
        single = len(text) == 256 and text[:128] == bytes(range(128)).decode()
        if not single or any(character.isascii() for character in text[128:]):
            raise SourceError(
                f"encoding= takes utf-8 and encodings of one byte a character, such as latin-1 or cp1252; {ANEW}."
            )
        return name


def declared_form(**words: Unpack[Words]) -> Form:
    """The form that these words declare.

    Raises:
        SourceError: A time zone is not known.
    """
    form = Form(**words)
    if form.tz is not None:
        from wpinq.sources.zoned import check_zone

        check_zone(form.tz)
    return form


FORMS = {"csv": "csv", "tsv": "tsv", "pairs": "pairs", "json": "json", "jsonl": "json", "ndjson": "json",
         "log": "log", "parquet": "parquet", "arrow": "arrow", "feather": "arrow", "ipc": "arrow"}  # fmt: skip
"""Formats of files by name; any other name or string is the format of a log."""


def file_form(format_: str | None) -> str | None:
    """The form of files of a declared format; None where their ending tells it."""
    return None if format_ is None else FORMS.get(format_, "log")


_MEANT = {
    "format": "it is for files",
    "separator": "it is for CSV files",
    "decimal": "it is for the numbers of CSV files",
    "encoding": "it is for CSV files",
    "table": "it is for DuckDB and SQLite files",
}
