"""`penstock token`, run as an operator would, and the refusal to serve everybody by accident."""

import json
import stat
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from penstock.cli.main import penstock
from penstock.errors import InvalidRequest
from penstock.server.access.bootstrap_security import check_access, read_tls
from penstock.settings.load import SettingsError, load
from tests.harness.processes import nursery, servers
from tests.harness.processes.access import AUTH, tls


def run(data: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return nursery.run([*arguments, "--data", str(data)])


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


def test_a_runners_key_is_for_clusters_and_no_other_key_is(tmp_path: Path) -> None:
    two = ("--cluster", "prod", "--cluster", "local")
    made = run(tmp_path, "token", "create", "r", "--runner", *two, "--json")
    assert json.loads(made.stdout)["clusters"] == ["prod", "local"], made.stderr
    run(tmp_path, "token", "create", "s", "--runner")
    refused = run(tmp_path, "token", "create", "t", "--cluster", "prod")
    assert refused.returncode != 0
    assert "only a runner's key is for clusters" in refused.stderr
    assert run(tmp_path, "token", "create", "t", "--runner", "--cluster", "").returncode != 0
    shown = run(tmp_path, "token", "list").stdout
    assert "prod, local" in shown
    assert "default" in shown


def test_the_catalog_is_readable_for_its_owner_only(tmp_path: Path) -> None:
    run(tmp_path, "token", "create", "alice")
    with servers.running(tmp_path, environ=AUTH):
        files = list(tmp_path.glob("catalog.sqlite*"))
        assert len(files) >= 3
        assert [f.name for f in files if stat.S_IMODE(f.stat().st_mode) & 0o077] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("create a:b --role owner", "colon"),
        ("create oidc:ann", "come from elsewhere"),
        ("create ", "printable"),
        ("create operator --role owner", "choose another name"),
        ("create runner --runner", "choose another name"),
        ("create alice --group group:x", "write 'x'"),
        ("create alice --note a\tb", "control characters"),
        ("create alice --expires soon", "90d"),
        ("create alice --expires 0d", "90d"),
        ("create alice --expires 9999999d", "too long"),
        (f"create alice --expires {'9' * 5000}d", "too long"),
    ],
)
def test_a_key_that_can_not_be_is_refused_and_nothing_is_granted(
    tmp_path: Path, arguments: str, told: str
) -> None:
    command = ["token", *arguments.split(" "), "--data", str(tmp_path)]
    refused = CliRunner().invoke(penstock, command).exception
    assert isinstance(refused, InvalidRequest)
    assert told in f"{refused.message}; {refused.detail}"
    assert not (tmp_path / "catalog.sqlite").exists()


def test_a_refusal_is_one_clear_line(tmp_path: Path) -> None:
    found = run(tmp_path, "token", "create", "a:b")
    assert found.returncode == 2
    assert found.stderr.startswith("penstock: ")
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("grant some:body reader", "group:NAME"),
        ("grant ann reader --namespace ", "every part"),
        ("revoke ann reader --namespace $", "whole catalog"),
    ],
)
def test_a_grant_that_can_not_be_is_refused(tmp_path: Path, arguments: str, told: str) -> None:
    command = [*arguments.split(" "), "--data", str(tmp_path)]
    refused = CliRunner().invoke(penstock, command).exception
    assert isinstance(refused, InvalidRequest)
    assert told in refused.detail


def test_an_audit_file_that_cannot_be_opened_is_one_clear_line(tmp_path: Path) -> None:
    environ = {**AUTH, "PENSTOCK__AUTH__AUDIT_FILE": str(tmp_path)}
    with pytest.raises(AssertionError, match=r"auth\.audit_file") as refused:
        servers.start(tmp_path, environ=environ)
    assert len(str(refused.value).splitlines()) == 2


@pytest.mark.parametrize("wrong", ["swapped", "another key", "encrypted", "not PEM", "missing"])
def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path, wrong: str) -> None:
    certificate, key = map(Path, tls(tmp_path).values())
    if wrong == "swapped":
        certificate, key = key, certificate
    elif wrong == "another key":
        (tmp_path / "other").mkdir()
        key = Path([*tls(tmp_path / "other").values()][1])
    elif wrong == "encrypted":
        loaded = load_pem_private_key(key.read_bytes(), None)
        hidden = BestAvailableEncryption(b"secret")
        key.write_bytes(loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
    elif wrong == "not PEM":
        certificate.write_bytes(b"\x30\x82")
    else:
        key = tmp_path / "nowhere"
    environ = {
        "PENSTOCK__SERVER__TLS_CERTIFICATE": str(certificate),
        "PENSTOCK__SERVER__TLS_KEY": str(key),
    }
    with pytest.raises(InvalidRequest, match=r"server\.tls_") as refused:
        read_tls(load(None, environ, {}).settings)
    assert len(refused.value.message.splitlines()) == 1
    assert ("another" in refused.value.message) == (wrong == "another key")


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


def test_an_issuer_without_an_audience_or_authentication_is_refused() -> None:
    issuer = {"PENSTOCK__AUTH__OIDC_ISSUER": "https://issuer.example"}
    audience = {"PENSTOCK__AUTH__OIDC_AUDIENCE": "penstock"}
    with pytest.raises(InvalidRequest, match="oidc_audience"):
        check_access(load(None, {**AUTH, **issuer}, {}).settings)
    with pytest.raises(InvalidRequest, match=r"auth\.enabled"):
        check_access(load(None, {**issuer, **audience}, {}).settings)
    check_access(load(None, {**AUTH, **issuer, **audience}, {}).settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AUTH__OIDC_ISSUER", "http://issuer.example"),
        ("AUTH__OIDC_JWKS_URL", "file:///etc/passwd"),
        ("AUTH__OIDC_ALGORITHMS", "HS256"),
        ("AUTH__OIDC_ALGORITHMS", "none"),
        ("AUTH__OIDC_ALGORITHMS", "[]"),
        ("SERVER__HOST", ""),
        ("SERVER__ALLOWED_ORIGINS", "*"),
        ("SERVER__ALLOWED_ORIGINS", "https://a.example,b.example"),
        ("SERVER__ALLOWED_ORIGINS", "https://a.example/"),
        ("SERVER__ALLOWED_ORIGINS", "https://*.example"),
    ],
)
def test_a_setting_that_would_be_dangerous_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match="it must be"):
        load(None, {f"PENSTOCK__{name}": value}, {})
