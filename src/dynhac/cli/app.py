"""The application: all commands in the order in which help lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from dynhac.cli import build, check, export, labels, look, tail, tree, update
from dynhac.cli.command import paragraph

ABOUT = """
A store is a folder with points (or a graph) and their hierarchy. It survives crashes, and a change
costs what it changes. Every command has examples: dynhac COMMAND --help.
"""
CODES = "Exit codes: 0 fine, 1 a mistake in the input or a failed check, 2 wrong usage, 130 Ctrl-C."
HELP = f"""Hierarchical clustering that keeps up with your data.

{paragraph(ABOUT)}

\b
Start here:
  dynhac build points.npy -o my.store      cluster the rows of a file
  dynhac tree my.store                     look at the hierarchy
  dynhac labels my.store --at 0.35         cut it into flat clusters
  dynhac insert my.store more.npy          add points
  producer | dynhac tail my.store --at 0.35 | consumer
                                           follow clusters in a stream

{CODES}"""

app = typer.Typer(
    name="dynhac",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from dynhac import __version__

        typer.echo(f"dynhac {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options before a command."""


for group in (build, update, labels, tree, look, tail, export, check):
    group.register(app)
