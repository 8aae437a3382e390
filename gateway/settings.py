"""Every setting once: name, unit, default, limit and a sentence. The docs' table is made from this file.

Values come from the environment (`GATEWAY_<NAME>`) or, in lower case, from the TOML file of `--config` or
`GATEWAY_CONFIG`; the environment wins. A wrong setting stops the start with one line that names it (SEMANTICS 8).
"""

import os
import re
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.core.address import AddressError, domain_of

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
HOST = re.compile(r"\*|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]")
UNKNOWN_SETTING = re.compile(r"hold|(retry_once_after|assume_sent_after):([1-9]\d{0,6})([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
ROLES = ("http", "smtp", "relay")
Words = Annotated[tuple[str, ...], NoDecode]


def _field(default: object, sentence: str, **limits: object) -> Any:  # noqa: ANN401  (a pydantic field)
    return Field(default, description=sentence, **limits)  # type: ignore[call-overload]


class Settings(BaseSettings):
    """What an operator can set."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_", extra="forbid", frozen=True)

    database_url: str = _field(
        "sqlite:///gateway.db", "Where the store is: sqlite:///FILE or postgresql://USER@HOST/NAME."
    )
    http_bind: str = _field("127.0.0.1:8080", "Address and port of the HTTP door; empty: off.")
    smtp_bind: str = _field("", "Address and port of the SMTP submission door with STARTTLS; empty: off.")
    smtps_bind: str = _field("", "Address and port of the SMTP submission door with implicit TLS; empty: off.")
    inbound_bind: str = _field("", "Address and port for bounces and replies; empty: off.")
    smarthost: str = _field(
        "smtp://127.0.0.1:2525",
        "Where mail goes: smtp://, smtp+starttls:// or smtps://, user:password@ in it (@ as %40); ?tls=off: in clear.",
    )
    smarthost_ca: str = _field(
        "", "File with the certificates that the smarthost is checked against; empty: the system's."
    )
    hostname: str = _field(
        "", "The name that the gateway gives itself in EHLO, Message-ID and Received; empty: the machine's."
    )
    tls_cert: str = _field("", "Certificate file of the SMTP doors.")
    tls_key: str = _field("", "Key file of the SMTP doors.")
    smtp_trust: Words = _field((), "Networks that submit as an agent without AUTH: network=agent, ...")
    cooldown_seconds: int = _field(600, "Seconds between two mails to one person, whoever sends.", ge=0, le=31_536_000)
    unknown: str = _field(
        "hold", "What becomes of an unknown delivery: hold, retry_once_after:1h or assume_sent_after:24h."
    )
    retry_first_seconds: float = _field(
        30, "Seconds before the second attempt; each further step doubles.", gt=0, le=86400
    )
    retry_max_seconds: float = _field(3600, "Longest step between two attempts, in seconds.", gt=0, le=86400)
    give_up_seconds: float = _field(
        172_800, "Seconds after which a delivery that is deferred is given up.", gt=0, le=2_592_000
    )
    max_attempts: int = _field(0, "Attempts after which a delivery is given up; 0: by time alone.", ge=0, le=1000)
    reply_timeout_seconds: float = _field(600, "Seconds to wait for the reply to the final dot.", gt=0, le=3600)
    command_timeout_seconds: float = _field(120, "Seconds to wait for the reply to any other command.", gt=0, le=600)
    connect_timeout_seconds: float = _field(30, "Seconds to wait for a connection and its greeting.", gt=0, le=300)
    claim_seconds: float = _field(30, "Seconds of silence after which a process is taken for dead.", ge=5, le=3600)
    relay_concurrency: int = _field(10, "Deliveries that one process has under way at once.", ge=1, le=1000)
    max_message_bytes: int = _field(10_485_760, "Largest message, in bytes on the wire.", ge=1024, le=268_435_456)
    max_recipients: int = _field(100, "Most recipients of one message.", ge=1, le=10_000)
    smtp_idle_seconds: float = _field(300, "Seconds after which an idle SMTP session is closed.", gt=0, le=3600)
    flight_max_seconds: float = _field(
        3600, "Seconds for which mail on its way closes a contact to other agents.", ge=0, le=604_800
    )
    rejudge_after_seconds: float = _field(
        600, "Seconds after which waiting mail is judged again before it leaves.", gt=0, le=86400
    )
    max_lateness_seconds: float = _field(
        86400, "Seconds after its time at which untried mail is too late to be useful.", gt=0, le=2_592_000
    )
    lease_max_minutes: float = _field(1440, "Longest lease, in minutes.", gt=0, le=44_640)
    allow_special_use: Words = _field((), "Special-use domains that may be mailed: test, local, localhost, ...")
    allowed_hosts: Words = _field(
        (), "Names by which the HTTP door may be called, beside loopback names and HOSTNAME; * allows all."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _field("info", "How much is logged.")
    roles: Words = _field(ROLES, "What this process does: http, smtp, relay.")
    policies: dict[str, dict[str, Any]] = _field({}, "Options by policy: mode, applies_to and the policy's own fields.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment before what is passed in (the file's values)."""
        return env_settings, init_settings

    @field_validator("smtp_trust", "allow_special_use", "allowed_hosts", "roles", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        return tuple(w.strip() for w in value.split(",") if w.strip()) if isinstance(value, str) else value

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch(cls, value: object) -> object:
        if isinstance(value, bool):  # else `true` in the file would be one second
            msg = "must not be true or false"
            raise ValueError(msg)  # noqa: TRY004  (pydantic's way to say it)
        return value

    @field_validator("allow_special_use")
    @classmethod
    def _domains(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(domain_of(name) for name in value)
        except AddressError:
            msg = "must be domains like test or local"
            raise ValueError(msg) from None

    @field_validator("allowed_hosts")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(HOST.fullmatch(name) for name in value):
            msg = "must be names as a client calls them, like gw.example.com, without scheme or port, or *"
            raise ValueError(msg)
        return value

    @field_validator("roles")
    @classmethod
    def _known_roles(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or not set(value) <= set(ROLES):
            msg = f"must be some of {', '.join(ROLES)}"
            raise ValueError(msg)
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _level(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("http_bind", "smtp_bind", "smtps_bind", "inbound_bind")
    @classmethod
    def _bind(cls, value: str) -> str:
        if value:
            split_bind(value)
        return value

    @field_validator("unknown")
    @classmethod
    def _unknown(cls, value: str) -> str:
        if not UNKNOWN_SETTING.fullmatch(value):
            msg = "must be hold, retry_once_after:TIME or assume_sent_after:TIME, with a time like 90s, 30m, 1h or 2d"
            raise ValueError(msg)
        return value

    @field_validator("hostname")
    @classmethod
    def _hostname(cls, value: str) -> str:
        name = value or socket.getfqdn()
        try:
            return domain_of(name)
        except AddressError:
            if not value:  # an odd machine name must not stop the start; it is only a default
                return "localhost"
            msg = "must be a host name like mail.example.com"
            raise ValueError(msg) from None

    def policy_defaults(self) -> dict[str, dict[str, object]]:
        """The options of policies that have a setting of their own."""
        return {
            "cooldown": {"seconds": self.cooldown_seconds},
            "lease": {"flight_max": int(self.flight_max_seconds)},
            "recipient": {"max_recipients": self.max_recipients},
            "content": {"max_bytes": self.max_message_bytes},
        }

    def hosts(self) -> frozenset[str]:
        """Names by which the HTTP door may be called."""
        return frozenset({*LOOPBACK, self.hostname, *self.allowed_hosts})

    @property
    def special_use(self) -> frozenset[str]:
        """Special-use domains that may be mailed."""
        return frozenset(self.allow_special_use)


def split_bind(value: str) -> tuple[str, int]:
    """Address and port of "127.0.0.1:8080" or "[::1]:8080"; raises ValueError."""
    host, _, port = value.rpartition(":")
    if not host or re.fullmatch("[0-9]{1,5}", port) is None or int(port) > 65535:  # noqa: PLR2004
        msg = "must be an address and a port, like 127.0.0.1:8080"
        raise ValueError(msg)
    return host.removeprefix("[").removesuffix("]"), int(port)


def split_unknown(value: str) -> tuple[str, int]:
    """What becomes of an unknown delivery, and after how many seconds."""
    found = UNKNOWN_SETTING.fullmatch(value)
    if found is None or value == "hold":
        return "hold", 0
    return found[1], int(found[2]) * SECONDS[found[3]]


def load(config: str | None = None, overrides: Mapping[str, object] | None = None) -> Settings:
    """Read the settings from file, environment and `overrides` (which win).

    Raises ValueError with one line that names the wrong setting.
    """
    values = _from_file(config or os.environ.get("GATEWAY_CONFIG"))
    _refuse_unknown_names()
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise ValueError(_one_line(error)) from None
    if overrides:
        return given(settings.model_dump() | dict(overrides))
    _check_together(settings)
    return settings


class _Given(Settings):
    """Settings that do not look at the environment."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is passed in, alone."""
        return (init_settings,)


def given(values: Mapping[str, Any]) -> Settings:
    """Make settings of `values` and defaults alone, whatever file and environment say.

    Raises ValueError with one line that names the wrong setting.
    """
    try:
        settings = _Given(**values)
    except ValidationError as error:
        raise ValueError(_one_line(error)) from None
    _check_together(settings)
    return settings


def _from_file(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"CONFIG: {path} cannot be read: {error.strerror}"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"CONFIG: {path} is not TOML: {error}"
    raise ValueError(msg)


NOT_SETTINGS = {"GATEWAY_CONFIG", "GATEWAY_PROFILE", "GATEWAY_URL", "GATEWAY_KEY"}


def _refuse_unknown_names() -> None:
    """A misspelt variable must not be a silent default."""
    known = {f"GATEWAY_{name.upper()}" for name in Settings.model_fields} | NOT_SETTINGS
    for name in sorted(os.environ):
        if name.startswith("GATEWAY_") and name not in known:
            msg = f"{name.removeprefix('GATEWAY_')}: there is no such setting"
            raise ValueError(msg)


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    words = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        words = "there is no such setting"
    return f"{name.upper() or 'SETTINGS'}: {words}"


def _check_together(settings: Settings) -> None:
    act, seconds = split_unknown(settings.unknown)
    least = settings.reply_timeout_seconds + 5
    if act == "retry_once_after" and seconds <= least:
        msg = f"UNKNOWN: retry_once_after must exceed REPLY_TIMEOUT_SECONDS + 5 ({least:g} s)"
        raise ValueError(msg)
    if settings.retry_first_seconds > settings.retry_max_seconds:
        msg = "RETRY_FIRST_SECONDS: must not exceed RETRY_MAX_SECONDS"
        raise ValueError(msg)
