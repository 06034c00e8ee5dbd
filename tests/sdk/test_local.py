"""`penstock.connect()` without an address: servers that are found, started, and end in time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock.errors import InvalidRequest, Unavailable
from penstock.sdk.connection.server_note import FILE, ServerNote, find
from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

SCRIPT = """
import sys, penstock
lake = penstock.connect(runner=False, keep={keep})
print(lake.url, flush=True)
sys.stdin.read()
"""


def start(folder: Path, keep: bool = False) -> "subprocess.Popen[str]":
    """A program that connects, tells the address and waits."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(keep=keep)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def told(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def note(folder: Path) -> ServerNote:
    content = (folder / "penstock-data" / FILE).read_bytes()
    return msgspec.json.decode(content, type=ServerNote)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_two_programs_share_a_server_that_ends_with_the_first(tmp_path: Path) -> None:
    programs = [start(tmp_path), start(tmp_path)]
    addresses = [told(program) for program in programs]
    assert addresses[0] == addresses[1] == note(tmp_path).url
    assert addresses[0].startswith("http://127.0.0.1:")
    pid = note(tmp_path).pid
    for program in programs:
        program.communicate()
    until(lambda: is_gone(pid), "the server is still there")
    assert not (tmp_path / "penstock-data" / FILE).exists()


def test_a_server_ends_when_its_program_is_killed(tmp_path: Path) -> None:
    program = start(tmp_path)
    assert told(program)
    pid = note(tmp_path).pid
    program.kill()
    program.wait()
    until(lambda: is_gone(pid), "the server is still there")
    # What a dead server left behind is not taken for one.
    assert find(tmp_path / "penstock-data") is None


def test_a_server_may_stay(tmp_path: Path) -> None:
    program = start(tmp_path, keep=True)
    address = told(program)
    program.communicate()
    found = find(tmp_path / "penstock-data")
    assert found is not None
    assert found.url == address
    with penstock.connect(data=tmp_path / "penstock-data") as lake:
        assert lake.url == address
        assert lake.namespaces() == []
    os.kill(found.pid, signal.SIGTERM)
    until(lambda: is_gone(found.pid), "the server is still there")


def test_a_server_that_somebody_started_is_found(tmp_path: Path) -> None:
    with servers.running(tmp_path / "data") as server:
        with penstock.connect(data=tmp_path / "data") as lake:
            assert lake.url == server.url
        server.stop()
    assert not (tmp_path / "data" / FILE).exists()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").mkdir()
    with pytest.raises(Unavailable, match=r"did not start: penstock: .*catalog\.sqlite"):
        penstock.connect(data=tmp_path, runner=False)
    with pytest.raises(InvalidRequest, match="both url and data"):
        penstock.connect("http://127.0.0.1:1", data=tmp_path)


def test_a_folder_sends_nobody_to_another_machine(tmp_path: Path) -> None:
    running = ServerNote("http://192.0.2.1:2333", os.getpid())
    (tmp_path / FILE).write_bytes(msgspec.json.encode(running))
    assert find(tmp_path) is None


def test_a_key_with_letters_that_no_key_has_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="letters that no key has"):
        penstock.connect("http://127.0.0.1:9", api_key="schlüssel")


def run(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if name != "PENSTOCK_URL"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**kept, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


CONNECT = "import penstock; lake = penstock.connect({}); print(lake); print(lake.why)"


def test_python_and_commands_find_a_server_by_the_same_rule(server: Server, tmp_path: Path) -> None:
    with servers.running(tmp_path / "penstock-data") as here:
        for url, environ, told in (
            (server.url, {"PENSTOCK_URL": "http://127.0.0.1:9"}, ""),
            ("", {"PENSTOCK_URL": server.url}, "PENSTOCK_URL names it"),
            ("", {"PENSTOCK_URL": ""}, f"it works on {here.data}"),
        ):
            address = here.url if not (url or environ["PENSTOCK_URL"]) else server.url
            shown = f"{address} ({told})" if told else address
            done = run(tmp_path, "-c", CONNECT.format(repr(url) if url else ""), **environ)
            assert done.stdout == f"<Lake at {shown}>\n{told}\n", done.stderr
            assert done.stderr == ""
            option = ["--url", url] if url else []
            done = run(tmp_path, "-m", "penstock", "ls", "-v", *option, **environ)
            assert done.stderr.splitlines()[0] == f"penstock: asks {shown}"
            done = run(tmp_path, "-m", "penstock", "status", "--json", *option, **environ)
            found = msgspec.json.decode(done.stdout)
            assert (found["url"], found["why"]) == (address, told)
        done = run(tmp_path, "-c", CONNECT.format("data='penstock-data'"), PENSTOCK_URL=server.url)
        assert done.stdout.splitlines() == [
            f"<Lake at {here.url} (it works on {here.data})>",
            f"it works on {here.data}",
        ]


def test_where_there_is_no_server_python_starts_one_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "penstock-data"
    done = run(tmp_path, "-m", "penstock", "ls")
    assert done.returncode == 2
    told = f"no server is named by --url or PENSTOCK_URL, and none works on {folder}"
    assert done.stderr.startswith(f"penstock: {told}; ")
    assert not folder.exists()
    done = run(tmp_path, "-c", CONNECT.format("runner=False"))
    assert f"(it was started for {folder})>" in done.stdout
    [line] = done.stderr.splitlines()
    assert line.startswith(f"started a server for {folder} at http://127.0.0.1:")
    assert ", which ends with this process" in line


def test_a_dead_address_is_one_line(tmp_path: Path) -> None:
    told = "no answer from http://127.0.0.1:9 (PENSTOCK_URL names it): Connection refused"
    done = run(tmp_path, "-c", CONNECT.format(""), PENSTOCK_URL="http://127.0.0.1:9")
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-2].endswith(told)
    done = run(tmp_path, "-m", "penstock", "ls", PENSTOCK_URL="http://127.0.0.1:9")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"penstock: {told}; start a server with `penstock serve`")
