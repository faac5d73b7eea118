"""The command line: ``dynhac build``, ``labels``, ``tail`` and the others.

`commands` holds the commands, `app` lists them. The other modules are what they share: `command`
(help, messages, exit codes), `options`, `stores` (opening and creating), `read_table` and `table`
(input files), `update_lines` (input of ``tail``), `parse` (values from text), `batches` (input into
a store) and `output` (results). Rich and the models are imported when a command runs, so that help
and completion start fast.

Exit codes: 0 success; 1 wrong input, or a failed check; 2 wrong usage; 130 interrupted by Ctrl-C,
143 by SIGTERM, 129 by SIGHUP.
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
