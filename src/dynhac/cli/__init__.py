"""The command line: ``dynhac build``, ``labels``, ``tail`` and the rest.

`app` puts the commands together. One module holds each group of commands; what they share is in
`command` (failures and exit codes), `options`, `stores` (opening), `data` (reading files), `output`
(writing files and talking to the terminal) and `progress`. Nothing but typer is imported before a
command runs: help and completion come at once.

Exit codes: 0 all is well; 1 a mistake in what was given, or a check that failed; 2 wrong usage;
130 interrupted by Ctrl-C (143 by SIGTERM, where a command ends cleanly on it).
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the entry point of the script ``dynhac``."""
    from dynhac.extras import optional

    try:
        optional("typer", "cli", "the command line")
        optional("rich", "cli", "the command line")
        from dynhac.cli.app import app

        app(prog_name="dynhac")
    except ImportError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
