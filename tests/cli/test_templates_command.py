"""`templates`, `attachments` and `keys narrow`: what the HTTP door offers, from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


def told(result: Any) -> Any:  # noqa: ANN401  (JSON)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_template_is_made_from_files_published_and_sent(at: Run, bare: Path) -> None:
    (bare / "text.txt").write_text("Hi {{ name }}\n")
    (bare / "page.html").write_text("<p>Hi {{ name }}</p>\n")
    (bare / "variables.json").write_text('[{"name": "name"}]')

    made = told(at("templates", "create", "from-files", "--name", "From files", "--json"))
    files = ("--text", "text.txt", "--html", "page.html", "--variables", "variables.json")
    version = told(at("templates", "add-version", "from-files", "--subject", "For {{ name }}", *files, "--json"))
    looked = at("templates", "lint", "from-files")
    published = told(at("templates", "publish", "from-files", "--json"))
    filled = at("templates", "render", made["id"], "--payload", '{"name": "<Pat>"}')
    listed = at("templates", "list").stdout
    shown = at("templates", "get", "from-files").stdout

    assert (version["version"], version["lint"], published["publishedVersion"]) == (1, [], 1)
    assert "version 1 can be published" in looked.stdout
    assert filled.stdout.splitlines()[:2] == ["For <Pat>", "Hi <Pat>"]
    assert "<p>Hi &lt;Pat&gt;</p>" in filled.stdout
    assert "from-files" in listed
    assert "Hi {{ name }}" in shown


def test_errors_of_a_version_end_lint_with_one(at: Run, bare: Path) -> None:
    (bare / "text.txt").write_text("{{ who }}")
    (bare / "none.json").write_text("[]")
    at("templates", "create", "odd")
    at("templates", "add-version", "odd", "--text", "text.txt", "--variables", "none.json")

    result = at("templates", "lint", "odd")

    assert result.exit_code == 1
    assert "undeclared_variable text who line 1" in result.stderr


@pytest.mark.parametrize("args", [("--payload", "{"), ("--payload", "[]")])
def test_a_payload_that_is_no_object_is_refused(at: Run, args: tuple[str, ...]) -> None:
    assert at("templates", "render", "nowhere", *args).exit_code != 0


def test_a_file_is_uploaded_and_its_id_printed(at: Run, bare: Path) -> None:
    (bare / "offer.pdf").write_bytes(b"%PDF")

    kept = told(at("attachments", "upload", "offer.pdf", "--json"))
    line = at("attachments", "upload", "offer.pdf", "--type", "text/plain").stdout.splitlines()[0]

    assert (kept["filename"], kept["contentType"], kept["sizeBytes"]) == ("offer.pdf", "application/pdf", 4)
    assert line.startswith("att_")
    assert at("attachments", "upload", "nowhere.pdf").exit_code == 2


def test_a_key_is_narrowed_in_the_store(run: Run) -> None:
    assert run("init").exit_code == 0
    made = told(run("keys", "create", "--label", "x", "--json"))

    less = told(
        run(
            "keys",
            "narrow",
            made["id"],
            "--scopes",
            "send",
            "--mailbox",
            "agent@gw.example.com",
            "--per-minute",
            "5",
            "--json",
        )
    )

    assert (less["scopes"], less["scopeAllMailboxes"], less["requestsPerMinute"]) == (["send"], False, 5)
    assert run("keys", "narrow", made["id"]).exit_code == 2
    assert run("keys", "narrow", "key_nowhere", "--scopes", "send").exit_code == 1
    operator = next(one for one in told(run("keys", "list", "--json")) if "operator" in one["scopes"])
    assert "last operator key" in run("keys", "narrow", operator["id"], "--scopes", "read").stderr


def test_a_key_is_narrowed_over_http(at: Run) -> None:
    made = told(at("keys", "create", "--label", "x", "--json"))

    result = at("keys", "narrow", made["id"], "--scopes", "read")

    assert result.exit_code == 0
    assert f"changed {made['id']}" in result.stdout
