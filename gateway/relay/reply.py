"""Reads the smarthost's replies, strictly where the code is concerned and leniently in the text behind it.

A code that cannot be told must never be guessed: after the final dot that guess would decide whether a mail counts as
sent. The text goes to stores, logs and people, so nothing in it may be a control character.
"""

import re
from collections.abc import Iterator

from gateway.core.delivery import Reply

LINE = re.compile(rb"([2-5][0-9]{2})(?:([ -])([^\n]*))?\r?\n")
"""One line of a reply: 200 to 599, then a blank, a hyphen where more lines follow, or nothing (RFC 5321, 4.2)."""

ENHANCED = re.compile(r"([245])\.([0-9]{1,3})\.([0-9]{1,3})(?: +|$)")
"""An enhanced status code at the start of a text (RFC 2034, 3)."""

MAX_LINE = 8_192
MAX_REPLY = 32_768
"""Bytes; generous over any real reply (RFC 5321, 4.5.3.1.5 allows 512 a line)."""


class Unreadable(ValueError):  # noqa: N818 - says what the reply is
    """What came is no reply, or has no end."""


class Replies:
    """Cuts a stream of bytes into whole replies."""

    __slots__ = ("_buffer", "_code", "_lines", "_size")

    def __init__(self) -> None:
        self._buffer = b""
        self._code = 0
        self._lines: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Reply]:
        """Yields the replies that `data` completes; raises Unreadable behind them, and then cannot be used any more."""
        self._buffer += data
        while (end := self._buffer.find(b"\n") + 1) > 0:
            line, self._buffer = self._buffer[:end], self._buffer[end:]
            match = LINE.fullmatch(line)
            if match is None or len(line) > MAX_LINE:
                raise Unreadable(f"unreadable reply: {line[:80]!r}")
            code = int(match[1])
            if self._lines and code != self._code:
                raise Unreadable(f"a reply of two codes: {self._code} and {code}")
            self._code = code
            self._lines.append((match[3] or b"").decode("utf-8", "replace"))
            self._size += len(line)
            if match[2] != b"-":
                lines, self._lines, self._size = self._lines, [], 0
                yield compose(code, lines)
        if len(self._buffer) > MAX_LINE or self._size > MAX_REPLY:
            raise Unreadable("a reply without an end")

    @property
    def begun(self) -> bool:
        """Whether a reply has begun that is not whole."""
        return bool(self._buffer or self._lines)

    @property
    def half(self) -> str:
        """What has come of that reply, at most 80 bytes of its last line, for the log."""
        return f"{'... ' if self._lines else ''}{self._buffer[:80]!r}"


def compose(code: int, lines: list[str]) -> Reply:
    """Returns the reply with this code; `lines` are its texts, which may still begin with the enhanced code.

    The first enhanced code counts, on whichever line it is, whose class is that of the code (RFC 2034, 4).
    """
    enhanced = ""
    texts = []
    for line in lines:
        text = clean(line)
        match = ENHANCED.match(text)
        if match and match[1] == str(code)[0]:
            enhanced = enhanced or match[0].strip()
            if match[0].strip() == enhanced:
                text = text[match.end() :]
        texts.append(text)
    return Reply(code, enhanced, "\n".join(texts).strip())


def clean(text: str) -> str:
    """Returns the text in one line, with a replacement character for whatever is not printable."""
    text = text.strip()
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
