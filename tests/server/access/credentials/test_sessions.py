"""Signing in with a browser: sessions, what they may, when they end, and whom they do not serve."""

import re
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.catalog.access import sessions, tokens
from penstock.catalog.access.tokens import RUNNER
from penstock.server.access import browser_sessions
from tests.harness.data.arrow import people, send
from tests.harness.processes import servers
from tests.harness.processes.access import GuardedServer, Issuer, guarded, tls
from tests.harness.processes.databases import new_postgres_database
from tests.harness.processes.servers import Server

SESSION = "/console/api/session"
OURS = {"sec-fetch-site": "same-origin"}


class Browser:
    """A browser that keeps its cookies and shows its page's proof."""

    def __init__(self, server: Server, **headers: str) -> None:
        self.client = httpx.Client(
            base_url=server.url, timeout=30, verify=False, trust_env=False, headers=headers
        )
        self.csrf = ""

    def sign_in(self, key: str, **headers: str) -> httpx.Response:
        answer = self.client.post(SESSION, json={"key": key}, headers={**OURS, **headers})
        if answer.status_code == 200:
            self.csrf = answer.json()["csrf"]
        return answer

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        shown = {"x-penstock-csrf": self.csrf, **OURS, **headers}
        return self.client.post(path, json=body or {}, headers=shown)

    def describe(self) -> dict[str, Any]:
        answer = self.client.get(SESSION)
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()
        return found

    def may_list(self) -> int:
        return self.post("/v1/jobs/list").status_code


@pytest.fixture
def person(gate: GuardedServer) -> tuple[str, str, str]:
    """Somebody's name, and the id and text of their key."""
    name = f"p{uuid.uuid4().hex[:8]}"
    token, key = gate.make_key(name)
    return name, token.id, key


@pytest.fixture
def browser(gate: GuardedServer, person: tuple[str, str, str]) -> Browser:
    found = Browser(gate.server)
    assert found.sign_in(person[2]).status_code == 200
    return found


def test_signing_in_by_key_gives_a_cookie_that_no_script_reads(
    gate: GuardedServer, person: tuple[str, str, str]
) -> None:
    name, _, key = person
    browser = Browser(gate.server)
    answer = browser.sign_in(f"  {key}\n")
    assert answer.status_code == 200
    assert re.fullmatch(
        r"penstock_session=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200",
        answer.headers["set-cookie"],
    )
    assert answer.headers["cache-control"] == "no-store"
    told = answer.json()
    assert (told["authentication"], told["signed_in"], told["principal"]) == (True, True, name)
    assert key not in answer.text
    assert browser.describe() == told
    assert browser.may_list() == 200


def test_who_is_not_signed_in_is_told_how_to(gate: GuardedServer) -> None:
    told = Browser(gate.server).describe()
    assert (told["authentication"], told["signed_in"], told["principal"]) == (True, False, "")
    assert (told["csrf"], told["roles"]) == ("", [])
    assert "key" in told["sign_in"]


def test_a_session_has_the_rights_of_its_key(
    gate: GuardedServer, admin: Server, ns: str, person: tuple[str, str, str], browser: Browser
) -> None:
    path = f"/v1/namespace/{ns}/describe"
    assert browser.post(path).status_code == 404
    gate.grant(person[0], "reader", "namespace", ns)
    assert browser.post(path).status_code == 200
    assert browser.post(f"/v1/namespace/{ns}$more/create").status_code == 403
    assert browser.describe()["roles"] == []
    gate.grant(person[0], "writer")
    assert browser.describe()["roles"] == ["reader", "writer"]
    gate.ungrant(person[0], "writer")
    gate.ungrant(person[0], "reader", "namespace", ns)
    assert browser.post(path).status_code == 404


