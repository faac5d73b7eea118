"""The examples run on generated or bundled data and find the known clusters."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example as a program and return what it prints."""
    monkeypatch.delenv("DYNHAC_DATA", raising=False)
    monkeypatch.syspath_prepend(EXAMPLES)
    for module in ("data", "generated"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    def run(name, *options):
        monkeypatch.setattr(sys, "argv", [name, *map(str, options)])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    yield run
    for module in ("data", "generated"):
        sys.modules.pop(module, None)


@pytest.fixture
def folder(run, tmp_path):
    """A folder with small data sets under the names and in the types of the real ones."""
    import generated

    made = {
        "intents_minilm384": generated.sentences(30),
        "reuters_minilm384": generated.news(),
        "cora_er": generated.citations(50),
    }
    for name, arrays in made.items():
        np.savez(tmp_path / f"{name}.npz", **(arrays | {"X": arrays["X"].astype(np.float16)}))
    return tmp_path


def test_intents(run):
    out = run("intents")
    assert out.startswith("No --data: generated data instead of intents_minilm384.npz.")
    import generated

    truth = generated.sentences()
    built = len(truth["y"]) - 4
    assert f"{built} sentences of 9 intents" in out
    top = [int(size) for size in re.findall(r"^[├└]─ (\d+):", out, re.M)]
    assert top == sorted(top, reverse=True)
    assert sum(top) == built
    found = int(re.search(r"─ (\d+): .* card.* \[100% lost card, intents: 1\]", out)[1])
    lost = np.count_nonzero(truth["classes"][truth["y"]] == "bank/lost card")
    assert lost - 4 <= found <= lost  # all of them but those among the last four
    assert len(re.findall(r"^  took .* ms; cluster mates: \d+", out, re.M)) == 4


def test_intents_nest(run):
    """The parts of a branch that is shown whole add up to it."""
    lines = run("intents", "--cuts", 0.01, 0.3).splitlines()
    sizes = [re.match(r"(│  |   )?[├└]─ ([\d,]+)[: ](smaller)?", line) for line in lines]
    branches: list[list[int]] = []
    for found in filter(None, sizes):
        if found[1] is None:
            branches.append([int(found[2])])
        else:
            branches[-1].append(0 if found[3] else int(found[2]))
    whole = [branch for branch in branches if len(branch) > 1 and 0 not in branch]
    assert whole
    assert all(size == sum(parts) for size, *parts in whole)


def test_deduplication(run):
    out = run("deduplication")
    found, texts = map(int, re.search(r"(\d+) of (\d+) texts were duplicates", out).groups())
    import generated

    messages = generated.messages()
    repeated = texts - len(np.unique(messages["y"]))
    assert texts == len(messages["y"])
    assert abs(found - repeated) <= 0.05 * repeated
    pairs = re.findall(r"^ *([\d,]+) .*\n +is a duplicate of ([\d,]+)", out, re.M)
    assert len(pairs) == 12
    assert all(messages["y"][int(a)] == messages["y"][int(b)] for a, b in pairs)


def test_entity_resolution(run):
    out = run("entity_resolution")
    linkage = [float(f1) for f1 in re.findall(r"average linkage at .* F1 ([\d.]+)", out)]
    followed = float(re.search(r"following edges at .* F1 ([\d.]+)", out)[1])
    later = [float(f1) for f1 in re.findall(r"records (?:added|removed).* F1 ([\d.]+)", out)]
    assert len(linkage) == 5
    assert max(linkage) > 0.9 > followed
    assert min(later) > 0.9
    assert "are in one cluster at similarities up to" in out
    assert re.search(r"verified: \d+ merges, all good", out)


def test_news_stream(run, tmp_path):
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    out = run("news_stream", "--out", tmp_path)
    for topic in ("COFFEE", "CRUDE OIL", "SEAMEN", "TANKER", "LENDING RATE"):
        assert re.search(rf"^2025-01-\d\d  new .*{topic}", out, re.M)
    assert re.search(r"^2025-01-\d\d  merged ", out, re.M)
    assert re.search(r"^2025-01-\d\d  split ", out, re.M)
    at_the_end = out.partition("Topics at the end:")[2]
    assert "LENDING RATE" in at_the_end
    assert "COFFEE" not in at_the_end
    assert (tmp_path / "news.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("intents", "sentences of 9 intents"),
        ("entity_resolution", "all good"),
        ("deduplication", "texts were duplicates"),
    ],
)
def test_a_folder_of_data(run, folder, monkeypatch, name, says):
    given = run(name, "--data", folder)
    assert "generated data" not in given
    assert says in given
    monkeypatch.setenv("DYNHAC_DATA", str(folder))
    assert "generated data" not in run(name)


def test_a_folder_without_the_data(run, tmp_path):
    with pytest.raises(SystemExit, match=r"which has no cora_er\.npz"):
        run("entity_resolution", "--data", tmp_path)
