"""`penstock completion`: what a shell needs to complete our commands."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes our commands.

    \b
    Examples:
      penstock completion bash > ~/.local/share/bash-completion/completions/penstock
      penstock completion fish > ~/.config/fish/completions/penstock.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    click.echo(kind(root, {}, "penstock", "_PENSTOCK_COMPLETE").source())