def test_a_session_ends_with_its_key(
    gate: GuardedServer, person: tuple[str, str, str], browser: Browser
) -> None:
    gate.revoke(person[1])
    answer = browser.post("/v1/jobs/list")
    assert answer.status_code == 401
    assert "the session has ended" in answer.text
    assert browser.describe()["signed_in"] is False


def test_a_session_ends_when_its_key_expires(gate: GuardedServer) -> None:
    _, key = gate.make_key(f"p{uuid.uuid4().hex[:8]}", seconds=3)
    browser = Browser(gate.server)
    told = browser.sign_in(key).json()
    assert told["expires_at"] < time.time() * 1000 + 4_000
    deadline = time.monotonic() + 60
    while browser.may_list() == 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert browser.may_list() == 401


def test_a_session_ends_by_itself(gate: GuardedServer, person: tuple[str, str, str]) -> None:
    browser = Browser(gate.server)
    browser.sign_in(person[2])
    secret = browser.client.cookies["penstock_session"]

    async def expire(database: Any) -> None:
        sql = "UPDATE console_sessions SET expires_at = now_millis() WHERE digest = $1"
        await database.write(lambda tx: tx.fetch(sql, sessions.digest_of(secret)))
        # The server has it in memory, with the end that it had.
        await database.write(tokens.bump_in)

    gate.work(expire)
    assert browser.may_list() == 401


def test_signing_out_ends_one_session_or_all(
    gate: GuardedServer, person: tuple[str, str, str]
) -> None:
    first, second, third = (Browser(gate.server) for _ in range(3))
    for each in (first, second, third):
        each.sign_in(person[2])
    kept = dict(first.client.cookies)
    headers = {"x-penstock-csrf": first.csrf}
    answer = first.client.delete(SESSION, headers=headers)
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert first.describe()["signed_in"] is False
    # Nor does the old cookie count.
    again = httpx.get(f"{gate.server.url}{SESSION}", cookies=kept)
    assert again.json()["signed_in"] is False
    assert (second.may_list(), third.may_list()) == (200, 200)
    headers = {"x-penstock-csrf": second.csrf}
    assert second.client.delete(f"{SESSION}?all=true", headers=headers).status_code == 204
    assert (second.may_list(), third.may_list()) == (401, 401)
    # Whoever is signed out already may sign out again.
    assert second.client.delete(SESSION).status_code == 204


def test_nothing_but_a_look_works_without_the_proof(
    gate: GuardedServer, browser: Browser, person: tuple[str, str, str]
) -> None:
    other = Browser(gate.server)
    other.sign_in(person[2])
    for wrong in ("", "x", other.csrf, browser.csrf[:-1], "\xe9"):
        headers = httpx.Headers({"x-penstock-csrf": wrong} if wrong else {}, encoding="latin-1")
        answer = browser.client.post("/v1/jobs/list", json={}, headers=headers)
        assert answer.status_code == 403, wrong
        assert "x-penstock-csrf" in answer.text
        assert browser.client.delete(SESSION, headers=headers).status_code == 403
    assert browser.client.get("/v1/manifest/list").status_code == 403
    assert "lacks reader" in browser.client.get("/v1/manifest/list").text
    assert browser.may_list() == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        # Another port of this machine is the same site.
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1"},
    ],
)
def test_a_session_is_not_for_other_pages(
    gate: GuardedServer, browser: Browser, person: tuple[str, str, str], headers: dict[str, str]
) -> None:
    for answer in (
        browser.post("/v1/jobs/list", **headers),
        browser.client.get("/v1/manifest/list", headers=headers),
        browser.client.get(SESSION, headers=headers),
        browser.client.delete(SESSION, headers={"x-penstock-csrf": browser.csrf, **headers}),
        Browser(gate.server).sign_in(person[2], **headers),
    ):
        assert answer.status_code == 403
        assert "console's own pages" in answer.text
    assert browser.may_list() == 200


