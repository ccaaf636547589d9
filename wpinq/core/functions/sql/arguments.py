"""Arguments of SQL functions: parts of one of some types, and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wpinq.core.functions.sql.terms import Term, to
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.core.functions.sql.translator import Translator


def argument(translator: Translator, node: Any, *kinds: Kind) -> Term:
    """The argument of a function, of one of these types.

    Raises:
        PlanError: It is of another.
    """
    term = translator.term(node)
    if term.kind is None or (term.quoted and Kind.TEXT not in kinds):
        return to(term, kinds[0], translator.call)
    if term.kind not in kinds:
        wanted = " or ".join(kind.value for kind in kinds)
        raise PlanError(f"{translator.call}: {term.text} is of type {term.spoken}, and {wanted} is needed; cast it.")
    return term


def whole(translator: Translator, part: Any, node: Any, default: int | None) -> int | None:
    """A whole number that is written out.

    Raises:
        PlanError: It is something else.
    """
    if part is None:
        return default
    term = translator.term(part)
    if not isinstance(term.constant, int) or isinstance(term.constant, bool) or abs(term.constant) > 2**31:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write positions as whole numbers.")
    return term.constant


def words(translator: Translator, part: Any, node: Any) -> str:
    """A text that is written out, in quotes.

    Raises:
        PlanError: It is something else.
    """
    term = translator.term(part) if part is not None else None
    if term is None or not term.quoted:
        raise PlanError(f"{translator.call}: {translator.spell(node)}: write {term.text if term else 'it'} as a quoted "
                        "text.")  # fmt: skip
    return str(term.constant)
