"""A gateway killed between the final dot and its 250: whoever hands the mail in again is told the first request, or makes it."""

import json
import signal
import smtplib
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from gateway.store import Store
from gateway.store.schema import deliveries
from tests import servers
from tests.doors.smtp.test_served import MAILBOX, a_message, certify, send
from tests.servers import Served, init, start


def again_and_again(served: Served, key: str, message: EmailMessage) -> bool:
    """Hands in; whether an answer came."""
    try:
        send(served, key, message)
    except (smtplib.SMTPException, OSError):
        return False
    return True


@pytest.mark.parametrize("step", ["commit.before", "commit.after"])
def test_a_kill_before_the_answer_never_makes_two_mails(tmp_path: Path, sqlite_url: str, step: str) -> None:
    made = init(sqlite_url, tmp_path / "profile.toml", MAILBOX)
    settings: dict[str, Any] = {"roles": "http,smtp", "smtp_bind": "127.0.0.1:0", **certify(tmp_path)}
    armed = {"ARMED": json.dumps({"steps": {step: {"do": "kill"}}})}
    victim = start(sqlite_url, module="tests.faults.armed", extra=armed, **settings)
    try:
        answered = again_and_again(victim, made["rawKey"], a_message())
        victim.process.wait(servers.PATIENCE)
        died_of = victim.process.returncode
    finally:
        victim.kill()
    heir = start(sqlite_url, **settings)
    try:
        heard = again_and_again(heir, made["rawKey"], a_message())
        repeated = again_and_again(heir, made["rawKey"], a_message())
    finally:
        heir.kill()

    store = Store.open(sqlite_url)
    try:
        rows = store.read(lambda tx: tx.rows(lambda _: deliveries.select(), {}))
    finally:
        store.close()
    assert (answered, died_of) == (False, -signal.SIGKILL)
    assert heard
    assert repeated
    assert len(rows) == 1
