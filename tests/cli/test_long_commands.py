"""What long commands do while they run: show how far they are, and wait where they are told to."""

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gateway.cli.meter import Meter
from tests.cli.conftest import Run


class Terminal(io.StringIO):
    """A stderr that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_there_is_a_bar_and_lines_stand_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    with Meter("imported", total=100) as meter:
        meter.note("line 3: email: [bold]no address[/bold]")
        meter.moved(2500, 50)
        meter.moved(2500, 100)

    shown = terminal.getvalue()
    assert "line 3: email: [bold]no address[/bold]" in shown
    assert "imported 5,000 rows" in shown


def test_elsewhere_there_is_a_plain_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with Meter("imported", total=None) as meter:
        for _ in range(9):
            meter.moved(25_000)

    assert capsys.readouterr().err == "imported 100000 rows\nimported 200000 rows\n"


class Busy(BaseHTTPRequestHandler):
    """Puts off the first two requests, then takes what comes."""

    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).asked += 1
        late = type(self).asked <= 2
        body = json.dumps({"error": "rate_limited", "message": "later"} if late else {"accepted": 1}).encode()
        self.send_response(429 if late else 200)
        if late:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def busy() -> Iterator[str]:
    Busy.asked = 0
    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_import_that_is_put_off_is_tried_again(run: Run, busy: str) -> None:
    result = run(
        "suppressions", "import", "-", "--url", busy, "--key", "k", stdin="email,reasonCode\na@example.net,complaint\n"
    )

    assert result.exit_code == 0, result.output
    assert Busy.asked == 3


def test_other_commands_say_that_they_were_put_off(run: Run, busy: str) -> None:
    result = run("consent", "record", "--email", "a@example.net", "--url", busy, "--key", "k")

    assert (result.exit_code, Busy.asked) == (1, 1)
    assert "429 rate_limited" in result.stderr
