"""The profile: private, whole, and its key goes only to the gateway that it was made for."""

import stat
from pathlib import Path

import pytest
import typer

from gateway import profile
from gateway.cli.api import Api
from gateway.profile import Profile

MINE = Profile("http://127.0.0.1:8080", "gk_live_mine")


def test_it_comes_back_as_it_was_written(bare: Path) -> None:
    odd = Profile('http://127.0.0.1:8080/"x\\y', "gk_live_-_")

    profile.write(odd)

    assert profile.read() == odd


def test_nobody_else_may_read_it(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_PROFILE", str(bare / "deep" / "er" / "profile.toml"))

    path = profile.write(MINE)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["profile.toml"]


def test_a_former_one_is_kept_beside_it(bare: Path) -> None:
    profile.write(MINE)

    path = profile.write(Profile("http://127.0.0.1:9090", "gk_live_new"))

    assert "gk_live_mine" in path.with_name("profile.toml.old").read_text()
    assert profile.read() == Profile("http://127.0.0.1:9090", "gk_live_new")


def test_without_one_there_is_none(bare: Path) -> None:
    assert profile.read() is None


def test_it_lies_in_the_home_unless_a_variable_says_otherwise(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATEWAY_PROFILE")
    monkeypatch.setenv("HOME", str(bare))

    assert profile.place() == bare / ".config" / "gateway" / "profile.toml"


@pytest.mark.parametrize("content", [b"url = ", b"\xff", b"url = 'x'", b"url = 1\nkey = 2", b"[url]\nx = 1"])
def test_a_broken_one_is_one_line_that_names_it(bare: Path, content: bytes) -> None:
    profile.place().write_bytes(content)

    with pytest.raises(ValueError, match=r"^the profile .*profile\.toml .*$"):
        profile.read()


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://127.0.0.1:9999", "http://127.0.0.1:8080"),
        ("http://localhost:1", "http://[::1]:8080"),
        ("https://mail.example.com", "https://mail.example.com"),
        ("https://MAIL.example.com/", "https://mail.example.com"),
        (None, "https://mail.example.com"),
    ],
)
def test_its_key_goes_to_its_own_gateway(bare: Path, url: str | None, own: str) -> None:
    profile.write(Profile(own, "gk_live_mine"))

    assert Api(url, None)._key == "gk_live_mine"


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("https://elsewhere.example.com", "https://mail.example.com"),
        ("http://mail.example.com", "https://mail.example.com"),
        ("https://mail.example.com:8443", "https://mail.example.com"),
        ("http://127.0.0.1:8080", "https://mail.example.com"),
        ("https://mail.example.com", "http://127.0.0.1:8080"),
        ("https://127.0.0.1.example.com", "http://127.0.0.1:8080"),
    ],
)
def test_its_key_goes_nowhere_else(bare: Path, capsys: pytest.CaptureFixture[str], url: str, own: str) -> None:
    profile.write(Profile(own, "gk_live_mine"))

    with pytest.raises(typer.Exit) as caught:
        Api(url, None)

    assert caught.value.exit_code == 2
    assert "is for another gateway" in capsys.readouterr().err


def test_one_that_others_may_read_is_warned_about(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile.write(MINE).chmod(0o644)

    Api(None, None)

    assert "chmod 600" in capsys.readouterr().err


def test_a_key_in_clear_to_another_machine_is_warned_about(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Api("http://mail.example.com", "gk_live_x")

    assert "without TLS" in capsys.readouterr().err
