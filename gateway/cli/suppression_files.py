"""`suppressions import` and `export`: the list as CSV, in and out, piece by piece through a running gateway.

Each piece is one short transaction there, so others are served meanwhile; a file may be imported again at any time, since
no entry becomes weaker by it.
"""

import contextlib
import csv
import io
import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from gateway.cli import options, printing
from gateway.cli.answers import objects
from gateway.cli.api import Api
from gateway.cli.meter import Meter
from gateway.cli.printing import fail, member

COLUMNS = ("email", "domain", "reasonCode", "scope", "campaign", "source", "expiresAt")
PIECE = 2500
"""Rows in one request: its transaction holds others up for a tenth of a second or two."""
WINDOW = 100_000
"""Rows that are read and sorted at once, before they are cut into pieces."""
PAGE = 5000
RETRY = "what came before it is in the list; the same file may be imported again"

FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""How a cell begins that a spreadsheet would carry out; an export puts an apostrophe before it, an import takes one off."""

Piece = list[tuple[int, dict[str, str]]]
Line = tuple[int, dict[str, str] | str]
"""Where a row begins, and the row or what is wrong with it."""


def import_suppressions(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="CSV in UTF-8 with a header; - is standard input.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is wrong, and write nothing.")] = False,
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Add a list from a file; a bad line is named with its number and reason, and the good ones are written.

    Columns: email or domain, reasonCode, and as wanted scope (tenant, campaign), campaign, source, expiresAt. No entry that
    is there becomes weaker. Exit code 0: every line is good; 1: some are bad, or the gateway refused; 2: no such file, or
    a wrong header.
    """
    api = Api(url, key, as_json=as_json)
    totals = dict.fromkeys(("processed", "accepted", "written", "kept", "failed"), 0)
    errors: list[dict[str, Any]] = []
    stopped: list[str] = []
    with _opened(file) as source, Meter("checked" if dry_run else "imported", _size(source)) as meter, api.kept():
        for piece, at, done in _answered(api, _pieces(source, meter, errors), dry_run=dry_run):
            for name in totals:
                totals[name] += int(member(done, name) or 0)
            for one in objects(member(done, "errors")):
                _bad(meter, errors, piece[one["index"]][0], one["field"], one["message"])
            stopped += member(done, "stopped") or []
            meter.moved(len(piece), at)
    unread = sum(error["field"] == "line" for error in errors)
    totals["processed"] += unread
    totals["failed"] += unread
    if as_json:
        errors.sort(key=lambda error: int(error["line"]))
        printing.document({"dryRun": dry_run, **totals, "stopped": stopped, "errors": errors})
    else:
        _tell(totals, stopped, dry_run=dry_run)
    if errors:
        raise typer.Exit(1)


def _answered(
    api: Api, pieces: "Iterator[tuple[Piece, int | None]]", *, dry_run: bool
) -> Iterator[tuple[Piece, int | None, Any]]:
    """Each piece with its answer, in order; one is asked at a time, and the next is made ready meanwhile."""

    def ask(piece: Piece) -> object:
        body = {"entries": [row for _, row in piece], "dryRun": dry_run}
        return api.ask("POST", "/v1/suppressions/import", body=body, retry=RETRY, patient=True).body

    waiting: deque[tuple[Piece, int | None, Future[object]]] = deque()
    with ThreadPoolExecutor(1) as line:
        for piece, at in pieces:
            waiting.append((piece, at, line.submit(ask, piece)))
            if len(waiting) > 1:
                first, there, answer = waiting.popleft()
                yield first, there, answer.result()
        for first, there, answer in waiting:
            yield first, there, answer.result()


def _tell(totals: dict[str, int], stopped: list[str], *, dry_run: bool) -> None:
    good, bad = totals["accepted"], totals["failed"]
    printing.line(f"{good} of {good + bad} lines are good" + (", nothing was written" if dry_run else ""))
    rows = [("new or renewed", totals["written"] or None), ("as strong already", totals["kept"] or None)]
    printing.pairs([*rows, ("bad", bad or None), ("requests stopped", len(stopped) or None)])


def _bad(meter: Meter, errors: list[dict[str, Any]], line: int, field: str, why: str) -> None:
    errors.append({"line": line, "field": field, "message": why})
    meter.note(f"line {line}: {why}" if field == "line" else f"line {line}: {field}: {why}")


@contextlib.contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from None
    with source:
        yield source


def _size(source: IO[bytes]) -> int | None:
    """Bytes of a file; `None` for what has no end that is known."""
    try:
        return os.fstat(source.fileno()).st_size or None
    except OSError:
        return None


