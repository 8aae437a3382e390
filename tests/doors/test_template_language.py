"""The language of templates: what it can do, what it has not, and that everything in it has an end."""

import tracemalloc
from typing import Any

import pytest

from gateway.doors import template_language
from gateway.doors.template_language import read
from gateway.doors.template_values import TemplateError


def filled(source: str, *, html: bool = False, **values: Any) -> str:
    return read(source, html=html).fill(values)


def refused(source: str, *, html: bool = False, **values: Any) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        read(source, html=html).fill(values)
    return caught.value


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Hi {{ name }}!\n", "Hi Pat!\n"),
        ("{{ person.name }} {{ people[0] }} {{ person['name'] }}", "Sam a Sam"),
        ("{% for one in people %}{{ loop.index }}{{ one }}{% if not loop.last %}, {% endif %}{% endfor %}", "1a, 2b"),
        ("{% for one in none_of_them %}x{% else %}nobody{% endfor %}", "nobody"),
        ("{% for key in person %}{{ key }}={{ person[key] }}{% endfor %}", "name=Sam"),
        ("{% if count > 1 and name == 'Pat' %}many{% elif count %}one{% else %}no{% endif %}", "many"),
        ("{{ 'yes' if count is defined else 'no' }} {{ lost is defined }}", "yes false"),
        ("{{ lost|default('friend') }} {{ nothing|default('x', true) }}", "friend x"),
        ("{{ count * 2 + 1 - 0.5 }} {{ count / 2 }} {{ -count }}", "4.5 1.0 -2"),
        ("{{ name ~ ' & ' ~ count }}", "Pat & 2"),
        ("{{ name|upper }} {{ people|join('; ') }} {{ people|length }} {{ 1.256|round(2) }}", "PAT a; b 2 1.26"),
        ("[{{ nothing }}] {{ yes }}", "[] true"),
        ("{% raw %}{{ name }}{% endraw %}{# no more #}", "{{ name }}"),
        ("{{ person.items }}{{ odd.items }}", None),
    ],
)
def test_what_it_can_do(source: str, text: str | None) -> None:
    values: dict[str, Any] = {
        "name": "Pat",
        "person": {"name": "Sam"},
        "people": ["a", "b"],
        "none_of_them": [],
        "count": 2,
        "nothing": None,
        "yes": True,
        "odd": {"items": "of its own"},
    }
    if text is None:
        assert refused(source, **values).variable == "items"
    else:
        assert filled(source, **values) == text


def test_values_are_escaped_in_html_and_nowhere_else() -> None:
    assert filled("{{ x }}", x="<b>&'\"") == "<b>&'\""
    page = filled("<i>{{ x }}</i>{{ l|join('<br>') }}", html=True, x="<b>&'\"", l=["<", ">"])
    assert page == "<i>&lt;b&gt;&amp;&#39;&#34;</i>&lt;&lt;br&gt;&gt;"


@pytest.mark.parametrize(
    "source",
    [
        "{% set x = 1 %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% block a %}{% endblock %}",
        "{% macro a() %}{% endmacro %}", "{{ x() }}", "{{ range(9) }}", "{{ 2 ** 99 }}", "{{ 7 % 2 }}", "{{ 7 // 2 }}",
        "{% for a in b recursive %}{% endfor %}", "{% filter upper %}x{% endfilter %}", "{{ x|safe }}", "{{ x|attr('y') }}",
        "{{ x|format(1) }}", "{{ x|center(9) }}", "{{ x|map('upper') }}", "{{ x|counted }}", "{{ {'a': 1} }}", "{{ x[1:2] }}",
        "{{ x is sameas 1 }}", "{{ _budget }}", "{{ __import__ }}", "{% call x() %}{% endcall %}", "{% do x %}",
        "{{", "{% if %}",
        "{% with a = 1 %}{% endwith %}", "{% for _x in y %}{% endfor %}", "{{ '%s' | e | xmlattr }}",
    ],
)  # fmt: skip
def test_what_it_has_not_is_told_when_it_is_read(source: str) -> None:
    with pytest.raises(TemplateError) as caught:
        read("one\n" + source, html=True)

    assert caught.value.line == 2


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}", "{{ x.__class__ }}", "{{ x['__class__'] }}", "{{ l.append }}", "{{ x.upper }}", "{{ self }}",
        "{{ self._TemplateReference__context }}", "{{ loop }}", "{{ namespace }}", "{{ dict }}", "{{ cycler }}", "{{ lipsum }}",
        "{% for a in l %}{{ loop._iterator }}{% endfor %}", "{% for a in l %}{{ loop.cycle }}{% endfor %}",
        "{% for a in l %}{{ loop }}{% endfor %}", "{{ caller }}", "{{ l[true] }}", "{{ x[0] }}",
        "{{ url_for }}",
    ],
)  # fmt: skip
def test_nothing_of_python_can_be_reached(source: str) -> None:
    refused(source, x="text", l=["a", "b"])


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{{ 'ab' * 1000000 }}", "numbers"),
        ("{{ n * n * n }}", "numbers"),
        ("{{ x }}" * 11, "longer than"),
        ("{% for a in l %}{{ x }}{% endfor %}", "longer than"),
        ("{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}{% endfor %}{% endfor %}", "turns"),
        ("{{ l|join(x) }}", "bearable"),
        ("{{ 1.5|round(999999999) }}", "rounded"),
        ("{% for a in x %}{% endfor %}", "list"),
        ("{{ l }}", "object"),
        ("{{ 1 / 0 }}", "worked out"),
        ("{{ 1 < x }}", "worked out"),
    ],
)
def test_all_work_has_an_end(source: str, why: str) -> None:
    error = refused(source, x="y" * 100_000, l=[1] * 1000, n=10**14)

    assert why in error.why


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + " ~ ".join(["x"] * 2000) + " }}",
        "{{ [" + ", ".join(["x"] * 2000) + "]|join }}",
        "{% if (" + " ~ ".join(["x"] * 2000) + ")|length == 0 %}{% endif %}",
        "{% if [" + ", ".join(["x"] * 2000) + "]|join|length == 0 %}{% endif %}",
    ],
)
@pytest.mark.parametrize("html", [False, True])
def test_what_becomes_too_long_is_never_made(source: str, html: bool) -> None:
    part = read(source, html=html)
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError) as caught:
            part.fill({"x": "<" * 100_000})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert "longer than" in caught.value.why
    assert most < 10_000_000


