"""The language of templates: what Jinja2 knows, less all that has no end and all that reaches beyond the values given.

Gaps, conditions, loops over lists, some filters. No calls, no assignments, no macros, no loaders: a value is looked up by
name in what was given and nowhere else, so that nothing of Python can be reached. Work has an end: so many characters of
source and of result, so many turns of all loops together, a time.
"""

import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, UndefinedError, filters, nodes, pass_context
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import SandboxedEnvironment

SOURCE_MAX = 131_072
"""Characters of one part of a template."""
NODES_MAX = 5_000
"""Words of the language in one part."""
DEPTH_MAX = 40
"""How deep they may be nested."""
RESULT_MAX = 1_000_000
"""Characters that one part may become."""
TURNS_MAX = 10_000
"""Turns of all loops together while one part is filled in."""
SECONDS_MAX = 1.0
"""How long it may take to fill one part in."""
NUMBER_MAX = 1e15
ROUND_MAX = 10

ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.For,
    nodes.If, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Concat, nodes.Add,
    nodes.Sub, nodes.Mul, nodes.Div, nodes.Neg, nodes.Pos, nodes.Filter, nodes.Test, nodes.List, nodes.Tuple,
    nodes.Keyword,
)  # fmt: skip
FILTERS = (
    "abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "join", "last", "length",
    "lower", "round", "string", "title", "trim", "truncate", "upper", "urlencode",
)  # fmt: skip
TESTS = (
    "defined", "undefined", "none", "string", "number", "mapping", "sequence", "true", "false", "odd", "even", "eq",
    "ne", "lt", "le", "gt", "ge", "in",
)  # fmt: skip
LOOP = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})
BUDGET = "_budget"
NAME = "a template"


class TemplateError(Exception):
    """A template cannot be read, or not be filled in: why, in one dull sentence, its line, the variable that is meant."""

    def __init__(self, why: str, line: int | None = None, variable: str | None = None) -> None:
        """Keep them; nothing of a value is in any of them."""
        super().__init__(why)
        self.why = why
        self.line = line
        self.variable = variable


class _MissingError(UndefinedError):
    """A variable that is not there."""

    def __init__(self, name: str, _: str | None = None) -> None:
        super().__init__("missing")
        self.variable = name


class _Missing(StrictUndefined):
    """What stands for a variable that is not there: it tells its name when it is used."""

    def __init__(self, hint: str | None = None, obj: Any = None, name: str | None = None, exc: Any = None) -> None:  # noqa: ANN401, ARG002
        super().__init__(hint, obj, name, partial(_MissingError, name or ""))  # type: ignore[arg-type]


@dataclass(slots=True)
class _Budget:
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
            raise TemplateError(f"it becomes longer than {RESULT_MAX} characters")
        if time.monotonic() > self.until:
            raise TemplateError(f"it takes more than {SECONDS_MAX:g} s")


@pass_context
def _counted(context: Context, items: Any) -> Iterator[Any]:  # noqa: ANN401  (any value of JSON)
    """What a loop goes over, turn by turn."""
    if not isinstance(items, list | dict):
        if isinstance(items, Undefined):
            str(items)  # says that it is missing
        raise TemplateError("only a list can be gone over")
    for item in items:
        context[BUDGET].turn()
        yield item


def _join(environment: Any, items: Any, between: Any = "") -> str:  # noqa: ANN401
    """Join, where the result has an end."""
    if not isinstance(items, list) or len(items) * len(str(between)) > RESULT_MAX:
        raise TemplateError("only a list of bearable length can be joined")
    joined: str = filters.do_join(environment, items, str(between))
    return joined


_join.jinja_pass_arg = filters.do_join.jinja_pass_arg  # type: ignore[attr-defined]  # the environment's autoescape


def _rounded(value: Any, precision: Any = 0) -> float:  # noqa: ANN401
    _number(value)
    if not isinstance(precision, int) or not 0 <= precision <= ROUND_MAX:
        raise TemplateError(f"a number is rounded to 0 to {ROUND_MAX} places")
    return float(round(value, precision))


def _absolute(value: Any) -> Any:  # noqa: ANN401
    _number(value)
    return abs(value)


