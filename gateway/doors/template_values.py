"""What values do in a template that is filled in: how they are looked at, printed, joined and reckoned with, all with an end.

So many characters of result, so many turns of all loops together, a time. The language itself is in `template_language`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from jinja2 import StrictUndefined, UndefinedError, filters, pass_context
from jinja2.runtime import Context, Undefined, markup_join, str_join

RESULT_MAX = 1_000_000
"""Characters that one part may become."""
TURNS_MAX = 10_000
"""Turns of all loops together while one part is filled in."""
SECONDS_MAX = 1.0
"""How long it may take to fill one part in."""
NUMBER_MAX = 1e15
ROUND_MAX = 10
BUDGET = "_budget"
TOO_LONG = f"it becomes longer than {RESULT_MAX} characters"


class TemplateError(Exception):
    """A template cannot be read, or not be filled in: why, in one dull sentence, its line, the variable that is meant."""

    def __init__(self, why: str, line: int | None = None, variable: str | None = None) -> None:
        """Keep them; nothing of a value is in any of them."""
        super().__init__(why)
        self.why = why
        self.line = line
        self.variable = variable


class MissingError(UndefinedError):
    """A variable that is not there."""

    def __init__(self, name: str, _: str | None = None) -> None:
        super().__init__("missing")
        self.variable = name


class Missing(StrictUndefined):
    """What stands for a variable that is not there: it tells its name when it is used."""

    def __init__(self, hint: str | None = None, obj: Any = None, name: str | None = None, exc: Any = None) -> None:  # noqa: ANN401, ARG002
        super().__init__(hint, obj, name, partial(MissingError, name or ""))  # type: ignore[arg-type]


@dataclass(slots=True)
class Budget:
    """What is left of the work that may be done."""

    until: float
    turns: int = TURNS_MAX
    left: int = RESULT_MAX

    def turn(self) -> None:
        """One turn of a loop."""
        self.turns -= 1
        if self.turns < 0:
            raise TemplateError(f"its loops make more than {TURNS_MAX} turns")
        self.look()

    def look(self, added: int = 0) -> None:
        """See whether there is time left, and room for so many characters more."""
        self.left -= added
        if self.left < 0:
            raise TemplateError(TOO_LONG)
        if time.monotonic() > self.until:
            raise TemplateError(f"it takes more than {SECONDS_MAX:g} s")


@pass_context
def counted(context: Context, items: Any) -> Iterator[Any]:  # noqa: ANN401  (any value of JSON)
    """What a loop goes over, turn by turn."""
    if not isinstance(items, list | dict):
        if isinstance(items, Undefined):
            str(items)  # says that it is missing
        raise TemplateError("only a list can be gone over")
    for item in items:
        context[BUDGET].turn()
        yield item


@pass_context
def watched(context: Context, value: Any) -> Any:  # noqa: ANN401
    """A value as it is, while there is time left: what has neither loops nor gaps has an end too."""
    context[BUDGET].look()
    return value


@pass_context
def together(context: Context, items: list[Any]) -> str:
    """What `~` puts together, each as it would stand in a gap; the result has an end before it is made."""
    context[BUDGET].look()
    texts = [printed(item) for item in items]
    if sum(len(str(text)) for text in texts) > RESULT_MAX:
        raise TemplateError(TOO_LONG)
    return markup_join(texts) if context.eval_ctx.autoescape else str_join(texts)


def join(environment: Any, items: Any, between: Any = "") -> str:  # noqa: ANN401
    """Join, where the result has an end."""
    between = str(between)
    if not isinstance(items, list) or len(items) * len(between) > RESULT_MAX:
        raise TemplateError("only a list of bearable length can be joined")
    texts = [printed(item) for item in items]
    if sum(len(str(text)) + len(between) for text in texts) > RESULT_MAX:
        raise TemplateError(TOO_LONG)
    joined: str = filters.do_join(environment, texts, between)
    return joined


join.jinja_pass_arg = filters.do_join.jinja_pass_arg  # type: ignore[attr-defined]  # the environment's autoescape


def rounded(value: Any, precision: Any = 0) -> float:  # noqa: ANN401
    """Round a number to so many places, not too many."""
    number(value)
    if not isinstance(precision, int) or not 0 <= precision <= ROUND_MAX:
        raise TemplateError(f"a number is rounded to 0 to {ROUND_MAX} places")
    return float(round(value, precision))


def absolute(value: Any) -> Any:  # noqa: ANN401
    """A number without its sign."""
    number(value)
    return abs(value)


def number(value: object) -> None:
    """Refuse what is no number of bearable size. Raises TemplateError, MissingError."""
    if isinstance(value, Undefined):
        str(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= NUMBER_MAX:
        raise TemplateError("only numbers of bearable size can be reckoned with")


def printed(value: object) -> object:
    """What stands in a gap: texts and numbers as they are, nothing for null; lists and objects have no form."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float | Undefined):
        return value
    raise TemplateError("a list or an object stands in a gap; name one of its members, or join it")
