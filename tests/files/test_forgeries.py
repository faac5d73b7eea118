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

from dynhac import DynHAC, FileError, GraphHAC
from dynhac.files.format import write_file
from dynhac.watch.parameters import DATES, NUMBERS

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


def parts_of_a_graph(nodes):
    """Where the parts of a usearch graph of dimension 3 begin."""
    head = 8 + nodes * 12
    levels = head + 64 + 40
    return {"head": head, "graph": head + 64, "levels": levels, "nodes": levels + 2 * nodes}


def test_each_part_of_a_usearch_graph_is_checked():
    pytest.importorskip("usearch")
    model = DynHAC(n_neighbors=2, neighbors="usearch")
    model.insert(np.eye(3))
    model.delete(1)
    header, arrays = model._state()
    assert len(DynHAC._from_state(header, arrays)) == 2
    data = arrays["index/graph"]
    at = parts_of_a_graph(3)
    levels = data[at["levels"] : at["nodes"]].view(np.int16)
    assert not levels.any(), "the nodes of this graph are on level 0"
    most = 2**32 - 1
    forgeries = [
        (0, "<u4", 4, "version"),
        (4, "<u4", 16, "size of vectors"),
        (8, "<f4", np.nan, "vectors"),
        (8, "<f4", 5.0, "does not hold its points"),
        (12, "<u4", 2**31, "negative zero"),
        (at["head"], "u1", 0, "version"),
        (at["head"] + 7, "<u2", 3, "version"),
        (at["head"] + 13, "u1", ord("i"), "kind"),
        (at["head"] + 17, "<u8", 3, "removed nodes"),
        (at["head"] + 33, "<u8", 4, "dimension"),
        (at["graph"], "<u8", 2**60, "numbers of nodes"),
        (at["graph"] + 8, "<u8", 16, "numbers of nodes and links"),
        (at["graph"] + 24, "<i8", 1, "levels"),
        (at["graph"] + 32, "<u8", 3, "entry node"),
        (at["levels"], "<i2", 1, "levels"),
        (at["nodes"], "<u8", 7, "keys"),
        (at["nodes"] + 8, "<i2", 1, "levels"),
        (at["nodes"] + 10, "<u4", most, "number of links"),
        (at["nodes"] + 14, "<u4", most, "links"),
        (at["nodes"] + 14, "<u4", 3, "links"),
    ]
    for place, kind, value, message in forgeries:
        forged = data.copy()
        number = np.array([value], kind)
        forged[place : place + number.itemsize] = number.view(np.uint8)
        with pytest.raises(FileError, match=message):
            DynHAC._from_state(header, arrays | {"index/graph": forged})
    for name, column, message in [
        ("free", [], "free keys"),
        ("free", [1, 1], "free keys"),
        ("free", [5], "free keys"),
        ("keys", [0, 0], "keys of its index"),
        ("keys", [2, 0], "does not hold its points"),
        ("slots", [0, 1], "does not hold its points"),
        ("settings", [3, 32, 2**40, 192], "expansion_add of its index is 1099511627776"),
        ("settings", [4, 32, 128, 192], "dimension 4, not 3"),
    ]:
        with pytest.raises(FileError, match=message):
            DynHAC._from_state(header, arrays | {f"index/{name}": np.array(column, np.int64)})


def test_a_saved_index_has_a_backend():
    pytest.importorskip("usearch")
    model = DynHAC(n_neighbors=2, neighbors="usearch")
    model.insert(np.eye(3))
    header, arrays = model._state()
    with pytest.raises(FileError, match="its index has no backend"):
        DynHAC._from_state(header | {"backend": None}, arrays)


def test_a_window_holds_no_more_points_than_it_may():
    model = DynHAC(n_neighbors=2, max_points=3)
    model.insert(np.eye(5))
    header, arrays = model._state()
    assert len(DynHAC._from_state(header, arrays)) == 3
    for most in (2, 1):
        parameters = header["parameters"] | {"max_points": most}
        with pytest.raises(FileError, match=f"it has 3 points, and max_points is {most}"):
            DynHAC._from_state(header | {"parameters": parameters}, arrays)


@pytest.mark.parametrize("unit", [NUMBERS, DATES])
def test_a_watch_has_the_patience_of_its_model(unit):
    graph, model = GraphHAC(), DynHAC()
    graph.add([1, 2], edges=(1, 2, 0.9))
    model.insert(np.eye(3))
    for plain, prefix in ((graph, "watch/0/"), (model, "graph/watch/0/")):
        plain.watch(0.5, patience=3)
        header, arrays = plain._state()
        patience = np.array([3], np.float64 if unit == NUMBERS else np.int64)
        forged = {f"{prefix}unit": np.array([unit]), f"{prefix}patience": patience}
        with pytest.raises(FileError, match=r"patience is .*, a time, and .* no timestamps"):
            type(plain)._from_state(header, arrays | forged)


def test_the_index_may_differ_from_scaled_vectors_by_rounding_only():
    pytest.importorskip("usearch")
    model = DynHAC(n_neighbors=2, neighbors="usearch", metric="cosine")
    model.insert([[3.0, 4.0, 0.0], [1.0, 2.0, 2.0], [0.0, 3.0, 4.0]])
    header, arrays = model._state()
    vectors = arrays["points/vectors"]
    near, far = (vectors * np.array([1, 1 - part, 1], np.float32) for part in (2**-24, 2**-21))
    assert len(DynHAC._from_state(header, arrays | {"points/vectors": near})) == 3
    with pytest.raises(FileError, match="does not hold its points"):
        DynHAC._from_state(header, arrays | {"points/vectors": far})


def test_no_point_is_outside_of_the_radius_of_its_cell():
    """Searches that prove their answers leave out cells that are too far away."""
    model = DynHAC(n_neighbors=5, neighbors="cells:1")
    model.insert(np.random.default_rng(0).normal(size=(3_000, 4)))
    header, arrays = model._state()
    extents = arrays["index/extents"]
    assert len(extents) > 4
    for cell in (0, len(extents) - 1):
        forged = extents.copy()
        forged[cell, 1] *= 0.99
        with pytest.raises(FileError, match="cells of its index are not right: extents"):
            DynHAC._from_state(header, arrays | {"index/extents": forged})
    assert len(DynHAC._from_state(header, arrays)) == len(model)


def test_a_wrong_similarity_is_found(tmp_path):
    g = GraphHAC()
    g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
    header, arrays = g._state()
    for name in ("nodes/similarity", "nodes/least_merge"):
        arrays[name] = np.where(np.isfinite(arrays[name]), arrays[name] * 1.01, arrays[name])
    write_file(tmp_path / "g", "GraphHAC", header, arrays)
    with pytest.raises(FileError, match="damaged"):
        GraphHAC.load(tmp_path / "g")


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
