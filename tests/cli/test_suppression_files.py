"""`suppressions import` and `export` against a gateway that is up."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

HEAD = "email,domain,reasonCode,scope,campaign,source,expiresAt\n"


def entries(text: str) -> dict[str, dict[str, str]]:
    """The rows of an export by address or domain."""
    return {row["email"] or row["domain"]: row for row in csv.DictReader(text.splitlines())}


def test_an_import_of_an_export_gives_the_same_list(at: Run, tmp_path: Path) -> None:
    file, out, again = tmp_path / "list.csv", tmp_path / "out.csv", tmp_path / "again.csv"
    file.write_text(
        HEAD
        + "round@example.net,,hard_bounce,,,desk,\n"
        + ",round.example.org,legal_request,tenant,,,2999-01-01T00:00:00Z\n"
        + 'quoted@example.net,,unsubscribe,campaign,"spring, 2026","he said ""no""",\n',
        encoding="utf-8",
    )

    added = at("suppressions", "import", str(file))
    at("suppressions", "export", str(out))
    for name in ("round@example.net", "quoted@example.net"):
        assert at("suppressions", "remove", name).exit_code == 0
    second = at("suppressions", "import", str(out))
    at("suppressions", "export", str(again))

    assert (added.exit_code, second.exit_code) == (0, 0), added.output + second.output
    assert "3 of 3 lines are good" in added.stdout
    found = entries(out.read_text(encoding="utf-8"))
    assert found == entries(again.read_text(encoding="utf-8"))
    assert found["round@example.net"] | {"email": ""} == {
        "email": "",
        "domain": "",
        "reasonCode": "hard_bounce",
        "scope": "",
        "campaign": "",
        "source": "desk",
        "expiresAt": "",
    }
    assert found["round.example.org"]["expiresAt"] == "2999-01-01T00:00:00Z"
    quoted = found["quoted@example.net"]
    assert (quoted["scope"], quoted["campaign"], quoted["source"]) == ("campaign", "spring, 2026", 'he said "no"')
    assert not list(tmp_path.glob("*.part"))


def test_no_cell_of_an_export_is_a_formula_and_an_import_takes_each_for_what_it_was(at: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    added = {
        "=cmd@example.net": "=HYPERLINK(1)",
        "'=odd@example.net": "'+1",
        "'plain@example.net": "'quoted'",
        "-minus@example.net": "@SUM(1)",
    }
    lines = [{"email": name, "reasonCode": "manual_dnc", "source": source} for name, source in added.items()]
    file = tmp_path / "list.csv"
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, ["email", "reasonCode", "source"])
        writer.writeheader()
        writer.writerows(
            {name: f"'{cell}" if re.match("'?[=+@-]", cell) else cell for name, cell in line.items()} for line in lines
        )

    results = [at("suppressions", "import", str(file)), at("suppressions", "export", str(first))]
    results += [at("suppressions", "import", str(first)), at("suppressions", "export", str(second))]
    listed = [json.loads(line) for line in at("suppressions", "export", "--json").stdout.splitlines()]

    assert [result.exit_code for result in results] == [0, 0, 0, 0]
    assert {one["email"]: one["source"] for one in listed if one.get("email") in added} == added
    cells = [cell for row in csv.reader(first.read_text(encoding="utf-8").splitlines()) for cell in row]
    assert not [cell for cell in cells if cell[:1] in set("=+-@")]
    assert first.read_text(encoding="utf-8") == second.read_text(encoding="utf-8")


