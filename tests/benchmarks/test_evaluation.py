"""The evaluation runs on a few points from end to end, continues where it stopped, scores right."""

import bz2
import json
import re
import sys
import types
from itertools import permutations

import numpy as np
import pytest

from benchmarks.common import fetch
from benchmarks.evaluation import built, data, job, paper, plan, protocols, scores


def test_whole_pipeline(tmp_path, capsys):
    command = ["--part", "paper", "--points", "60", "--quick", "--limit", "30"]
    command += ["--datasets", "digits", "--out", str(tmp_path / "out")]
    command += ["--cache", str(tmp_path / "cache")]
    paper.main([*command, "--systems", "dynhac", "onlinescc"])
    rows = json.loads((tmp_path / "out" / "results" / "digits.json").read_text())["rows"]
    done = {(r["system"], r["protocol"], r["epsilon"], r["kind"]): r for r in rows}
    for protocol in ("insertion", "deletion"):
        for epsilon in (0, 0.1, 1):
            row = done["dynhac", protocol, epsilon, "updates"]
            assert row["verify"]["ok"], row["verify"]
            assert row["made"] == row["planned"] == row["averaged"] == 30
            assert 0 < row["ms_p50"] <= row["ms_p99"] <= row["ms_max"]
            assert row["edges_rerun"] > 0
            at = [(c["updates"], c["points"]) for c in row["checkpoints"]]
            sign = -1 if protocol == "deletion" else 1
            start = 60 if protocol == "deletion" else 30
            assert at == [(3 * i, start + sign * 3 * i) for i in range(11)]
            assert all(0 < c["nmi"] <= 1 and -1 <= c["ari"] <= 1 for c in row["checkpoints"])
        churned = done["dynhac", protocol, 0.1, "churn"]["series"]["changed"]
        assert len(churned) == 20
        assert all(0 <= changed < 60 for changed in churned)
        near = done["dynhac", protocol, 0.1, "nearby"]
        place = near["epsilons"].index(0.1)
        assert near["ours"][place] == done["dynhac", protocol, 0.1, "updates"]["nmi"]
        assert len(near["ours"]) == len(near["static"]) == 3
        again = done["dynhac", protocol, 0.1, "samples"]
        assert len(again["ours"]) == len(again["static"]) == 2
        assert again["points"] == 48
        assert len({near["ours"][place], *again["ours"]}) == 3
    assert done["onlinescc", "deletion", None, "updates"]["skipped"] == "cannot delete"
    assert done["onlinescc", "insertion", None, "updates"]["nmi"] > 0

    text = (tmp_path / "out" / "index.md").read_text()
    assert "A subset only: first 60 points of every set" in text
    nmi = done["dynhac", "insertion", 0.1, "updates"]["nmi"]
    assert f"| dynhac (ours) | {nmi:.3f} |" in text
    assert re.search(r"\| digits, deletion \| 60 \| 3 \| 0\.\d{4} \| 0\.\d{4} \| [+-]0\.", text)
    assert re.search(r"\| OnlineSCC \| deletion \| digits \| skipped: cannot delete \|", text)
    figures = {f.name for f in (tmp_path / "out" / "figures").iterdir()}
    assert {"nmi.svg", "epsilon.svg", "time-against-edges.svg", "churn.svg"} <= figures
    for shown in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / "out" / shown).exists()

    # The same command again runs only the job whose result is missing.
    capsys.readouterr()
    file = tmp_path / "out" / "results" / "digits.json"
    content = json.loads(file.read_text())
    content["rows"] = [r for r in content["rows"] if r["kind"] != "small"]
    file.write_text(json.dumps(content))
    paper.main([*command, "--systems", "dynhac"])
    said = capsys.readouterr().out
    assert "13 jobs, 12 of them done before" in said
    assert "[1/1] digits insertion, dynhac ε=0.1, small" in said
    assert len(json.loads(file.read_text())["rows"]) == len(rows)