def _number(value: object) -> None:
    if isinstance(value, Undefined):
        str(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= NUMBER_MAX:
        raise TemplateError("only numbers of bearable size can be reckoned with")


def _printed(value: object) -> object:
    """What stands in a gap: texts and numbers as they are, nothing for null; lists and objects have no form."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float | Undefined):
        return value
    raise TemplateError("a list or an object stands in a gap; name one of its members, or join it")


class _Language(SandboxedEnvironment):
    """Jinja2, with members of objects, items of lists and the loop's own words as all that can be looked up."""

    intercepted_binops = frozenset({"+", "-", "*", "/"})
    intercepted_unops = frozenset({"+", "-"})

    def __init__(self, *, autoescape: bool) -> None:
        super().__init__(
            autoescape=autoescape, undefined=_Missing, finalize=_printed, keep_trailing_newline=True, cache_size=0
        )
        self.globals.clear()
        known = self.filters
        own = {"join": _join, "round": _rounded, "abs": _absolute, "counted": _counted}
        self.filters = {name: known[name] for name in FILTERS} | own
        self.tests = {name: self.tests[name] for name in TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401
        """A member by its name; never an attribute of Python's."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:  # noqa: ANN401
        """A member of an object, an item of a list, a word of the loop's."""
        if isinstance(obj, Undefined):
            str(obj)
        if isinstance(obj, dict) and isinstance(argument, str) and argument in obj:
            return obj[argument]
        number = isinstance(argument, int) and not isinstance(argument, bool)
        if isinstance(obj, list) and number and -len(obj) <= argument < len(obj):
            return obj[argument]
        if isinstance(obj, LoopContext) and argument in LOOP:
            return getattr(obj, argument)
        return self.undefined(obj=obj, name=str(argument)[:64])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Reckon with numbers alone: `~` puts texts together."""
        _number(left)
        _number(right)
        return super().call_binop(context, operator, left, right)

    def call_unop(self, context: Context, operator: str, arg: Any) -> Any:  # noqa: ANN401
        """The same with one number."""
        _number(arg)
        return super().call_unop(context, operator, arg)


PLAIN = _Language(autoescape=False)
HTML = _Language(autoescape=True)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a template, read: the names that it takes from outside, and what fills it in."""

    names: frozenset[str]
    made: Template

    def fill(self, values: Mapping[str, Any]) -> str:
        """The text with its gaps filled. Raises TemplateError."""
        budget = _Budget(time.monotonic() + SECONDS_MAX)
        pieces: list[str] = []
        try:
            for piece in self.made.generate({**values, BUDGET: budget}):
                budget.look(len(piece))
                pieces.append(piece)
        except _MissingError as error:
            raise TemplateError("a variable is missing", _line(error), error.variable) from None
        except TemplateError as error:
            raise TemplateError(error.why, _line(error), error.variable) from None
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the template's)
            raise TemplateError("an expression cannot be worked out with these values", _line(error)) from None
        return "".join(pieces)


def _line(error: BaseException) -> int | None:
    """The line of the template where it happened."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == NAME]
    return lines[-1] if lines else None


def read(source: str, *, html: bool) -> Part:
    """Read one part of a template. Raises TemplateError."""
    if len(source) > SOURCE_MAX:
        raise TemplateError(f"it is longer than {SOURCE_MAX} characters")
    language = HTML if html else PLAIN
    try:
        tree = language.parse(source, NAME, NAME)
        _look_through(tree)
        names = frozenset(find_undeclared_variables(tree))
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.iter.lineno)
        code = language.compile(tree, NAME, NAME)
        return Part(names, Template.from_code(language, code, {}))
    except TemplateSyntaxError as error:
        raise TemplateError("this is not a template: " + (error.message or "unreadable"), error.lineno) from None
    except (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError):
        raise TemplateError("it is nested too deep, or cannot be read") from None


def _look_through(tree: nodes.Template) -> None:
    """Refuse what the language does not have."""
    count = 0
    waiting: list[tuple[nodes.Node, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        line = getattr(node, "lineno", None)
        if count > NODES_MAX or depth > DEPTH_MAX:
            raise TemplateError(f"it has more than {NODES_MAX} words, or nests them deeper than {DEPTH_MAX}", line)
        if type(node) not in ALLOWED or (isinstance(node, nodes.For) and node.recursive):
            raise TemplateError(f"{type(node).__name__.lower()} is not part of the language of templates", line)
        if isinstance(node, nodes.Name) and node.name.startswith("_"):
            raise TemplateError("names do not begin with _", line)
        for kind, known in ((nodes.Filter, FILTERS), (nodes.Test, TESTS)):
            if isinstance(node, kind) and node.name not in known:
                raise TemplateError(f"there is no such {kind.__name__.lower()}; there are {', '.join(known)}", line)
        waiting += [(inner, depth + 1) for inner in node.iter_child_nodes()]
