"""``dynhac serve``: a store behind HTTP, with a page."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dynhac
from dynhac.cli.command import command, print_message
from dynhac.cli.options import STREAM
from dynhac.cli.parameters import (
    BACKEND,
    EPSILON,
    KIND,
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

if TYPE_CHECKING:
    from dynhac.serve.lifecycle import Server


@command(
    STREAM,
    ("Look at a store; make it if it is not there", "dynhac serve my.store"),
    ("See it live", "dynhac serve --demo"),
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
        typer.Option(metavar="FILE", help='Tokens, one a line: "read TOKEN" or "write TOKEN".'),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name by which a proxy calls it; can be repeated."),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Site whose pages may use the API; can be repeated."),
    ] = None,
    theta: Annotated[
        float | None,
        typer.Option(
            metavar="SIMILARITY",
            help="Follow the clusters at this similarity (default: chosen automatically).",
        ),
    ] = None,
    min_size: Annotated[int | None, typer.Option(help="Ignore clusters with fewer points.")] = None,
    patience: Annotated[
        str | None,
        typer.Option(
            metavar="UPDATES|TIME", help="Report a change of clusters only when it has lasted."
        ),
    ] = None,
    durability: Annotated[
        str, typer.Option(metavar="NAME", help="full, or normal: faster, see the guide.")
    ] = "full",
    name_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Field of the payload that names of clusters come from."
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Megabytes of the largest request.")] = 64,
    max_queue: Annotated[int, typer.Option(min=1, help="Updates that wait at most.")] = 1_024,
    epsilon: Annotated[float | None, EPSILON] = None,
    threshold: Annotated[float | None, THRESHOLD] = None,
    n_neighbors: Annotated[int | None, NEIGHBORS] = None,
    metric: Annotated[Metric | None, METRIC] = None,
    similarity: Annotated[str | None, SIMILARITY] = None,
    max_points: Annotated[int | None, MAX_POINTS] = None,
    max_age: Annotated[str | None, MAX_AGE] = None,
    kind: Annotated[Kind, KIND] = Kind.auto,
    neighbors: Annotated[Backend | None, BACKEND] = None,
    repair: Annotated[bool | None, REPAIR] = None,
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

        run(model, settings, started, feed if demo else None)
