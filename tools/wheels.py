"""Build wheels for Linux on x86-64 that need no compiler, and try each in an empty environment.

One wheel for CPython 3.10, one for 3.11, and one with the stable ABI for 3.12 and later. They are
compiled with the Clang of the package ``ziglang``, against glibc 2.17, and so run on every Linux
since 2014 (manylinux2014). ``auditwheel`` checks and names them. Then a wheel is installed, from
binaries only, into a new environment of every interpreter found, which runs the examples.

    python tools/wheels.py                    # into build/wheels, then try them
    python tools/wheels.py --only 3.12 3.13   # build and try some versions
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ("3.10", "3.11", "3.12")  # a wheel of its own each; the last one is for all later versions
TRIED = ("3.10", "3.11", "3.12", "3.13", "3.14")
GLIBC = "2.17"
EXTRAS = "ann,arrow,cli,demo,networkx,pandas"
# nanobind uses stderr and leaves it to the headers of Python to include stdio.h, which those of the
# stable ABI do not. pyconfig.h defines feature macros that libc++ has defined before.
FLAGS = f"-target x86_64-linux-gnu.{GLIBC} -include stdio.h -Wno-macro-redefined"


def say(text: str) -> None:
    """Print a step."""
    print(f"==> {text}", flush=True)


def run(*command: object, **options: object) -> None:
    """Run a program; end if it fails."""
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def interpreter(version: str) -> Path | None:
    """Return a working CPython of this version: on the path, or one of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = shutil.which(f"python{version}")
    found = [named, *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    check = "import platform; print(platform.python_implementation(), platform.python_version())"
    for path in filter(None, found):
        answer = subprocess.run([path, "-c", check], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.startswith(f"CPython {version}."):
            return Path(path)
    return None


def make_compiler(folder: Path) -> dict[str, str]:
    """Write programs that call Zig, and return the environment in which CMake finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    programs = {"c++": f"c++ {FLAGS}", "ar": "ar", "ranlib": "ranlib"}
    for name, arguments in programs.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {arguments} "$@"\n')
        program.chmod(0o755)
    return {
        **os.environ,
        "CXX": str(folder / "c++"),
        "CMAKE_ARGS": f"-DCMAKE_AR={folder / 'ar'} -DCMAKE_RANLIB={folder / 'ranlib'}",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


def build(version: str, python: Path, work: Path, out: Path) -> None:
    """Build the wheel of one version of Python, and give it the name of its platform."""
    environment = make_compiler(work / "compiler")
    made = work / version / "dist"
    shutil.rmtree(made, ignore_errors=True)
    venv = work / version / "venv"
    run(python, "-m", "venv", "--clear", venv)
    run(venv / "bin/python", "-m", "pip", "-q", "install", "build")
    run(
        *(venv / "bin/python", "-m", "build", "--wheel", "--outdir", made),
        f"-Cbuild-dir={work / version / 'build'}",
        ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = made.glob("*.whl")
    run(
        *(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", out),
        *("--plat", f"manylinux_{GLIBC.replace('.', '_')}_x86_64", wheel),
        env=environment,
    )


def wheel_for(version: str, out: Path) -> Path:
    """Return the wheel that this version of Python takes."""
    tag = version if version in BUILT else BUILT[-1]
    (wheel,) = out.glob(f"dynhac-*-cp{tag.replace('.', '')}-*.whl")
    return wheel


def try_out(version: str, python: Path, work: Path, out: Path) -> None:
    """Install a wheel into an empty environment without a compiler, and run the examples there."""
    venv, empty = work / f"try-{version}", work / f"try-{version}" / "run"
    run(python, "-m", "venv", "--clear", venv)
    environment = {**os.environ, "CC": "false", "CXX": "false", "MPLBACKEND": "agg"}
    for name in ("PYTHONPATH", "DYNHAC_DATA"):
        environment.pop(name, None)
    wheel = wheel_for(version, out)
    run(
        *(venv / "bin/python", "-m", "pip", "-q", "install", "--only-binary", ":all:"),
        f"dynhac[{EXTRAS}] @ {wheel.as_uri()}",
        env=environment,
    )
    empty.mkdir()
    run(venv / "bin/dynhac", "--version", env=environment, cwd=empty)
    for example in sorted((ROOT / "examples").glob("*.py")):
        if "__main__" in example.read_text():
            say(f"Python {version}: {example.name}")
            run(venv / "bin/python", example, env=environment, cwd=empty, stdout=subprocess.DEVNULL)
    run(venv / "bin/python", "-m", "dynhac.demo", env=environment, cwd=empty)


def main() -> None:
    """Build and try all wheels."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="VERSION", choices=TRIED, default=TRIED)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheels")
    arguments = parser.parse_args()
    work, out = ROOT / "build" / "wheel-work", arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    pythons = {version: interpreter(version) for version in arguments.only}
    missing = [version for version, python in pythons.items() if python is None]
    for version, python in pythons.items():
        if python is not None and version in BUILT:
            say(f"building for Python {version}")
            build(version, python, work, out)
    for version, python in pythons.items():
        if python is not None:
            say(f"trying Python {version}")
            try_out(version, python, work, out)
    say("wheels: " + ", ".join(sorted(wheel.name for wheel in out.glob("*.whl"))))
    for version in missing:
        what = "NOT BUILT, NOT TRIED" if version in BUILT else "NOT TRIED"
        say(f"Python {version}: {what}: there is no python{version} on the path or in pyenv")
    if set(missing) & set(BUILT):
        sys.exit("a wheel could not be built")


if __name__ == "__main__":
    main()
