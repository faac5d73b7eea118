"""The command line: ``dynhac build``, ``labels``, ``tail`` and the others.

`commands` holds the commands, `app` lists them. The other modules are what they share: `command`
(help, messages, exit codes), `options`, `stores` (opening and creating), `update_lines` (input of
``tail``), `batches` (input into a store), `output` and `printable` (results). Input
files: `read_table` tells formats apart, `read_text` with `rows` and `read_arrow` with `columns`
read them into a `table`, `layout` says what a column is, and `parse` reads values from text. Rich
and the models are imported when a command runs, so that help and completion start fast.

Exit codes: 0 success; 1 wrong input, or a failed check; 2 wrong usage; 130 interrupted by Ctrl-C,
143 by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; the entry point of the script ``dynhac``."""
    from dynhac.extras import optional

    _open_closed_streams()
    try:
        optional("typer", "cli", "the command line")
        optional("rich", "cli", "the command line")
        from dynhac.cli.app import app

        app(prog_name="dynhac")
    except OSError as error:  # of help, which no command writes
        from dynhac.cli.command import end_with_error

        sys.exit(end_with_error(error))
    except ImportError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _open_closed_streams() -> None:
    """Connect standard streams that are closed to the null device.

    Otherwise the next file that is opened, such as one of a store, would take their place.
    """
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
