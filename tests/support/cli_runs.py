"""Ways to run the command line: in this process, and in one of its own."""

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
    """Run a command that must succeed and return what it writes."""
    result = run(*args, input=input)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    return result.stdout


def ok_json(*args, input=None):
    return json.loads(ok(*args, "--json", input=input))


def mistake(*args, input=None):
    """Run a command that must fail for a mistake; return its one line about it."""
    result = run(*args, input=input)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def usage(*args):
    """Run a command that must fail for wrong usage; return what it says."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert "Usage" in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


def environment(**variables):
    return {**os.environ, "PYTHONUNBUFFERED": "", **variables}


def process(*args, **options):
    """Start a command in a process of its own, which Ctrl-C reaches even from a background job."""
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*COMMAND, *map(str, args)],
        env={**os.environ},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **{**settings, **options},
    )
