"""Wishes for reports: read strictly, kept, and written anew for the next hop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.dsn import NONE, Dsn, encoded, load, read_envid, read_notify, read_orcpt, read_ret

printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30)


def test_without_a_parameter_there_is_no_wish() -> None:
    found = Dsn(read_ret(None), read_envid(None), read_notify(None), read_orcpt(None))

    assert found == NONE
    assert (found.of_mail(), found.of_rcpt(), found.dump()) == ("", "", "")


def test_wishes_are_written_in_one_form() -> None:
    found = Dsn(
        read_ret("hdrs"),
        read_envid("QQ+20314"),
        read_notify("success,Failure"),
        read_orcpt("rfc822;pat+2Bx@example.net"),
    )

    assert found.of_mail() == " RET=HDRS ENVID=QQ+20314"
    assert found.of_rcpt() == " NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;pat+2Bx@example.net"


@given(
    ret=st.sampled_from(["", "FULL", "HDRS"]), envid=st.just("") | printable, kind=st.sampled_from(["rfc822", "x-400"])
)
def test_what_is_kept_is_what_was_wished(ret: str, envid: str, kind: str) -> None:
    wish = Dsn(ret, envid, ("NEVER",), (kind, "pat@example.net"))

    assert load(wish.dump()) == wish
    assert load(NONE.dump()) == NONE


@given(text=printable)
def test_what_is_written_is_read_back(text: str) -> None:
    assert read_envid(encoded(text)) == text


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_ret, "BODY"),
        (read_envid, "a=b"),
        (read_envid, "a b"),
        (read_envid, "+0D+0ARCPT"),
        (read_envid, "+7F"),
        (read_envid, "+E4"),
        (read_envid, "+g0"),
        (read_envid, "x" * 101),
        (read_notify, "NEVER,SUCCESS"),
        (read_notify, "SUCCESS,SUCCESS"),
        (read_notify, "ALWAYS"),
        (read_notify, ""),
        (read_orcpt, "pat@example.net"),
        (read_orcpt, ";pat@example.net"),
        (read_orcpt, "rfc822;"),
        (read_orcpt, "rfc822;pat@example.net>+0D"),
        (read_orcpt, "rfc822;" + "x" * 500),
    ],
)
def test_what_is_malformed_is_refused(read: object, value: str) -> None:
    with pytest.raises(ValueError, match=r"^(RET|ENVID|NOTIFY|ORCPT) is "):
        read(value)  # type: ignore[operator]