def test_old_browsers_tell_the_page_by_its_origin(gate: GuardedServer, browser: Browser) -> None:
    def ask(origin: str) -> int:
        shown = {"x-penstock-csrf": browser.csrf, "origin": origin}
        return browser.client.post("/v1/jobs/list", json={}, headers=shown).status_code

    assert ask(gate.server.url) == 200
    for other in ("null", "http://127.0.0.1:1", "https://evil.example", "http://[", "x"):
        assert ask(other) == 403


def test_a_form_of_another_page_signs_nobody_in(
    gate: GuardedServer, person: tuple[str, str, str]
) -> None:
    body = f'{{"key": "{person[2]}"}}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = gate.server.send(SESSION, body.encode(), {"content-type": kind})
        assert answer.status_code == 400
        assert "set-cookie" not in answer.headers


def test_what_is_no_valid_key_signs_nobody_in(
    gate: GuardedServer, person: tuple[str, str, str], issuer: Issuer
) -> None:
    name, id, key = person
    runner = gate.key(f"r{uuid.uuid4().hex[:8]}", kind=RUNNER)
    wrong = [
        f"{key[:-1]}x",
        "x",
        id,
        gate.client_token(key),
        issuer.sign(sub=name),
        "pstk_",
        "é" * 99,
    ]
    for each in wrong:
        answer = Browser(gate.server).sign_in(each)
        assert answer.status_code == 401, each
        assert "set-cookie" not in answer.headers
    assert Browser(gate.server).sign_in(runner).status_code == 403
    for body in (b"", b"[]", b'{"key": 7}', b'{"key": ""}', b"x" * 20_000, b'{"key":"\\u0000"}'):
        answer = gate.server.send(SESSION, body, {"content-type": "application/json"})
        assert 400 <= answer.status_code < 500
    gate.revoke(id)
    assert Browser(gate.server).sign_in(key).status_code == 401


def test_a_header_wins_over_the_cookie(gate: GuardedServer, browser: Browser, ns: str) -> None:
    path = f"/v1/namespace/{ns}/describe"
    admin = gate.admin().client.headers["authorization"]
    # And needs no proof.
    assert browser.client.post(path, headers={"authorization": admin}).status_code == 200
    assert browser.client.post(path, headers={"x-api-key": "wrong"}).status_code == 401


def test_one_principal_has_a_bounded_number_of_sessions(
    gate: GuardedServer, person: tuple[str, str, str]
) -> None:
    browsers = [Browser(gate.server) for _ in range(sessions.MAX_SESSIONS + 2)]
    for each in browsers:
        each.sign_in(person[2])
        # The oldest are told apart by the millisecond.
        time.sleep(0.002)
    assert [each.may_list() for each in browsers[:2]] == [401, 401]
    assert {each.may_list() for each in browsers[2:]} == {200}


def test_the_database_and_the_audit_log_have_no_secret(
    gate: GuardedServer, browser: Browser, person: tuple[str, str, str]
) -> None:
    secret = browser.client.cookies["penstock_session"]

    async def read(database: Any) -> str:
        rows = await database.fetch("SELECT * FROM console_sessions")
        return str([tuple(row) for row in rows])

    told = gate.work(read)
    assert secret not in told
    assert browser.csrf not in told
    assert sessions.digest_of(secret) in told


def test_signing_in_and_out_is_audited(
    gate: GuardedServer, admin: Server, person: tuple[str, str, str]
) -> None:
    name, _, key = person
    browser = Browser(gate.server)
    browser.sign_in(key)
    browser.client.delete(SESSION, headers={"x-penstock-csrf": browser.csrf})

    def seen() -> list[tuple[str, str]]:
        found = admin.post("/v1/audit/list", {"principal": name}).json()["entries"]
        return sorted((each["operation"], each["outcome"]) for each in found)

    deadline = time.monotonic() + 60
    while len(seen()) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert seen() == [("SignIn", "ok"), ("SignOut", "ok")]