def test_every_bad_line_is_named_with_its_number_and_the_good_ones_go_in(at: Run, tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.write_bytes(
        b"email,reasonCode,campaign\n"
        b"good1@example.net,complaint,\n"
        b"no address,complaint,\n"
        b"\n"
        b"few@example.net,complaint\n"
        b'"two\nlines@example.net",complaint,\n'
        b"because@example.net,because,\n"
        b"bytes\xff@example.net,complaint,\n"
        b"good2@example.net,complaint,spring\n"
    )

    result = at("suppressions", "import", str(file))
    shown = at("suppressions", "list", "--email", "good2@example.net", "--json")

    assert result.exit_code == 1
    assert "2 of 7 lines are good" in result.stdout
    named = dict(re.findall(r"^line (\d+): (.*)$", result.stderr, re.MULTILINE))
    assert sorted(map(int, named)) == [3, 5, 6, 8, 9]
    assert named["3"].startswith("email: ")
    assert named["5"] == "has 2 cells, and the header 3"
    assert named["8"].startswith("reasonCode: must be one of complaint, ")
    assert named["9"] == "is not UTF-8"
    assert [(one["scope"], one["campaignId"]) for one in json.loads(shown.stdout)] == [("campaign", "spring")]


def test_a_dry_run_tells_the_same_and_writes_nothing(at: Run) -> None:
    lines = "email,reasonCode\ndry-import@example.net,complaint\nx,complaint\n"

    result = at("suppressions", "import", "-", "--dry-run", "--json", stdin=lines)
    checked = at("suppressions", "check", "--email", "dry-import@example.net", "--json")

    body = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (body["processed"], body["accepted"], body["written"], body["failed"]) == (2, 1, 0, 1)
    assert [(one["line"], one["field"]) for one in body["errors"]] == [(3, "email")]
    assert json.loads(checked.stdout)["suppressed"] is False


def test_a_file_of_many_pieces_keeps_its_line_numbers(at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.suppression_files.PIECE", 3)
    monkeypatch.setattr("gateway.cli.meter.EVERY", 5)
    rows = [f"many{n}@example.net,hard_bounce" for n in range(10)]
    rows[7] = "not an address,hard_bounce"

    result = at("suppressions", "import", "-", stdin="\ufeffemail,reasonCode\r\n" + "\r\n".join(rows) + "\r\n")

    assert result.exit_code == 1
    assert re.search(r"^line 9: email: ", result.stderr, re.MULTILINE)
    assert re.search(r"^imported \d+ rows$", result.stderr, re.MULTILINE)
    assert "9 of 10 lines are good" in result.stdout


def test_the_list_goes_out_in_pages_to_standard_output(at: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.suppression_files.PAGE", 2)
    rows = "".join(f"page{n}@example.net,hard_bounce\n" for n in range(5))
    at("suppressions", "import", "-", stdin="email,reasonCode\n" + rows)

    result = at("suppressions", "export")
    lines = [json.loads(line) for line in at("suppressions", "export", "--json").stdout.splitlines()]

    assert result.exit_code == 0
    assert {"email": "page3@example.net", "reasonCode": "hard_bounce", "source": "import"} in lines
    assert result.stdout.startswith(HEAD)
    assert {f"page{n}@example.net" for n in range(5)} <= set(entries(result.stdout))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("email,reasonCode,colour\n", "not known: colour"),
        ("a@example.net,complaint\n", "not known: a@example.net"),
        ("email,scope\n", "must be a header with reasonCode"),
        ("reasonCode,scope\n", "must be a header with reasonCode"),
        ("email,email,reasonCode\n", "stands twice"),
        ("", "must be a header"),
    ],
)
def test_a_wrong_header_is_wrong_usage(at: Run, text: str, words: str) -> None:
    result = at("suppressions", "import", "-", stdin=text)

    assert result.exit_code == 2
    assert words in result.stderr


def test_a_file_that_cannot_be_read_or_written_is_one_line(at: Run, tmp_path: Path) -> None:
    read = at("suppressions", "import", str(tmp_path / "nowhere.csv"))
    written = at("suppressions", "export", str(tmp_path / "nowhere" / "out.csv"))

    assert read.exit_code == 2
    assert "cannot be read" in read.stderr
    assert (written.exit_code, written.stderr.count("\n")) == (1, 1)
