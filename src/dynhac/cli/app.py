"""The application: all commands, in the order in which help lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from dynhac.cli.commands import (
    build,
    clusters,
    explain,
    export,
    find,
    inspect_store,
    labels,
    predict,
    serve,
    spark_build,
    suggest,
    tail,
    tree,
    update,
)

HELP = """Hierarchical clustering of data that changes.

A store is a folder that holds points (or a graph) and their hierarchy. It survives crashes, and \
an update costs in proportion to what it changes. dynhac COMMAND --help shows examples.

\b
First steps:
  dynhac build points.npy -o my.store      cluster the rows of a file
  dynhac tree my.store                     draw the hierarchy
  dynhac labels my.store                   flat clusters, chosen automatically
  dynhac clusters my.store                 show what is in them
  dynhac suggest my.store                  list sensible cuts
  dynhac labels my.store --theta 0.35      the clusters of a cut
  dynhac insert my.store more.npy          add points
  producer | dynhac tail my.store | consumer
                                           follow clusters in a stream
  dynhac serve my.store                    serve a store over HTTP, with a page

Exit codes: 0 success, 1 wrong input or a failed check, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM."""

app = typer.Typer(
    name="dynhac",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(given: bool) -> None:
    if given:
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
    """Options that are given without a command."""


for command in (
    build.demo,
    build.build,
    update.insert,
    update.update,
    update.delete,
    labels.labels,
    clusters.clusters,
    suggest.suggest,
    find.find,
    predict.predict,
    tree.tree,
    explain.explain,
    inspect_store.changes,
    tail.tail,
    serve.serve,
    export.export,
    spark_build.spark_build,
    inspect_store.stats,
    inspect_store.verify,
):
    app.command(help=command.help, rich_help_panel=command.panel)(command.run)
