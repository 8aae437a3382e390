"""A wrong setting is refused in one line that names it; a right one means what it says."""

import pytest

from gateway.settings import given


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cooldown_seconds", True),
        ("claim_seconds", True),
        ("database_url", False),
        ("cooldown_seconds", "1.5"),
        ("reply_timeout_seconds", "nan"),
        ("give_up_seconds", "inf"),
        ("http_bind", "127.0.0.1:٣"),
        ("http_bind", "127.0.0.1:" + "9" * 5000),
        ("http_bind", "127.0.0.1:1\n"),
        ("unknown", "hold\n"),
        ("allow_special_use", "te st"),
        ("allow_special_use", ".."),
        ("allowed_hosts", "http://gw.example.com"),
        ("allowed_hosts", "gw.example.com:8080"),
        ("allowed_hosts", "gw example"),
        ("allowed_hosts", "*.example.com"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_its_setting(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name.upper()}: [^\n]+$"):
        given({name: value})


def test_special_use_domains_may_be_written_in_capitals() -> None:
    assert given({"allow_special_use": "TEST, Local"}).special_use == {"test", "local"}


@pytest.mark.parametrize("name", ["gw.example.com", "GW.Example.com", "gateway_1", "[::1]", "192.0.2.1", "*"])
def test_hosts_are_names_as_clients_call_them(name: str) -> None:
    assert name in given({"allowed_hosts": name}).hosts()
