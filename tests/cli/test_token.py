"""`penstock token`, run as an operator would, and the refusal to serve everybody by accident."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import InvalidRequest
from penstock.server.guard import check_access
from penstock.settings.load import SettingsError, load
from tests.harness import servers
from tests.harness.access import AUTH


def run(data: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "penstock", *arguments, "--data", str(data)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_key_is_made_before_the_first_start_listed_and_revoked_beside_the_server(
    tmp_path: Path,
) -> None:
    made = json.loads(run(tmp_path, "token", "create", "alice", "--json", "--note", "x").stdout)
    assert made["key"].startswith("pstk_")
    with servers.running(tmp_path, environ=AUTH) as server:
        headers = {"x-api-key": made["key"]}
        assert server.client.get("/v1/table", headers=headers).status_code == 200
        listed = run(tmp_path, "token", "list", "--json").stdout
        assert made["key"] not in listed
        assert [key["principal"] for key in json.loads(listed)] == ["alice"]
        assert "revoked" in run(tmp_path, "token", "revoke", made["id"]).stdout
        assert server.client.get("/v1/table", headers=headers).status_code == 401
    shown = run(tmp_path, "token", "list").stdout
    assert "alice" in shown
    assert "revoked" in shown
    assert "never" not in shown.splitlines()[1].split("  ")[4:5]


def test_the_catalog_is_readable_for_its_owner_only(tmp_path: Path) -> None:
    run(tmp_path, "token", "create", "alice")
    with servers.running(tmp_path, environ=AUTH):
        files = list(tmp_path.glob("catalog.sqlite*"))
        assert len(files) >= 3
        assert [f.name for f in files if stat.S_IMODE(f.stat().st_mode) & 0o077] == []


@pytest.mark.parametrize("arguments", [("a:b",), ("",), ("alice", "--expires", "soon")])
def test_a_key_that_can_not_be_is_one_clear_line(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    found = run(tmp_path, "token", "create", *arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("penstock: ")
    assert len(found.stderr.splitlines()) == 1


def test_an_address_beyond_this_machine_needs_authentication_or_a_word(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="would let everybody in") as refused:
        servers.start(tmp_path, "--host", "0.0.0.0")
    assert "--insecure" in str(refused.value)
    assert "auth.enabled" in str(refused.value)
    beyond = {"PENSTOCK__SERVER__HOST": "0.0.0.0"}
    for more in (AUTH, {"PENSTOCK__SERVER__INSECURE": "true"}):
        check_access(load(None, {**beyond, **more}, {}).settings)
    for host in ("127.0.0.2", "::1", "localhost"):
        check_access(load(None, {"PENSTOCK__SERVER__HOST": host}, {}).settings)
    for host in ("::", "10.0.0.1", "localhost.example", "127.0.0.1.example"):
        with pytest.raises(InvalidRequest):
            check_access(load(None, {"PENSTOCK__SERVER__HOST": host}, {}).settings)


def test_an_issuer_without_an_audience_is_refused() -> None:
    environ = {"PENSTOCK__AUTH__OIDC_ISSUER": "https://issuer.example"}
    with pytest.raises(InvalidRequest, match="oidc_audience"):
        check_access(load(None, environ, {}).settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OIDC_ISSUER", "http://issuer.example"),
        ("OIDC_JWKS_URL", "file:///etc/passwd"),
        ("OIDC_ALGORITHMS", "HS256"),
        ("OIDC_ALGORITHMS", "none"),
        ("OIDC_ALGORITHMS", "[]"),
    ],
)
def test_a_setting_that_would_be_dangerous_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match="it must be"):
        load(None, {f"PENSTOCK__AUTH__{name}": value}, {})
