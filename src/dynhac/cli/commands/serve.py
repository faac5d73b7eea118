"""``dynhac serve``: a store behind HTTP, with a page."""

from __future__ import annotations

import errno
import re
import tempfile
from contextlib import ExitStack
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dynhac
from dynhac.cli.command import command, print_message
from dynhac.cli.options import STREAM
from dynhac.cli.parameters import (
    BACKEND,
    EPSILON,
    MAX_AGE,
    MAX_POINTS,
    METRIC,
    NEIGHBORS,
    REPAIR,
    SIMILARITY,
    THREADS,
    THRESHOLD,
    Backend,
    Kind,
    Metric,
)
from dynhac.cli.parse import parse_age, parse_patience, parse_similarity
from dynhac.extras import optional
from dynhac.input.errors import show
from dynhac.watch.parameters import WatchParameters

if TYPE_CHECKING:
    from dynhac.serve.lifecycle import Server

FOLLOWED = "Clusters"
OTHERS = "Other machines and pages"
NEW = "A new store"


def _of_new(option: Any) -> Any:
    """Return an option of `build`, in the panel of those for a new store."""
    shown = copy(option)
    shown.rich_help_panel = NEW
    return shown


@command(
    STREAM,
    ("See it live: generated news that keep coming", "dynhac serve --demo"),
    ("Serve a store; it is made if it is not there", "dynhac serve my.store"),
    ("Beside another writer", "dynhac serve my.store --read-only --port 8001"),
    ("For other machines", "dynhac serve my.store --host 0.0.0.0 --token-file tokens.txt"),
)
def serve(
    store: Annotated[
        Path | None, typer.Argument(metavar="STORE", help="Folder of the store.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve generated news that keep coming.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Follow the store of another writer.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 for a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Tokens, one a line: "read TOKEN" or "write TOKEN".',
            rich_help_panel=OTHERS,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name by which a proxy calls it; can be repeated.",
            rich_help_panel=OTHERS,
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Site whose pages may use the API, such as https://example.org; can be repeated.",
            rich_help_panel=OTHERS,
        ),
    ] = None,
    theta: Annotated[
        float | None,
        typer.Option(
            metavar="SIMILARITY",
            help="Follow the clusters at this similarity (default: chosen automatically).",
            rich_help_panel=FOLLOWED,
        ),
    ] = None,
    min_size: Annotated[
        int | None,
        typer.Option(
            help="Ignore clusters with fewer points (default: 25; 1 with --theta).",
            rich_help_panel=FOLLOWED,
        ),
    ] = None,
    patience: Annotated[
        str | None,
        typer.Option(
            metavar="UPDATES|TIME",
            help="Report a change of clusters only when it has lasted for so many updates (20), or "
            "for a time (15m).",
            rich_help_panel=FOLLOWED,
        ),
    ] = None,
    durability: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="full, or normal: faster, but a power cut may lose updates."
        ),
    ] = "full",
    name_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Field of the payload that names of clusters come from (default: all texts).",
            rich_help_panel=FOLLOWED,
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Megabytes of the largest request.")] = 64,
    max_queue: Annotated[int, typer.Option(min=1, help="Updates that wait at most.")] = 1_024,
    epsilon: Annotated[float | None, _of_new(EPSILON)] = None,
    threshold: Annotated[float | None, _of_new(THRESHOLD)] = None,
    n_neighbors: Annotated[int | None, _of_new(NEIGHBORS)] = None,
    metric: Annotated[Metric | None, _of_new(METRIC)] = None,
    similarity: Annotated[str | None, _of_new(SIMILARITY)] = None,
    max_points: Annotated[int | None, _of_new(MAX_POINTS)] = None,
    max_age: Annotated[str | None, _of_new(MAX_AGE)] = None,
    kind: Annotated[
        Kind,
        typer.Option(metavar="NAME", help="points or graph; auto: points.", rich_help_panel=NEW),
    ] = Kind.auto,
    neighbors: Annotated[Backend | None, _of_new(BACKEND)] = None,
    repair: Annotated[bool | None, _of_new(REPAIR)] = None,
    threads: Annotated[int | None, THREADS] = None,
) -> None:
    """Serve a store over HTTP: an API, events and a page.

    The options about the model are for a store that is not there yet; it is made. The service is
    the only writer of the store. It listens on this machine only, unless there are tokens. Ctrl-C
    and SIGTERM finish the requests in flight, close the store, and end with exit code 0.
    """
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        optional(module, "serve", "dynhac serve")
    from dynhac.serve.demo import PARAMETERS, feed
    from dynhac.serve.lifecycle import run
    from dynhac.serve.settings import Settings
    from dynhac.serve.tokens import Tokens

    if demo == (store is not None):
        raise typer.BadParameter("give either the folder of a STORE or --demo")
    watch: dict[str, Any] = {
        "theta": theta,
        "min_size": min_size,
        "patience": parse_patience(patience),
    }
    # What is wrong is told before a store is made.
    WatchParameters.read(threshold or 0.0, theta, min_size, watch["patience"])
    for origin in cors or ():
        if not re.fullmatch(r"https?://[^/\s]+|\*", origin):
            raise ValueError(f"--cors is {show(origin)}; it must be such as https://example.org")
    settings = Settings(
        host=host,
        port=port,
        tokens=None if token_file is None else Tokens.read(token_file),
        hosts=tuple(allow_host or ()),
        origins=tuple(cors or ()),
        watch={name: value for name, value in watch.items() if value is not None},
        name_field=name_field,
        max_body=max_body << 20,
        max_queue=max_queue,
    )
    given: dict[str, Any] = {
        "epsilon": epsilon,
        "threshold": threshold,
        "n_neighbors": n_neighbors,
        "metric": None if metric is None else metric.value,
        "similarity": parse_similarity(similarity),
        "max_points": max_points,
        "max_age": parse_age(max_age),
        "neighbors": None if neighbors is None else neighbors.value,
        "repair": repair,
        "threads": threads,
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    with ExitStack() as stack:
        path = store
        if path is None:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "news"
            parameters = PARAMETERS | parameters
        model = dynhac.open(
            path,
            None if kind is Kind.auto else kind.value,
            mode="r" if read_only else "w",
            durability=durability,
            **parameters,
        )
        stack.callback(model.close)

        def started(server: Server) -> None:
            shown = f"[{host}]" if ":" in host else host
            name = "generated news" if demo else path
            print_message("serving", f"{name} on http://{shown}:{server.port} (Ctrl-C to end)")

        try:
            run(model, settings, started, feed if demo else None)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            message = f"--port is {port}, which another program uses; choose another, or 0"
            raise ValueError(f"{message} for a free one") from error