@pytest.mark.parametrize(
    "one",
    [
        "{% if x|title|length == 0 %}{% endif %}",
        "{% if 'z' in l %}{% endif %}",
        "{% if l == m %}{% endif %}",
        "{% if x is string %}{% endif %}",
        "{{ (x ~ x)|length }}",
    ],
)
def test_work_without_loops_takes_no_longer_than_it_may(one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part = read(one, html=False)
    monkeypatch.setattr(template_language, "SECONDS_MAX", -1.0)

    with pytest.raises(TemplateError) as caught:
        part.fill({"x": "a " * 100, "l": ["a"] * 100, "m": ["a"] * 100})

    assert "takes more than" in caught.value.why


def test_what_is_put_together_or_joined_looks_as_it_would_in_a_gap() -> None:
    assert filled("{{ a ~ b ~ c }} {{ [a, b, c]|join('-') }}", a=None, b=True, c=1.5) == "true1.5 -true-1.5"
    assert "object" in refused("{{ l ~ 'x' }}", l=[1]).why
    assert "object" in refused("{{ l|join }}", l=[[1]]).why
    assert refused("{{ 'x' ~ lost }}").variable == "lost"


def test_work_that_takes_too_long_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_language, "SECONDS_MAX", -1.0)

    assert "takes more than" in refused("{% for a in l %}{% endfor %}", l=[1]).why
    assert "takes more than" in refused("{{ x }}", x="y").why


@pytest.mark.parametrize(
    "source",
    [
        "x" * 131_073,
        "{{ x }}" * 5000,
        "{{ " + "(" * 5000 + "x" + ")" * 5000 + " }}",
        "{{ " + "not " * 3000 + "x }}",
        "{{ " + "-" * 3000 + "1 }}",
        "{% if x %}" * 60 + "{% endif %}" * 60,
        "{% for a in x %}" * 25 + "{% endfor %}" * 25,
        "{{ x" + ".y" * 3000 + " }}",
        "{{ x" + " ~ x" * 6000 + " }}",
        "{{ " + "9" * 5000 + " }}",
    ],
)
def test_a_template_has_an_end_too(source: str) -> None:
    with pytest.raises(TemplateError):
        read(source, html=False)


def test_a_missing_variable_is_named_with_its_line() -> None:
    error = refused("one\ntwo\n{{ lost.name }}")

    assert (error.line, error.variable) == (3, "lost")
    assert (refused("\n{% if lost %}{% endif %}").line, refused("{% for a in lost %}{% endfor %}").variable) == (
        2,
        "lost",
    )
    assert refused("{{ lost + 1 }}").variable == "lost"


def test_escaping_cannot_be_switched_off() -> None:
    with pytest.raises(TemplateError):
        read("{% autoescape false %}{{ x }}{% endautoescape %}", html=True)


def test_what_is_wrong_repeats_nothing_of_a_value() -> None:
    error = refused("{{ 1 < x }}", x="hunter2")

    assert "hunter2" not in f"{error} {error.why}"


def test_the_names_that_it_takes_are_known() -> None:
    part = read("{{ a.b }}{% for c in d %}{{ c }}{{ loop.index }}{% endfor %}{{ e|default(f) }}", html=False)

    assert part.names == {"a", "d", "e", "f"}
