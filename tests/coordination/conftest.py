"""A door on a world, on each kind of database."""

from tests.doors.conftest import door, wire, world

__all__ = ["door", "wire", "world"]