def test_events_of_a_job_come_by_the_cookie_until_the_session_ends(
    gate: GuardedServer, admin: Server, ns: str, person: tuple[str, str, str], browser: Browser
) -> None:
    send(admin, f"/v1/table/{ns}$t/create", people(1, 2)).raise_for_status()
    columns = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    admin.post(f"/v1/table/{ns}$t/add_columns", columns).raise_for_status()
    asked = admin.post(f"/v1/table/{ns}$t/backfill_column", {"column": "double"})
    job = asked.json()["job_id"]
    gate.grant(person[0], "reader", "namespace", ns)
    lines: list[str] = []
    began, ended = threading.Event(), threading.Event()

    def follow() -> None:
        with browser.client.stream("GET", f"/v1/jobs/{job}/events", headers=OURS) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                began.set()
        ended.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert began.wait(60)
    assert lines[0] == "event: progress"
    other = httpx.Client(base_url=gate.server.url, cookies=dict(browser.client.cookies))
    other.delete(SESSION, headers={"x-penstock-csrf": browser.csrf}).raise_for_status()
    assert ended.wait(60)
    thread.join()


def test_without_authentication_everybody_is_signed_in(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        told = server.get(SESSION).json()
        assert (told["authentication"], told["signed_in"], told["csrf"]) == (False, True, "")
        assert told["roles"] == ["reader", "writer", "owner", "functions"]
        answer = server.post(SESSION, {"key": "pstk_x"})
        assert answer.status_code == 400
        assert server.client.delete(SESSION).status_code == 204


def test_over_tls_the_cookie_is_for_tls_alone(tmp_path: Path) -> None:
    with guarded(tmp_path, environ=tls(tmp_path)) as found:
        browser, key = Browser(found.server), found.key("alice")
        cookie = browser.sign_in(key).headers["set-cookie"]
        assert cookie.startswith("__Host-penstock_session=")
        assert cookie.endswith("; Secure")
        assert browser.may_list() == 200


def test_a_cookie_that_was_not_set_over_tls_does_not_count_there() -> None:
    headers = {"cookie": "penstock_session=planted; x=1"}
    assert browser_sessions.find_secret(headers, "https") is None
    assert browser_sessions.find_secret(headers, "http") == "planted"
    both = {"cookie": "penstock_session=planted; __Host-penstock_session=s"}
    assert browser_sessions.find_secret(both, "http") == "s"
    assert browser_sessions.is_secure({"origin": "https://lake.example"}, "http")
    assert not browser_sessions.is_secure({"origin": "http://lake.example"}, "http")


def test_who_tries_keys_is_not_listened_to(tmp_path: Path) -> None:
    environ = {"PENSTOCK__AUTH__FAILURES_PER_SECOND": "5"}
    with guarded(tmp_path, environ=environ) as found:
        browser = Browser(found.server)
        answers = [browser.sign_in(f"pstk_{'0' * 16}_{n}").status_code for n in range(30)]
        assert 429 in answers
        assert set(answers) == {401, 429}
        stale = Browser(found.server)
        stale.client.cookies.set("penstock_session", "gone")
        assert 429 in [stale.client.get(SESSION).status_code for _ in range(30)]


def test_two_servers_know_each_others_sessions(postgres: str, tmp_path: Path) -> None:
    database, environ = new_postgres_database(postgres), {"PENSTOCK__AUTH__ENABLED": "true"}
    with (
        guarded(tmp_path, database=database) as first,
        servers.running(tmp_path, database=database, environ=environ) as second,
    ):
        browser, other = Browser(first.server), Browser(second)
        browser.sign_in(first.key("alice")).raise_for_status()
        other.client.cookies = browser.client.cookies
        other.csrf = browser.csrf
        assert other.may_list() == 200
        headers = {"x-penstock-csrf": browser.csrf}
        browser.client.delete(SESSION, headers=headers).raise_for_status()
        other.client.cookies.clear()
        assert other.may_list() == 401
