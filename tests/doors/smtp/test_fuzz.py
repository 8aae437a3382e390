"""Whatever bytes a client sends: well-formed replies, no traceback, an end, and never a send that was not meant."""

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.doors.smtp import Limits
from gateway.store.schema import deliveries
from tests.databases import SqliteFiles
from tests.doors.door import a_door
from tests.doors.smtp.line import MAIL, Submit, a_submit, client_tls
from tests.world import BOXES, PAT, a_world

REPLY = re.compile(rb"([245]\d\d[ -][ -~]{0,508}\r\n|354 [ -~]{0,508}\r\n|334 [ -~]{0,508}\r\n)")
TAKEN = re.compile(rb"250 2\.0\.0 (?:accepted|held|scheduled) as (req_\w+)")
DEEDS = [
    f"MAIL FROM:<{BOXES[0]}>",
    f"MAIL FROM:<{BOXES[0]}> SIZE=9 BODY=8BITMIME SMTPUTF8",
    f"RCPT TO:<{PAT}>",
    "RCPT TO:<bee@example.net>",
    "DATA",
    "RSET",
    "NOOP",
    "EHLO agent.example.com",
    "AUTH PLAIN",
    "AUTH LOGIN",
    "STARTTLS",
    "VRFY x",
    MAIL,
    ".",
    "*",
    "QUIT",
]
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"", b"\r\r\n", b"\0\r\n"])
words = st.builds(lambda deed, end: deed.encode() + end, st.sampled_from(DEEDS), ENDS)
noise = st.binary(max_size=200)
long = st.builds(lambda piece, times: piece * times, st.binary(min_size=1, max_size=64), st.integers(1, 1000))
dialogues = st.lists(st.one_of(words, words, words, noise, long), max_size=12).map(
    lambda parts: b"".join(parts)[:65_536]
)


async def said(submit: Submit, data: bytes, *, logged_in: bool, cut: int) -> bytes:
    """Says it in two pieces and nothing more; all that came back."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", submit.secure, ssl=client_tls(), server_hostname="localhost"
    )
    try:
        if logged_in:
            login = b64encode(f"\0a\0{submit.key()}".encode())
            writer.write(b"EHLO agent.example.com\r\nAUTH PLAIN " + login + b"\r\n")
        writer.write(data[:cut])
        await asyncio.sleep(0)
        writer.write(data[cut:] + b"\r\nQUIT\r\n.\r\nQUIT\r\n*\r\nQUIT\r\n")
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("logged_in", [True, False])
def test_any_bytes_get_well_formed_replies_and_an_end(
    sqlite_files: SqliteFiles, caplog: pytest.LogCaptureFixture, *, logged_in: bool
) -> None:
    caplog.set_level(logging.WARNING)

    async def run(work: Callable[[Submit], Awaitable[None]]) -> None:
        limits = Limits(idle_seconds=2.0, message_bytes=20_000)
        async with a_world(sqlite_files) as world, a_door(world) as door, a_submit(door, limits) as submit:
            await work(submit)

    @settings(max_examples=60)
    @given(data=dialogues, cut=st.integers(0, 65_536))
    def tried(data: bytes, cut: int) -> None:
        async def work(submit: Submit) -> None:
            answer = await said(submit, data, logged_in=logged_in, cut=cut)

            assert REPLY.sub(b"", answer) == b"", answer
            assert answer.startswith(b"220 ")
            rows = submit.door.world.rows_of(deliveries)
            told = {found.decode() for found in TAKEN.findall(answer)}
            assert told == {row["send_id"] for row in rows if row["state"] != "blocked"}
            assert {row["contact"] for row in rows} <= {PAT, "bee@example.net"}
            assert logged_in or not rows

        asyncio.run(run(work))

    tried()

    assert "smtp.fault" not in caplog.text
    assert "Traceback" not in caplog.text
