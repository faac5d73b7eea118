"""What payloads can hold, how they are found, and what is refused."""

import numpy as np
import pytest

import dynhac
from dynhac import DynHAC, GraphHAC


def new(path):
    return dynhac.open(path, n_neighbors=3)


def test_what_find_finds(tmp_path):
    payloads = [
        {"title": "Oil, oil and OIL", "n": 1, "a": {"b": True}},
        {"title": "The price of oil", "n": 1.0, "a.b": 1},
        {"text": ["Étude", {"deep": "中文字"}], 'q"\\\n': None, "zero": "x\0y", "big": 2**70},
        None,
    ]
    with new(tmp_path / "a") as model:
        model.insert(np.arange(4.0)[:, None], payload=payloads)

        def found(*arguments, **options):
            return model.find(*arguments, **options).tolist()

        assert found("oil") == [0, 1]
        assert found("oil", limit=1) == [0]
        assert found("price oil") == found("OIL price") == [1]
        assert found("etude") == found("中文") == found("文字") == [2]
        assert found("字中") == []
        assert found() == [0, 1, 2]
        assert found(where={"n": 1}) == found(where={"n": np.float32(1)}) == [0, 1]
        assert found(where={"n": True}) == []
        assert found(where={"a.b": True}) == [0]
        assert found(where={"a.b": 1}) == [1]
        assert found("oil", where={"n": 1, "a.b": 1}) == [1]
        assert found(where={"a": {"b": True}}) == [0]
        assert found(where={'q"\\\n': None}) == found(where={"zero": "x\0y"}) == [2]
        assert found(where={"big": 2**70}) == [2]
        assert found(where={"": 1}) == found(where={"n": "\ud800"}) == []
        assert found(where={"\ud800": 1}) == []
        model.set_payload([3, 0], [{"title": "oil"}, None])
        assert found("oil") == [3, 1]
        for wrong in ({"text": 1}, {"where": [1]}, {"where": {1: 1}}, {"limit": -1}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                model.find(**wrong)


@pytest.mark.parametrize(
    "text", ["", " ", "\0", '"', "a\0b", "'", "NEAR(a b)", "a AND", "*", "-", "^", "a:b", "\ud800",
             "{", "title : x", '"oil', "oil*", "(", "🙂", "a" * 10**5]
)  # fmt: skip
def test_no_text_is_an_error(tmp_path, text):
    with new(tmp_path / "a") as model:
        model.insert([0.0], payload={"title": "oil"})
        assert model.find(text).tolist() in ([], [0])


def test_values_come_back(tmp_path):
    payload = {"z": 1, "a": [None, True, -1.5, "é\u2028\0", {"": {}}], "n": 2**63, "e": 1e-300}
    with new(tmp_path / "a") as model:
        model.insert([[0.0], [1.0]], payload=[payload, {}])
        assert model.payloads([0, 1, 5]) == [payload, {}, None]
        assert list(model.payloads(0)[0]) == list(payload)
        model.insert([2.0], payload={"t": (1, np.int64(2)), "x": np.float32(0.5)})
        assert model.payloads(2) == [{"t": [1, 2], "x": 0.5}]


def deep(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"x": value}
    return value


def laughs():
    value = [1]
    for _ in range(50):
        value = [value, value]
    return {"a": value}


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"a": float("nan")}, "row 1: field 'a' is nan; numbers must be finite"),
        ({"a": [{"b": np.inf}]}, "row 1: field 'a.0.b' is inf"),
        ({"a": {1: 2}}, r"row 1: field 'a' has the key 1 \(int\); keys must be str"),
        ({"a": {1, 2}}, "row 1: field 'a' is {1, 2}"),
        ({"a": "\ud800"}, "row 1 has a lone surrogate"),
        ({"\udfff": 1}, "row 1 has a lone surrogate"),
        ({"a": "x" * 2**20}, "row 1 takes 1,048,584 bytes"),
        ({"a": 10**5000}, "row 1 cannot be written as JSON"),
        (deep(65), "more than 64 levels"),
        (laughs(), "too many"),
        ("text", "row 1 is 'text'"),
        (3, "row 1 is 3"),
    ],
)
def test_wrong_payloads(tmp_path, payload, message):
    with new(tmp_path / "a") as model:
        with pytest.raises(ValueError, match=message):
            model.insert([[0.0], [1.0]], payload=[{}, payload])
        assert len(model) == 0
        model.insert([0.0], payload=deep(64))
        assert model.payloads(0) == [deep(64)]


def test_wrong_arguments(tmp_path):
    with new(tmp_path / "a") as model:
        for payload, message in (
            ([{}], "payload has 1 entry for 2 points"),
            ({}, "it must be a list"),
            ("ab", "it must be a list"),
            (5, "it must be a list"),
        ):
            with pytest.raises(ValueError, match=message):
                model.insert([[0.0], [1.0]], payload=payload)
        with pytest.raises(ValueError, match="payload has 1 entry for 0 points"):
            model.update(delete=[], payload=[{}])
        model.insert([0.0])
        with pytest.raises(ValueError, match="twice"):
            model.set_payload([0, 0], [{}, {}])
    for plain in (DynHAC(), GraphHAC()):
        with pytest.raises(ValueError, match=r"dynhac\.open"):
            plain.update(payload=[])
    with pytest.raises(ValueError, match=r"dynhac\.open"):
        DynHAC().insert([0.0], payload={})
    with dynhac.open(tmp_path / "g", "graph") as graph:
        graph.add(["a", "b"], edges=("a", "b", 0.5), payload=[{"n": 1}, None])
        assert graph.payloads(["a", "b"]) == [{"n": 1}, None]
        graph.update(remove="a", add="a")
        assert graph.payloads("a") == [None]


def test_copies_are_plain_models(tmp_path):
    with new(tmp_path / "a") as model:
        model.insert([0.0], payload={"title": "oil"})
        model.save(tmp_path / "file")
        assert type(DynHAC.load(tmp_path / "file")) is DynHAC


def test_a_store_without_payloads_has_no_tables(tmp_path):
    with new(tmp_path / "a") as model:
        model.insert([[0.0], [1.0]], payload=[None, None])
        model.delete(0)
        assert not model._writer.payloads.exist
        assert model.find("oil").tolist() == []
