"""Long seeded streams of small updates: what goes wrong only after thousands of them.

``DYNHAC_SOAK=10`` makes the streams ten times as long.
"""

import random

import pytest
from soak import SOAK
from strategies import Stream
from watching import Watched

STEPS = 1500
RUNS = [
    # shape, palette, epsilon, threshold
    ("star", "few", 0.0, 0.0),
    ("star", "many", 0.1, 0.01),
    ("clique", "equal", 0.1, 0.0),
    ("clique", "close", 0.0, 0.01),
    ("path", "equal", 1.0, 0.0),
    ("path", "many", 0.0, 0.0),
    ("grid", "equal", 0.0, 0.0),
    ("grid", "few", 0.1, 0.0),
    ("ring", "close", 0.1, 0.25),
    ("apart", "many", 1.0, 0.01),
    ("blobs", "many", 0.1, 0.01),
    ("blobs", "few", 1.0, 0.0),
    ("sparse", "many", 0.0, 0.01),
    ("sparse", "many", 0.1, 0.0),
    ("sparse", "close", 1.0, 0.25),
    ("sparse", "equal", 0.1, 0.0),
]


@pytest.mark.parametrize(("shape", "palette", "epsilon", "threshold"), RUNS)
def test_stream(shape, palette, epsilon, threshold):
    n = 60 if shape == "clique" else 200
    rng = random.Random(f"{shape} {palette} {epsilon} {threshold}")
    stream = Stream(rng, palette, target=n, most=2)
    watched = Watched(stream, epsilon, threshold)
    watched.update(stream.seed_with(shape, n))
    for step in range(STEPS * SOAK):
        watched.update(stream.next())
        if step % 10 == 0:
            report = watched.g.verify()
            assert report.ok, f"step {step}: {report}"
    watched.judge_graph()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("palette", ["few", "many"])
def test_small_graphs_with_all_oracles(palette, epsilon):
    rng = random.Random(f"{palette} {epsilon}")
    stream = Stream(rng, palette, target=25)
    watched = Watched(stream, epsilon, 0.01)
    judged = 0
    for _ in range(120 * SOAK):
        watched.update(stream.next() if stream.model else stream.add())
        judged += watched.judge()
    if epsilon == 0 and palette == "many":
        assert judged > 60  # the comparison with brute force did take place


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_up_one_by_one_and_down_again(epsilon):
    rng = random.Random(5)
    stream = Stream(rng, "many", most=1)
    watched = Watched(stream, epsilon, 0.01)
    levels = 0
    for size in (150, 0):
        while len(stream.model) != size:
            watched.update(stream.add() if size else stream.remove())
            levels = max(levels, watched.g.n_levels)
            if len(stream.model) % 15 == 0:
                assert watched.g.verify().ok
    assert watched.nodes == {}
    assert levels < 40
