"""Replies: strict in the code, lenient in the text, and whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.delivery import Reply
from gateway.relay.reply import Replies, Unreadable


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        (b"250 ok\r\n", Reply(250, "", "ok")),
        (b"250 ok\n", Reply(250, "", "ok")),
        (b"250 ok\r\r\n", Reply(250, "", "ok")),
        (b"250\r\n", Reply(250)),
        (b"250 \r\n", Reply(250)),
        (b"250 2.1.5 ok\r\n", Reply(250, "2.1.5", "ok")),
        (b"250 2.1.5\r\n", Reply(250, "2.1.5")),
        (b"550 5.1.1 gone\r\n", Reply(550, "5.1.1", "gone")),
        (b"550 4.1.1 gone\r\n", Reply(550, "", "4.1.1 gone")),
        (b"250 2.1.5.6 ok\r\n", Reply(250, "", "2.1.5.6 ok")),
        (b"354 3.0.0 go\r\n", Reply(354, "", "3.0.0 go")),
        (b"550-5.7.26 first\r\n550 5.7.26 last\r\n", Reply(550, "5.7.26", "first\nlast")),
        (b"550-5.7.26 first\r\n550 5.7.1 last\r\n", Reply(550, "5.7.26", "first\n5.7.1 last")),
        (b"550-gone\r\n550 5.1.1 no such user\r\n", Reply(550, "5.1.1", "gone\nno such user")),
        (b"550-4.1.1 gone\r\n550-5.1.1 no\r\n550 5.1.1 user\r\n", Reply(550, "5.1.1", "4.1.1 gone\nno\nuser")),
        (b"550-gone\r\n550 2.1.1 hm\r\n", Reply(550, "", "gone\n2.1.1 hm")),
        (b"250-first\r\n250\r\n", Reply(250, "", "first")),
        ("250 grüße\r\n".encode(), Reply(250, "", "grüße")),
        (b"250 \xff\x00\x1b[0m\r\n", Reply(250, "", "\ufffd\ufffd\ufffd[0m")),
    ],
)
def test_a_whole_reply_is_code_enhanced_code_and_text(data: bytes, reply: Reply) -> None:
    assert list(Replies().feed(data)) == [reply]


@pytest.mark.parametrize(
    "data",
    [
        b"25\r\n",
        b"2500 ok\r\n",
        b"250ok\r\n",
        b"199 ok\r\n",
        b"600 ok\r\n",
        b"999 ok\r\n",
        b"\r\n",
        b" 250 ok\r\n",
        b"2\xb25 ok\r\n",
        b"250-ok\r\n251 ok\r\n",
        b"hello\r\n",
        b"250 " + b"x" * 9000 + b"\r\n",
        b"250 " + b"x" * 9000,
        b"250-x\r\n" * 6000,
    ],
)
def test_what_is_no_reply_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        list(Replies().feed(data))


def test_what_is_whole_comes_before_what_is_unreadable() -> None:
    replies = Replies().feed(b"250 ok\r\nwhat?\r\n")

    assert next(replies) == Reply(250, "", "ok")
    with pytest.raises(Unreadable):
        next(replies)


def test_half_a_reply_is_told() -> None:
    replies = Replies()

    assert list(replies.feed(b"250 one\r\n250-two\r\n25")) == [Reply(250, "", "one")]
    assert replies.begun
    assert replies.half == "... b'25'"


@given(
    st.lists(
        st.tuples(st.integers(200, 599), st.lists(st.text("abc 2.10-", max_size=9), min_size=1, max_size=3)), max_size=4
    ),
    st.data(),
)
def test_however_the_bytes_are_cut_the_replies_are_the_same(
    spoken: list[tuple[int, list[str]]], data: st.DataObject
) -> None:
    stream = b"".join(
        f"{code}{'-' if more else ' '}{text}\r\n".encode()
        for code, texts in spoken
        for more, text in zip(range(len(texts) - 1, -1, -1), texts, strict=True)
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    whole, pieces = Replies(), Replies()

    found = [
        reply
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for reply in pieces.feed(stream[start:end])
    ]

    assert found == list(whole.feed(stream))
    assert [reply.code for reply in found] == [code for code, _ in spoken]
    assert not pieces.begun
