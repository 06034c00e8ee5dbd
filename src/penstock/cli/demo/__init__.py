"""`penstock demo`: all of it in a minute, on a server of its own, every figure checked."""

import tempfile
import warnings
from pathlib import Path

import click

from penstock.cli.demo.story import tell

KEPT = "./penstock-demo"


@click.command()
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(path_type=Path),
    is_flag=False,
    flag_value=KEPT,
    help=f"Keep the lake here; without DIR in {KEPT}.",
)
def command(keep: Path | None) -> None:
    """See all of it work in a minute, on a server of its own.

    Every figure is checked; the exit code is 1 when one is wrong.

    \b
    Examples:
      penstock demo
      penstock demo --keep ./demo-data
    """
    # Hide clients' warnings about their experimental parts.
    warnings.filterwarnings("ignore")

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        tell(keep, is_kept=True)
        return
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        tell(Path(folder), is_kept=False)
