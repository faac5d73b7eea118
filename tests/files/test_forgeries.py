"""Files that were changed on purpose, with a right checksum: refused, or a model like any other.

Thousands of forgeries are loaded in processes of their own, so that a crash is a failure with a
seed. What loads is the model that was saved, or another one that is right: every merge is good, and
50 updates later it still holds what plain Python data say. `support/forger.py` has the details.
"""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from soak import SOAK

FORGER = Path(__file__).parents[1] / "support" / "forger.py"
PROCESSES = 2
FORGERIES = 400 if SOAK == 1 else 2000 * SOAK


def forged(seeds):
    """Return how often each answer was given, and what went wrong."""
    answers, wrong = Counter(), []
    while seeds:
        lines = "".join(f"{seed}\n" for seed in seeds)
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(FORGER)],
            input=lines,
            capture_output=True,
            text=True,
        )
        said = done.stdout.splitlines()
        for seed, answer in zip(said[::2], said[1::2], strict=False):
            kind, _, why = answer.partition(" ")
            answers[kind] += 1
            if kind == "failed":
                wrong.append(f"seed {seed}: {json.loads(why)}")
        made = len(said) // 2
        if done.returncode:
            wrong.append(f"seed {seeds[made]} crashed: {done.stderr[-2000:]}")
            made += 1
        seeds = seeds[made:]
    return answers, wrong


def test_forgeries():
    pytest.importorskip("usearch")
    first = 0 if SOAK == 1 else int(np.random.default_rng().integers(10**9))
    seeds = list(range(first, first + FORGERIES))
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = list(pool.map(forged, [seeds[part::PROCESSES] for part in range(PROCESSES)]))
    answers = sum((counts for counts, _ in found), Counter())
    wrong = [line for _, lines in found for line in lines]
    print(dict(answers))
    assert not wrong, "\n".join([f"{len(wrong)} of {FORGERIES}", *wrong[:5]])
    assert all(answers[kind] > FORGERIES / 100 for kind in ("refused", "lived")), answers
