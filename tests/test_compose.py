"""The compose file against the settings: images, ports, variables and the order of starting.

This is all it does: the file is loaded and read. No container is built or started, so nothing here shows that the
images exist or that the gateways run in them.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from gateway.settings import Settings

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docker-compose.yml"
GATEWAYS = ("gateway-1", "gateway-2")
PREFIX = "GATEWAY_"

Service = dict[str, Any]


@pytest.fixture(scope="module")
def services() -> dict[str, Service]:
    """The services, with the defaults of `${NAME:-default}` put in."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", FILE.read_text())
    return dict(yaml.safe_load(text)["services"])


def variables(service: Service) -> dict[str, str]:
    return {name: value for name, value in service["environment"].items() if name.startswith(PREFIX)}


def test_the_services_are_two_gateways_a_migration_a_database_and_a_smarthost(services: dict[str, Service]) -> None:
    assert set(services) == {*GATEWAYS, "migrate", "postgres", "mailpit"}


def test_every_image_is_built_here_or_named_with_its_version(services: dict[str, Service]) -> None:
    for name, service in services.items():
        tag = service["image"].partition(":")[2]
        if "build" in service:
            assert "FROM python:3." in service["build"]["dockerfile_inline"], name
            assert tag == "local", name
        else:
            assert re.match(r"v?\d", tag), name


def test_the_image_copies_what_the_build_context_holds(services: dict[str, Service]) -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied: set[str] = set()
    for line in services["gateway-1"]["build"]["dockerfile_inline"].splitlines():
        if line.startswith("COPY "):
            copied.update(line.split()[1:-1])

    assert copied == let_in
    assert all((ROOT / name).exists() for name in copied)


def test_every_variable_is_a_setting(services: dict[str, Service]) -> None:
    for name in (*GATEWAYS, "migrate"):
        names = {variable.removeprefix(PREFIX).lower() for variable in variables(services[name])}

        assert names
        assert names <= set(Settings.model_fields)


def test_the_values_are_accepted_as_settings(services: dict[str, Service], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables(services["gateway-1"]).items():
        monkeypatch.setenv(name, value)

    settings = Settings()

    assert settings.model_fields_set >= {name.removeprefix(PREFIX).lower() for name in variables(services["gateway-1"])}


def test_both_gateways_share_one_database_and_one_smarthost(services: dict[str, Service]) -> None:
    one, two = (variables(services[name]) for name in GATEWAYS)

    assert one == two


def test_the_database_is_the_one_that_is_started(services: dict[str, Service]) -> None:
    url = make_url(variables(services["gateway-1"])["GATEWAY_DATABASE_URL"])
    started = services["postgres"]["environment"]

    assert url.drivername == "postgresql+psycopg"
    assert (url.host, url.port) == ("postgres", 5432)
    assert url.username == started["POSTGRES_USER"]
    assert url.password == started["POSTGRES_PASSWORD"]
    assert url.database == started["POSTGRES_DB"]


def test_the_smarthost_is_the_one_that_is_started(services: dict[str, Service]) -> None:
    smarthost = variables(services["gateway-1"])["GATEWAY_SMARTHOST"]

    assert smarthost == "smtp://mailpit:1025?tls=off"
    assert services["mailpit"]["image"].startswith("axllent/mailpit:")


def test_ports_are_published_on_loopback_alone_and_each_once(services: dict[str, Service]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len({port.split(":")[1] for port in published}) == len(published)
    assert "ports" not in services["postgres"]


def test_the_published_port_is_the_one_the_gateway_binds(services: dict[str, Service]) -> None:
    for name in GATEWAYS:
        bound = variables(services[name])["GATEWAY_HTTP_BIND"].rpartition(":")[2]

        assert [port.rpartition(":")[2] for port in services[name]["ports"]] == [bound]
        assert f":{bound}/readyz" in services[name]["healthcheck"]["test"][-1]


def test_a_gateway_starts_after_the_migration_and_the_migration_after_the_database(
    services: dict[str, Service],
) -> None:
    for name in GATEWAYS:
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["migrate"]["command"] == ["migrate"]
    assert services["migrate"]["restart"] == "no"
