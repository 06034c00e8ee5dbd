"""The console's files: what is served, how it is kept by browsers, and that nothing else is."""

import gzip
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.server.console.files import POLICY, TYPES, read_files
from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.root import ROOT

ASSETS = ROOT / "src" / "penstock" / "server" / "console" / "assets"
BROWSER = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.running(tmp_path_factory.mktemp("data")) as found:
        yield found


def linked(console: Server) -> list[str]:
    """The files that the page names."""
    return re.findall(r'(?:src|href)="([^"]+)"', console.get("/console").text)


def test_a_browser_at_the_root_is_led_to_the_console(console: Server) -> None:
    answer = console.client.get("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (302, "/console")
    assert console.get("/").status_code == 404


@pytest.mark.parametrize("path", ["", "/", "/table/a$b", "/jobs/x.y", "/table/a%2Fb", "/assetsx"])
def test_every_path_below_the_console_is_the_page(console: Server, path: str) -> None:
    answer = console.get(f"/console{path}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.text.startswith("<!doctype html>")


def test_all_that_the_page_links_to_is_there_and_kept_for_ever(console: Server) -> None:
    links = linked(console)
    assert links
    for link in links:
        answer = console.get(link)
        assert answer.status_code == 200, link
        assert "immutable" in answer.headers["cache-control"]
        assert console.get(re.sub(r"assets/\w{16}/", "assets/", link)).content == answer.content
        assert (
            console.get(re.sub(r"assets/\w{16}/", f"assets/{'0' * 16}/", link)).status_code == 404
        )


def test_a_file_that_the_browser_has_is_not_sent_again(console: Server) -> None:
    for path in ("/console", linked(console)[0]):
        first = console.get(path)
        again = console.client.get(path, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]


def test_files_are_packed_for_browsers_that_take_it(console: Server) -> None:
    link = next(each for each in linked(console) if each.endswith(".css"))
    request = console.client.build_request("GET", link, headers={"accept-encoding": "br, gzip"})
    packed = console.client.send(request, stream=True)
    raw = b"".join(packed.iter_raw())
    plain = console.client.get(link, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(raw) == plain.content
    assert packed.headers["vary"] == "accept-encoding"


def test_every_answer_says_what_a_page_may_do(console: Server) -> None:
    for path in ("/console", linked(console)[0], "/console/assets/none.js"):
        headers = console.get(path).headers
        assert headers["content-security-policy"] == POLICY.decode()
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
    assert b"unsafe" not in POLICY
    assert b"frame-ancestors 'none'" in POLICY


def test_the_page_has_nothing_inline_and_names_no_other_host() -> None:
    page = (ASSETS / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<style|<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=|javascript:", page) == []
    for file in ASSETS.rglob("*"):
        if file.suffix in (".js", ".css", ".html"):
            # Names of XML's kinds are no addresses.
            text = re.sub(r"http://www\.w3\.org/[\w/]+", "", file.read_text(encoding="utf-8"))
            assert re.findall(r"https?://(?!127\.0\.0\.1|localhost|…)\S+", text) == [], file.name


@pytest.mark.parametrize(
    "path",
    [
        *("../files.py", "..%2ffiles.py", "%2e%2e/files.py", "%252e%252e/files.py"),
        *("....//files.py", "..%5cfiles.py", "/etc/passwd", "%2fetc%2fpasswd"),
        *("main.js%00.html", "style", "style/", "", "index.html/..", "files.py", "__init__.py"),
    ],
)
def test_nothing_but_the_assets_can_be_read(console: Server, path: str) -> None:
    for digest in ("", f"{read_files().digest}/"):
        url = httpx.URL(console.url).copy_with(
            raw_path=f"/console/assets/{digest}{path}".encode("ascii")
        )
        answer = console.client.get(url)
        # Clients that take a step up themselves get the page.
        is_page = path.startswith("..") and answer.content == console.get("/console").content
        assert is_page or (answer.status_code == 404 and "no such file" in answer.text)


def test_the_console_is_only_looked_at(console: Server) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = console.client.request(method, "/console")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    head = console.client.head("/console")
    assert (head.status_code, head.content) == (200, b"")


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with servers.running(tmp_path, environ={"PENSTOCK__SERVER__CONSOLE": "false"}) as server:
        for path in ("/console", "/console/assets/main.js", "/console/api/session"):
            assert server.get(path).status_code == 404
        assert server.client.get("/", headers=BROWSER).status_code == 404


def test_pages_of_other_names_get_no_console_without_authentication(console: Server) -> None:
    answer = console.client.get("/console", headers={"host": "evil.example.com"})
    assert answer.status_code == 403


def test_the_wheel_has_every_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    [wheel] = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if "/console/assets/" in name}
    files = {path.relative_to(ROOT / "src").as_posix() for path in ASSETS.rglob("*.*")}
    assert names == files
    assert "penstock/server/console/assets/index.html" in names


def test_every_file_is_of_a_kind_that_is_served_and_the_whole_is_small() -> None:
    files = [path for path in ASSETS.rglob("*") if path.is_file()]
    assert [path for path in files if path.suffix[1:] not in TYPES] == []
    found = read_files()
    assert set(found.by_path) == {path.relative_to(ASSETS).as_posix() for path in files}
    sent = sum(len(file.packed or file.content) for file in found.by_path.values())
    assert sent < 200_000
