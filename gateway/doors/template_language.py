"""The language of templates: what Jinja2 knows, less all that has no end and all that reaches beyond the values given.

Gaps, conditions, loops over lists, some filters. No calls, no assignments, no macros, no loaders: a value is looked up by
name in what was given and nowhere else, so that nothing of Python can be reached. Work has an end: so many characters of
source and of result, so many turns of all loops together, a time.
"""

import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Template, TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import SandboxedEnvironment

from gateway.doors.template_values import (
    BUDGET,
    SECONDS_MAX,
    Budget,
    Missing,
    MissingError,
    TemplateError,
    absolute,
    counted,
    join,
    number,
    printed,
    rounded,
    together,
    watched,
)

SOURCE_MAX = 131_072
"""Characters of one part of a template."""
NODES_MAX = 5_000
"""Words of the language in one part."""
DEPTH_MAX = 40
"""How deep they may be nested."""

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
NAME = "a template"


class _Language(SandboxedEnvironment):
    """Jinja2, with members of objects, items of lists and the loop's own words as all that can be looked up."""

    intercepted_binops = frozenset({"+", "-", "*", "/"})
    intercepted_unops = frozenset({"+", "-"})

    def __init__(self, *, autoescape: bool) -> None:
        super().__init__(
            autoescape=autoescape, undefined=Missing, finalize=printed, keep_trailing_newline=True, cache_size=0
        )
        self.globals.clear()
        known = self.filters
        own = {"join": join, "round": rounded, "abs": absolute}
        own |= {"counted": counted, "watched": watched, "together": together}  # in no source: see _with_an_end
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
        number(left)
        number(right)
        return super().call_binop(context, operator, left, right)

    def call_unop(self, context: Context, operator: str, arg: Any) -> Any:  # noqa: ANN401
        """The same with one number."""
        number(arg)
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
        budget = Budget(time.monotonic() + SECONDS_MAX)
        pieces: list[str] = []
        try:
            for piece in self.made.generate({**values, BUDGET: budget}):
                budget.look(len(piece))
                pieces.append(piece)
        except MissingError as error:
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
        _with_an_end(tree)
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


def _with_an_end(tree: nodes.Template) -> None:
    """Let all that takes time or room look at the budget: loops, filters, tests, comparisons, what `~` puts together."""
    for node in list(tree.find_all((nodes.For, nodes.Filter, nodes.Test, nodes.Compare, nodes.Concat))):
        if isinstance(node, nodes.Concat):
            node.nodes = [_through("together", nodes.List(node.nodes, lineno=node.lineno))]
        else:
            member = {nodes.For: "iter", nodes.Compare: "expr"}.get(type(node), "node")
            name = "counted" if member == "iter" else "watched"
            setattr(node, member, _through(name, getattr(node, member)))


def _through(name: str, node: nodes.Expr) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
