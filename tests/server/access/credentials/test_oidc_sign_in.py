"""People sign in at the console by way of an OpenID Connect issuer."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.harness.processes import servers
from tests.harness.processes.access import CLIENT, CLIENT_SECRET, GuardedServer, Issuer, guarded

PLACE = "https://lake.example"
REFUSED = "/console/sign-in?refused"


@pytest.fixture(scope="module")
def site(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    """A server whose console people reach through a proxy that speaks TLS."""
    environ = {
        **issuer.environ(),
        "PENSTOCK__AUTH__OIDC_CLIENT_ID": CLIENT,
        "PENSTOCK__AUTH__OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "PENSTOCK__AUTH__OIDC_REDIRECT_URL": f"{PLACE}/console/api/signed-in",
        "PENSTOCK__LOG__FORMAT": "human",
    }
    with guarded(tmp_path_factory.mktemp("data"), environ=environ) as found:
        yield found


class Browser:
    """A browser that goes where it is sent, by way of the proxy."""

    def __init__(self, site: GuardedServer) -> None:
        self.site = site
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> httpx.Response:
        shown = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = httpx.get(
            f"{self.site.server.url}{path.removeprefix(PLACE)}",
            headers={"cookie": shown, **headers},
            follow_redirects=False,
        )
        for each in answer.headers.get_list("set-cookie"):
            name, _, value = each.partition(";")[0].partition("=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        return answer

    def go(self) -> str:
        """Begin to sign in; returns the way to the issuer."""
        answer = self.get("/console/api/sign-in", **{"sec-fetch-site": "same-origin"})
        assert answer.status_code == 302, answer.text
        return str(answer.headers["location"])

    def session(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/console/api/session").json()
        return found


def test_who_comes_back_from_the_issuer_is_signed_in(site: GuardedServer, issuer: Issuer) -> None:
    browser, name = Browser(site), uuid.uuid4().hex
    assert browser.session()["sign_in"] == ["key", "oidc"]
    way = browser.go()
    query = parse_qs(urlsplit(way).query)
    assert way.startswith(f"{issuer.url}/authorization?")
    assert (query["response_type"], query["code_challenge_method"]) == (["code"], ["S256"])
    back = issuer.sign_in(way, sub=name, groups=["team"])
    answer = browser.get(back, **{"sec-fetch-site": "cross-site"})
    assert (answer.status_code, answer.headers["location"]) == (302, "/console")
    cookies = answer.headers.get_list("set-cookie")
    [session] = [each for each in cookies if each.startswith("__Host-penstock_session=")]
    assert session.endswith("Path=/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure")
    told = browser.session()
    assert (told["signed_in"], told["principal"]) == (True, f"oidc:{name}")
    assert told["groups"] == ["team"]
    assert "penstock_sign_in" not in browser.cookies


def test_groups_of_the_issuer_have_their_grants(site: GuardedServer, issuer: Issuer) -> None:
    browser, team = Browser(site), f"t{uuid.uuid4().hex[:8]}"
    site.grant(f"group:{team}", "reader")
    browser.get(issuer.sign_in(browser.go(), sub="ann", groups=[team]))
    assert browser.session()["roles"] == ["reader"]
    assert browser.get("/v1/manifest/list").status_code == 200
    site.ungrant(f"group:{team}", "reader")
    assert browser.get("/v1/manifest/list").status_code == 403


def refused(browser: Browser, back: str) -> bool:
    answer = browser.get(back)
    is_refused = (answer.status_code, answer.headers.get("location")) == (302, REFUSED)
    return is_refused and not browser.session()["signed_in"]


def test_a_way_back_is_for_the_browser_that_went(site: GuardedServer, issuer: Issuer) -> None:
    """Nobody is signed in as somebody else by a link."""
    attacker, victim = Browser(site), Browser(site)
    back = issuer.sign_in(attacker.go(), sub="mallory")
    assert refused(victim, back)
    victim.go()
    assert refused(victim, back)
    assert not refused(attacker, back)


def test_a_way_back_counts_once(site: GuardedServer, issuer: Issuer) -> None:
    browser = Browser(site)
    journey_cookies = browser.go() and dict(browser.cookies)
    issuer_back = issuer.sign_in(browser.go(), sub="ann")
    kept = dict(browser.cookies)
    browser.get(issuer_back)
    again = Browser(site)
    again.cookies = kept
    assert refused(again, issuer_back)
    older = Browser(site)
    older.cookies = dict(journey_cookies or {})
    assert refused(older, issuer_back)


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "penstock-tests"},
        {"aud": ["another"]},
        {"iss": "https://elsewhere.example"},
        {"exp": 1},
        {"sub": ""},
        {"sub": None},
    ],
)
def test_a_token_for_something_else_signs_nobody_in(
    site: GuardedServer, issuer: Issuer, claims: dict[str, Any]
) -> None:
    browser = Browser(site)
    assert refused(browser, issuer.sign_in(browser.go(), **{"sub": "ann", **claims}))


@pytest.mark.parametrize(
    "query", ["", "?code=x", "?state=y", "?error=access_denied", "?code=a&state="]
)
def test_what_is_no_way_back_signs_nobody_in(site: GuardedServer, query: str) -> None:
    assert refused(Browser(site), f"/console/api/signed-in{query}")
    browser = Browser(site)
    browser.go()
    assert refused(browser, f"/console/api/signed-in{query}")


def test_a_code_that_the_issuer_did_not_give_signs_nobody_in(site: GuardedServer) -> None:
    browser = Browser(site)
    state = parse_qs(urlsplit(browser.go()).query)["state"][0]
    assert refused(browser, f"/console/api/signed-in?code=guess&state={state}")
    browser.go()
    state = browser.cookies["penstock_sign_in"].split(".")[0]
    assert refused(browser, f"/console/api/signed-in?code={'x' * 5000}&state={state}")


def test_where_no_client_is_named_people_sign_in_by_key_alone(gate: GuardedServer) -> None:
    assert gate.server.get("/console/api/session").json()["sign_in"] == ["key"]
    for path in ("sign-in", "signed-in"):
        assert gate.server.get(f"/console/api/{path}").status_code == 404


def test_an_issuer_that_does_not_answer_is_told(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{servers.free_port()}"
    environ = {
        "PENSTOCK__AUTH__OIDC_ISSUER": url,
        "PENSTOCK__AUTH__OIDC_AUDIENCE": "x",
        "PENSTOCK__AUTH__OIDC_CLIENT_ID": CLIENT,
        "PENSTOCK__AUTH__OIDC_REDIRECT_URL": f"{PLACE}/console/api/signed-in",
    }
    with guarded(tmp_path, environ=environ) as found:
        answer = found.server.get("/console/api/sign-in")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert found.server.client.post("/console/api/sign-in").status_code == 405


def test_nothing_of_a_sign_in_is_logged(site: GuardedServer, issuer: Issuer) -> None:
    browser, name = Browser(site), uuid.uuid4().hex
    back = issuer.sign_in(browser.go(), sub=name)
    journey = browser.cookies["penstock_sign_in"]
    browser.get(back)
    session = browser.cookies["__Host-penstock_session"]
    told = site.server.wait_for_output("signed-in")
    code = parse_qs(urlsplit(back).query)["code"][0]
    for secret in (code, session, *journey.split("."), CLIENT_SECRET):
        assert secret not in told
