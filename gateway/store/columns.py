"""The kinds of columns that tables are made of, and the one list of all tables (`metadata`)."""

from typing import Any

import sqlalchemy as sa

Micros = sa.BigInteger
metadata = sa.MetaData()


def column(name: str, kind: Any, **options: Any) -> sa.Column[Any]:  # noqa: ANN401  (a column type and its options)
    """A column that must hold something, unless `null` is given."""
    return sa.Column(name, kind, nullable=bool(options.pop("null", False)), **options)


def text(name: str, **options: Any) -> sa.Column[Any]:
    """A text."""
    return column(name, sa.Text, **options)


def time(name: str, **options: Any) -> sa.Column[Any]:
    """Microseconds since 1970 (UTC)."""
    return column(name, Micros, **options)


def number(name: str, **options: Any) -> sa.Column[Any]:
    """A whole number."""
    return column(name, sa.BigInteger, **options)


def key(*names: str) -> tuple[sa.Column[Any], ...]:
    """The texts that a primary key is made of."""
    return tuple(sa.Column(name, sa.Text, primary_key=True) for name in names)
