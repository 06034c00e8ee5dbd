"""What the Dockerfile and compose.yaml promise: no root, nothing open to others, known settings."""

import re
from typing import Any

import yaml

from penstock.settings.keys import list_keys
from tests.harness.root import ROOT
from tests.packaging.image import read_steps

STEPS = list(read_steps((ROOT / "Dockerfile").read_text(encoding="utf-8")))
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def list_variables() -> set[str]:
    names = {rest.partition("=")[0] for step, rest in STEPS if step == "ENV"}
    return names.union(*(each["environment"] for each in SERVICES.values()))


def test_their_variables_are_settings() -> None:
    ours = {each for each in list_variables() if each.startswith("PENSTOCK")}
    assert ours
    assert ours <= {key.env for key in list_keys()}


def test_the_image_runs_as_a_user_of_its_own() -> None:
    last = [rest for step, rest in STEPS if step == "USER"][-1]
    made = [rest for step, rest in STEPS if step == "RUN" and rest.startswith("useradd")]
    assert last != "root"
    assert any(each.endswith(f" {last}") for each in made)
    # What comes after it needs no rights.
    order = [step for step, _ in STEPS]
    assert "RUN" not in order[order.index("USER") :]
    assert not any("user" in each for each in SERVICES.values())


def test_everything_that_is_copied_is_sent_to_the_builder() -> None:
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [each for step, rest in STEPS if step == "COPY" for each in rest.split()[:-1]]
    assert [each for each in copied if f"!{each}" not in sent] == ["--from=wheel", "/wheels"]


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for each in SERVICES.values() for port in each.get("ports", [])]
    assert ports == ["127.0.0.1:2333:2333"]


def test_passwords_come_from_outside() -> None:
    said = [item for each in SERVICES.values() for item in each["environment"].items()]
    secret = [value for name, value in said if "PASSWORD" in name or "DATABASE__URL" in name]
    assert len(secret) >= 3
    assert all("${POSTGRES_PASSWORD:?" in each for each in secret)
    assert ".env" in (ROOT / ".gitignore").read_text().split()


def test_what_stays_is_in_a_volume_and_whoever_waits_waits_for_health() -> None:
    named = {each.split(":")[0] for service in SERVICES.values() for each in service["volumes"]}
    assert named == set(COMPOSE["volumes"])
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                built = "build" in SERVICES[other] and any(s == "HEALTHCHECK" for s, _ in STEPS)
                assert "healthcheck" in SERVICES[other] or built, (name, other)
        # One that ends by itself has nobody to look after it.
        assert service.get("restart") == (None if name == "key" else "unless-stopped"), name


def test_the_image_has_the_version_of_the_package() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert COMPOSE["x-penstock"]["image"] == f"penstock:{version[1]}"