def test_time_limit_and_missing_systems(tmp_path):
    """Results say what a system did not finish, and why."""
    wanted = {"dataset": "digits", "system": "dynhac", "epsilon": 0.1, "kind": "updates"}
    wanted |= {"threshold": 1e-4, "limit_s": 1e-9}
    path, n = data.stream_file(tmp_path, "digits", "insertion", 50, None)
    assert n == 50
    row = job.measure(wanted | {"protocol": "insertion", "path": str(path)})
    assert row["stopped"] == "after 1 of 25 updates (1e-09 s)"
    assert row["made"] == 1
    path, _ = data.stream_file(tmp_path, "digits", "deletion", 50, None)
    with pytest.raises(job.OutOfTime, match=r"building took longer than 1e-09 s \(batch 1 of 50"):
        job.measure(wanted | {"protocol": "deletion", "path": str(path)})

    systems = {"hdbscan": {"missing": "hdbscan is not installed"}}
    planned = list(plan.jobs(["digits"], systems, plan.QUICK))
    assert [j["skipped"] for j in planned] == ["hdbscan is not installed"] * 2


def test_states_kept_between_jobs(tmp_path, monkeypatch):
    """GRINCH continues from the state of another job as if it had built it itself."""
    common = {"dataset": "digits", "system": "grinch", "epsilon": None, "threshold": 1e-2}
    common |= {"limit_s": 60, "kind": "updates"}

    def run(protocol):
        path, _ = data.stream_file(tmp_path, "digits", protocol, 60, None)
        made = job.Run(common | {"protocol": protocol, "path": str(path)})
        seconds = made.build()
        return seconds, [labels.tolist() for _, labels in made.system.cuts()]

    _, fresh = run("deletion")
    assert not list(tmp_path.glob("built-*"))  # built too quickly to be kept
    monkeypatch.setattr(built, "KEPT_FROM_S", 0)
    (tmp_path / "built-digits-grinch-30-abc.pickle").write_bytes(b"of another commit")
    run("insertion")
    (kept,) = tmp_path.glob("built-*")
    system, seconds = built.load(kept)
    built.keep(kept, system, seconds + 100)
    from_kept, labels = run("deletion")
    assert from_kept > 100  # the time of the kept build counts
    assert labels == fresh


def test_protocols():
    """99% and then singles; 100 batches; neighbours only in the same or earlier batches."""
    bounds = protocols.PROTOCOLS["insertion"].bounds(70_000)
    assert bounds[:3].tolist() == [0, 69_300, 69_301]
    assert bounds[-1] == 70_000
    assert protocols.PROTOCOLS["insertion"].averaged(700) == slice(-100, None)
    deletion = protocols.PROTOCOLS["deletion"]
    assert np.diff(deletion.bounds(70_000)).tolist() == [700] * 100
    assert deletion.updates(70_000) == 700
    assert deletion.averaged(700) == slice(0, 100)
    growth = protocols.PROTOCOLS["growth"]
    assert growth.bounds(70_000)[:3].tolist() == [0, 1_000, 1_001]
    assert growth.updates(70_000) == 69_000


