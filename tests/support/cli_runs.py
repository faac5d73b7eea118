"""Running the command line, in this process or in another one."""

import json
import os
import signal
import subprocess
import sys

from typer.testing import CliRunner

from dynhac.cli.app import app

COMMAND = [sys.executable, "-m", "dynhac.cli"]


def run(*args, input=None):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(arg) for arg in args], input=input, prog_name="dynhac")


def ok(*args, input=None):
    """Run a command that must succeed; return its output."""
    result = run(*args, input=input)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    return result.stdout


def ok_json(*args, input=None):
    return json.loads(ok(*args, "--json", input=input))


def error_of(*args, input=None):
    """Run a command that must fail with exit code 1; return its message, which is one line."""
    result = run(*args, input=input)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def usage(*args):
    """Run a command that must fail for wrong usage; return its message."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert "Usage" in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


def environment(**variables):
    return {**os.environ, "PYTHONUNBUFFERED": "", **variables}


def process(*args, **options):
    """Start a command in another process, which receives Ctrl-C even in a background job."""
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*COMMAND, *map(str, args)],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **{**settings, **options},
    )
