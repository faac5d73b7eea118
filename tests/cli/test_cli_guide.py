"""The commands in the guide of the command line give the output that it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import environment

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "cli.md"


def sessions():
    """Yield the commands and their output, in order."""
    for block in re.findall(r"```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def without_times(text):
    return re.sub(r"\d+\.\d\d s\b", "... s", text)


@pytest.mark.skipif(os.name == "nt", reason="the guide is written for a POSIX shell")
def test_guide(tmp_path):
    script = tmp_path / "bin" / "dynhac"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dynhac.cli "$@"\n')
    script.chmod(0o755)
    found = list(sessions())
    assert len(found) > 5
    variables = environment(PATH=f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    for command, output in found:
        if command.startswith("cat "):
            (tmp_path / command.removeprefix("cat ")).write_text(output)
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=variables, capture_output=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        assert without_times((done.stderr + done.stdout).decode()) == without_times(output), command