def _pieces(source: IO[bytes], meter: Meter, errors: list[dict[str, Any]]) -> Iterator[tuple[Piece, int | None]]:
    """The good rows with their lines, PIECE at a time, and how far in the file that is; bad ones are told at once.

    Rows are sorted, WINDOW at a time: neighbours lie together in the store's index, so a piece changes a few of its pages
    and not thousands. Lines about one address keep their order.
    """
    rows, begin = lines(source), 0
    while True:
        read = list(islice(rows, WINDOW))
        if not read:
            return
        end = source.tell() if source.seekable() else None
        good = [(number, row) for number, row in read if not isinstance(row, str)]
        for number, row in read:
            if isinstance(row, str):
                _bad(meter, errors, number, "line", row)
        good.sort(key=_address)
        for at in range(0, len(good), PIECE):
            piece = good[at : at + PIECE]
            yield piece, None if end is None else begin + (end - begin) * (at + len(piece)) // len(good)
        begin = end or 0


def _address(line: tuple[int, dict[str, str]]) -> str:
    row = line[1]
    return (row.get("email") or row.get("domain", "")).lower()


def lines(source: IO[bytes]) -> Iterator[Line]:
    """The rows of a CSV file as the gateway takes them. Ends the command with code 2 where the header is wrong."""
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.reader(text, strict=True)
    try:
        header = _header(next(reader, []))
        number = reader.line_num + 1
        while True:
            try:
                cells = next(reader)
            except csv.Error as error:
                yield number, f"is no CSV: {error}"
            except StopIteration:
                return
            else:
                if cells:
                    yield number, _row(header, cells)
            number = reader.line_num + 1
    finally:
        text.detach()


def _header(cells: list[str]) -> list[str]:
    unknown = [cell for cell in cells if cell not in COLUMNS]
    if unknown:
        fail(f"the header has columns that are not known: {', '.join(unknown)}; known are {', '.join(COLUMNS)}", 2)
    if len(set(cells)) != len(cells):
        fail("a column stands twice in the header", 2)
    if "reasonCode" not in cells or not {"email", "domain"} & set(cells):
        fail("the first line must be a header with reasonCode, and with email or domain", 2)
    return cells


def _row(header: list[str], cells: list[str]) -> dict[str, str] | str:
    if len(cells) != len(header):
        return f"has {len(cells)} cells, and the header {len(header)}"
    row = {name: _bare(cell) for name, cell in zip(header, cells, strict=True) if cell}
    if any("\ud800" <= char <= "\udfff" for cell in row.values() if not cell.isascii() for char in cell):
        return "is not UTF-8"
    if "campaign" in row:
        row.setdefault("scope", "campaign")
    return row


def _bare(cell: str) -> str:
    return cell[1:] if cell[0] == "'" and FORMULA.match(cell) else cell


# --- out --------------------------------------------------------------------------------------------------------------


def export(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Where to write the CSV; - is standard output.")] = "-",
    url: options.Url = None,
    key: options.Key = None,
    as_json: options.Json = False,
) -> None:
    """Write all entries that live now as CSV, ready for an import; a file is there only when it is whole.

    What a spreadsheet would take for a formula has an apostrophe before it; an import takes it off again. With --json one
    object on each line, in place of CSV.
    """
    api = Api(url, key, as_json=as_json)
    with _writing(file) as target, Meter("exported") as meter, api.kept():
        writer = csv.writer(target, lineterminator="\n")
        if not as_json:
            writer.writerow(COLUMNS)
        query = {"limit": str(PAGE)}
        while True:
            page = api.ask("GET", "/v1/suppressions/export", query=query, patient=True).body
            entries = objects(member(page, "entries"))
            if as_json:
                target.writelines(f"{json.dumps(entry)}\n" for entry in entries)
            else:
                writer.writerows([[_shielded(entry.get(name, "")) for name in COLUMNS] for entry in entries])
            meter.moved(len(entries))
            if member(page, "next") is None:
                break
            query["after"] = str(page["next"])
    if file != "-":
        printing.note(f"{meter.rows} entries are in {file}", "good")


def _shielded(cell: str) -> str:
    return f"'{cell}" if FORMULA.match(cell) else cell


@contextlib.contextmanager
def _writing(file: str) -> Iterator[IO[str]]:
    """A text to write to; a file takes its name only at the end, and keeps what it held until then."""
    if file == "-":
        yield sys.stdout
        return
    place = Path(file)
    new = place.with_name(f"{place.name}.part")
    try:
        with new.open("w", encoding="utf-8", newline="") as target:
            yield target
        new.replace(place)
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    finally:
        new.unlink(missing_ok=True)
