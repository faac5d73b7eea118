"""The demo runs with all extras installed and without any."""

import re
import sys

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from dynhac import demo


def test_nmi():
    rng = np.random.default_rng(0)
    for classes in (1, 2, 7, 500):
        a, b = rng.integers(0, classes, (2, 500))
        assert demo.nmi(a, b) == pytest.approx(normalized_mutual_info_score(a, b), abs=1e-9)
        assert demo.nmi(a, a) == pytest.approx(1)


def run(monkeypatch, capsys, folder, *options):
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(folder), *options])
    demo.main()
    return capsys.readouterr().out


def test_with_all_extras(monkeypatch, capsys, tmp_path):
    out = run(monkeypatch, capsys, tmp_path)
    assert "handwritten digits" in out
    assert "verified: 1,296 merges, all good" in out
    assert "scipy, exact average linkage" in out
    chosen = float(re.search(r"labels\(\) chooses \d+ clusters by itself +([\d.]+)", out)[1])
    best = float(re.search(r"best cut of this model, after 1,097 updates +([\d.]+)", out)[1])
    assert best >= chosen > 0.93 * best
    assert (tmp_path / "digits.png").stat().st_size > 20_000


def test_without_any_extra(monkeypatch, capsys, tmp_path):
    find = demo.find_spec
    missing = {"sklearn", "scipy", "tqdm", "matplotlib"}
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name in missing else find(name))
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)  # an import would fail
    out = run(monkeypatch, capsys, tmp_path)
    assert "generated glyphs" in out
    assert "verified: 1,296 merges, all good" in out
    assert "scipy" not in out
    assert "No picture: matplotlib is missing" in out
    assert not list(tmp_path.iterdir())