def test_streams(tmp_path):
    """News are ordered by time, and edges join points to the same or earlier batches only."""
    rng = np.random.default_rng(0)
    when = rng.permutation(200).astype(float)
    points = np.c_[when, rng.normal(size=200)]
    np.savez(tmp_path / "reuters_minilm384.npz", X=points, y=when.astype(int) // 20, time=when)
    assert data.available(tmp_path) == ["reuters"]
    path, n = data.stream_file(tmp_path / "cache", "reuters", "deletion", 100, tmp_path)
    stream = data.read_stream(path)
    assert n == 100
    assert stream.points[:, 0].tolist() == list(range(100))
    batch = np.searchsorted(stream.graph.bounds, np.arange(100), side="right")
    assert (batch[stream.graph.v] <= batch[stream.graph.u]).all()
    distance = np.linalg.norm(stream.points[stream.graph.u] - stream.points[stream.graph.v], axis=1)
    np.testing.assert_allclose(stream.graph.w, 1 / (1 + distance), rtol=1e-5)


def test_agreement_is_that_of_scikit_learn():
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    rng = np.random.default_rng(1)
    for classes in (1, 2, 7, 150):
        truth, found = rng.integers(5, size=150), rng.integers(classes, size=150)
        found[:50] = truth[:50]
        nmi, ari = scores.agreement(scores.compact(truth), scores.compact(found))
        assert nmi == pytest.approx(normalized_mutual_info_score(truth, found))
        assert ari == pytest.approx(adjusted_rand_score(truth, found))


def test_best_score():
    """The best cut counts; points without a class do not; noise points are alone."""
    truth = np.array([0, 0, 1, 1, -1])
    cuts = [(0.1, np.array([0, 0, 0, 0, 0])), (0.5, np.array([3, 3, 8, 8, 3]))]
    best = scores.best_score(iter(cuts), truth)
    assert (best.nmi, best.ari, best.cut, best.clusters) == (1, 1, 0.5, 2)
    assert scores.best_score([(0.0, np.array([-1, -1, 0, 0, 0]))], truth).clusters == 3
    with pytest.raises(ValueError, match="no candidate clustering"):
        scores.best_score([], truth)


def test_labels_changed():
    """Clusters are matched one to one so that the fewest labels change."""
    changed = scores.labels_changed
    rng = np.random.default_rng(2)
    for _ in range(50):
        before, after = rng.integers(4, size=12), rng.integers(4, size=12)
        stay = max(
            np.count_nonzero(np.array(names)[before] == after) for names in permutations(range(4))
        )
        assert changed(before, after) == 12 - stay
    assert changed(np.arange(9), np.arange(9)[::-1].copy()) == 0


def test_fetch(tmp_path, monkeypatch, capsys):
    """The data sets of the paper from small local files, without downloads."""
    rng = np.random.default_rng(3)
    lines = [f"{c} 1:0.5 128:{c / 10}" for c in (3, 1, 3)]
    (tmp_path / "aloi.scale.bz2").write_bytes(bz2.compress("\n".join(lines).encode()))
    fetch.main(["aloi", "--out", str(tmp_path)])  # the download is there already
    with np.load(tmp_path / "aloi_scale128.npz") as made:
        assert made["X"].shape == (3, 128)
        assert made["X"].dtype == np.float32
        np.testing.assert_allclose(made["X"][:, 127], [0.3, 0.1, 0.3], rtol=1e-6)
        assert made["y"].tolist() == [1, 0, 1]

    class UMAP:
        def __init__(self, random_state):
            assert random_state == 42

        def fit_transform(self, pixels):
            return pixels[:, :2]

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=UMAP))
    source = tmp_path / "own.npz"
    np.savez(source, X=rng.normal(size=(20, 784)), y=np.arange(20) % 10)
    fetch.main(["mnist", "--out", str(tmp_path), "--source", str(source)])
    fetch.main(["ilsvrc", "--out", str(tmp_path), "--source", str(source)])
    assert "20 x 784, 10 classes" in capsys.readouterr().out
    assert data.available(tmp_path) == ["mnist", "aloi", "ilsvrc"]
    assert data.points_in_order("mnist", tmp_path)[0].shape == (20, 2)
    assert data.points_in_order("ilsvrc", tmp_path)[0].shape == (20, 784)

    with pytest.raises(SystemExit, match="ilsvrc needs --source"):
        fetch.main(["ilsvrc", "--out", str(tmp_path)])
    np.savez(source, X=np.full((2, 3), np.nan), y=[0, 1])
    with pytest.raises(SystemExit, match="not finite in row 0"):
        fetch.main(["ilsvrc", "--out", str(tmp_path), "--source", str(source)])
    np.savez(source, X=np.ones((2, 3)))
    with pytest.raises(SystemExit, match="no array y"):
        fetch.main(["ilsvrc", "--out", str(tmp_path), "--source", str(source)])
