"""What arrives is what was meant: a real mail with umlauts, an attachment and long lines; Bcc never arrives."""

import asyncio
import base64
import email
from email.policy import default
from pathlib import Path
from typing import Any

import httpx

from gateway.sink import Sink
from tests import servers

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "mail"
WAIT = {"Prefer": "wait=20"}


def parts(raw: bytes) -> list[tuple[str, str | None, str | bytes]]:
    """Type, file name and decoded content of each leaf; text with LF line ends."""
    message = email.message_from_bytes(raw, policy=default)
    found: list[tuple[str, str | None, str | bytes]] = []
    for part in message.walk():
        if not part.is_multipart():
            content: Any = part.get_content()
            text = content.replace("\r\n", "\n") if isinstance(content, str) else content
            found.append((part.get_content_type(), part.get_filename(), text))
    return found


def meant() -> list[dict[str, Any]]:
    """Two mails as bytes, one in parts."""
    raw, blind = ((FIXTURES / name).read_bytes() for name in ("umlauts-attachment-long-lines.eml", "bcc-spellings.eml"))
    file = {"filename": "Übersicht.bin", "content": base64.b64encode(bytes(range(256)) * 40).decode()}
    return [
        {"rawMessage": base64.b64encode(raw).decode(), "to": "pat@example.net"},
        {"rawMessage": base64.b64encode(blind).decode(), "to": "sam@example.net", "bcc": "hidden-one@example.net"},
        {
            "to": "kim@example.net",
            "bcc": ["hidden-two@example.net"],
            "subject": "Grüße aus Köln – schöne Überraschung für alle, die längere Betreffzeilen lesen",
            "text": "ü" * 3000 + "\n.\nend",
            "html": "<p>" + "x" * 3500 + "</p>",
            "attachments": [file],
        },
    ]


async def test_mail_arrives_with_equal_parts_and_without_bcc(sqlite_url: str, tmp_path: Path) -> None:
    made = await asyncio.to_thread(servers.init, sqlite_url, tmp_path / "profile.toml", "agent-a@gw.example.com")
    head = {"Authorization": f"Bearer {made['rawKey']}", **WAIT}
    async with Sink() as sink:
        settings: dict[str, Any] = {"smarthost": f"smtp://127.0.0.1:{sink.port}", "hostname": "gw.example.com"}
        served = await asyncio.to_thread(servers.start, sqlite_url, **settings)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{served.port}", headers=head, timeout=30) as client:
            answers = [await client.post("/v1/agent/request-send", json=mail) for mail in meant()]
        assert await asyncio.to_thread(served.stop) == 0

    assert [a.json()["status"] for a in answers] == ["relayed"] * 3, [a.text for a in answers]
    by_name = {m.recipients[0]: m.content for m in sink.mails}
    assert sorted(by_name) == [
        "hidden-one@example.net", "hidden-two@example.net", "kim@example.net", "pat@example.net", "sam@example.net",
    ]  # fmt: skip
    for content in by_name.values():
        assert b"hidden-" not in content
        assert b"\nbcc" not in content.partition(b"\r\n\r\n")[0].lower()
        assert max(len(line) for line in content.split(b"\r\n")) <= 998
    assert parts(by_name["pat@example.net"]) == parts((FIXTURES / "umlauts-attachment-long-lines.eml").read_bytes())
    assert parts(by_name["kim@example.net"]) == [
        ("text/plain", None, "ü" * 3000 + "\n.\nend"),
        ("text/html", None, "<p>" + "x" * 3500 + "</p>"),
        ("application/octet-stream", "Übersicht.bin", bytes(range(256)) * 40),
    ]
