"""Runs attacks against a world, a few at a time, and tells which of them found a hole."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.attack import watching
from tests.attack.attack import Attack, Request
from tests.attack.place import SECRET, STORAGE_SECRET
from tests.attack.watching import State
from tests.attack.wire import Line, Reply
from tests.attack.world import World

THREADS = 3
# Raw bytes are waited for most of the time.
WAITING_THREADS = 24
# After so many the world is looked at, so that a change is known to be one of these.
LOOK_EVERY = 200
# How long to look for the one that changed something, or ended the server.
SEARCH_SECONDS = 10
# What an answer says when the server did not know what to do.
SIGNS = ("Traceback", "apsw.", "asyncpg", 'File "/')
SAME_ID = ("x-request-id", "same")

Hole = str


def run(world: World, attacks: Sequence[Attack]) -> list[Hole]:
    """All holes that these attacks found."""
    if not world.is_alive:
        world.revive()
    world.dig()
    holes: list[Hole] = []
    health, state = watching.examine(world), watching.take(world)
    for start in range(0, len(attacks), LOOK_EVERY):
        part = attacks[start : start + LOOK_EVERY]
        holes += _run_part(world, part)
        among = f"after one of {part[0].name} … {part[-1].name}"
        holes += [f"{problem}; {among}" for problem in health.check(world)]
        if not world.is_alive:
            holes += _find_killer(world, part)
            health = watching.examine(world)
        now = watching.take(world)
        if changes := watching.compare(state, now):
            holes += _find_changer(world, part, changes, now)
            now = watching.take(world)
        state = now
    return holes + watching.check_output(world)


def _run_part(world: World, attacks: Sequence[Attack]) -> list[Hole]:
    local = threading.local()
    lines: list[Line] = []

    def carry_out(attack: Attack) -> list[Hole]:
        if not hasattr(local, "line"):
            local.line = Line(world.server.url)
            lines.append(local.line)
        return list(try_one(world, local.line, attack)) if world.is_alive else []

    threads = WAITING_THREADS if any(attack.raw for attack in attacks) else THREADS
    with ThreadPoolExecutor(threads) as pool:
        found = [hole for holes in pool.map(carry_out, attacks) for hole in holes]
    for line in lines:
        line.close()
    return found


def try_one(world: World, line: Line, attack: Attack) -> Iterator[Hole]:
    """Carry an attack out; what does not hold of its answers."""
    if attack.raw:
        replies = line.ask_raw(_fill_in(world, attack))
    else:
        for request in attack.before:
            _ask(world, line, attack, request)
        replies = [_ask(world, line, attack, attack.request)]
        if replies[0].status == 0:
            yield f"no answer: {attack}"
    for reply in replies:
        for problem in check_reply(attack, reply):
            yield f"{problem}: {attack} → {reply.status} {reply.text[:200]}"
    if attack.like is not None and replies:
        other = _ask(world, line, attack, attack.like)
        found, absent = attack.names
        if (replies[0].status, replies[0].text.replace(found, absent)) != (
            other.status,
            other.text,
        ):
            yield (
                f"what is hidden is told: {attack} → {replies[0].status} {replies[0].text[:200]}, "
                f"not {other.status} {other.text[:200]}"
            )


def check_reply(attack: Attack, reply: Reply) -> Iterator[Hole]:
    """What does not hold of one answer."""
    if reply.status == 0:
        return
    if reply.status not in attack.may:
        yield f"answered {reply.status}"
    if reply.status == 503 and "retry-after" not in reply.headers:
        yield "503 does not say when to come again"
    if attack.code is not None and reply.status in attack.may and _code(reply) != attack.code:
        yield f"the code is {_code(reply)}, not {attack.code}"
    for secret in (SECRET, STORAGE_SECRET, *attack.never):
        if secret in reply.text:
            yield f"the answer holds {secret}"
    for sign in SIGNS:
        if sign in reply.text:
            yield f"the answer holds {sign!r}"


def _ask(world: World, line: Line, attack: Attack, request: Request) -> Reply:
    return line.ask(request.encode((*world.credentials(attack.who), SAME_ID)))


def _fill_in(world: World, attack: Attack) -> bytes:
    """Raw bytes with the caller's key where they say so."""
    return attack.raw.replace(b"{key}", world.place.keys.get(attack.who, "").encode())


def _code(reply: Reply) -> int | None:
    try:
        found = json.loads(reply.body)
        return int(found["code"])
    except (ValueError, KeyError, TypeError):
        return None


def _find_killer(world: World, attacks: Sequence[Attack]) -> list[Hole]:
    """Which of the attacks ends a server; at most three are looked for."""
    found: list[Hole] = []
    world.revive()
    for attack in attacks:
        line = Line(world.server.url)
        list(try_one(world, line, attack))
        line.close()
        try:
            world.server.process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        found.append(f"this ended the server: {attack}")
        world.revive()
        if len(found) == 3:
            break
    return found


def _find_changer(
    world: World, attacks: Sequence[Attack], changes: list[str], state: State
) -> list[Hole]:
    """Which of the attacks changes something when it is carried out again."""
    shown = "; ".join(changes[:5])
    holes = [f"something changed ({shown}) between {attacks[0].name} and {attacks[-1].name}"]
    line, until = Line(world.server.url), time.monotonic() + SEARCH_SECONDS
    for attack in attacks:
        list(try_one(world, line, attack))
        now = watching.take(world)
        if again := watching.compare(state, now):
            holes.append(f"this changed something ({'; '.join(again[:3])}): {attack}")
            state = now
        if len(holes) > 3 or time.monotonic() > until:
            break
    line.close()
    return holes
