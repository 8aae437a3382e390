"""Reads the index of the cases and their files; knows no gateway."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2] / "fixtures" / "cases"
KINDS = ("http", "scenario", "smtp-upstream", "smtp-client", "eml-out", "eml-in")
ENTRY = {"id", "file", "kind", "fault_class", "fault", "expected", "expected_words"}


@dataclass(frozen=True)
class Case:
    """One entry of the index; `expected` is what must be so in the end, `envelope` how a mail is handed in."""

    id: str
    file: str
    kind: str
    fault: str
    expected: dict[str, Any]
    words: str
    envelope: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file as text; a case that holds other octets is of a kind that is not read this way."""
        return (HOME / self.file).read_bytes().decode()

    @cached_property
    def script(self) -> dict[str, Any]:
        """A case in JSON: `setup` and `steps`."""
        read: dict[str, Any] = json.loads(self.text)
        return read

    @property
    def steps(self) -> list[dict[str, Any]]:
        """What is done, in order."""
        return list(self.script["steps"])

    @property
    def setup(self) -> dict[str, Any]:
        """What holds before the first step."""
        return dict(self.script.get("setup", {}))


def index() -> list[Case]:
    """All cases, in the order of the index."""
    entries = json.loads((HOME / "index.json").read_text(encoding="utf-8"))["cases"]
    return [
        Case(
            entry["id"],
            entry["file"],
            entry["kind"],
            entry["fault"],
            entry["expected"],
            entry["expected_words"],
            entry.get("envelope", {}),
        )
        for entry in entries
    ]


def files() -> set[str]:
    """All files of cases, relative to their home."""
    return {str(path.relative_to(HOME)) for path in HOME.rglob("*") if path.is_file() and path.name != "index.json"}
