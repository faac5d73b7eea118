"""A store that is closed, or open for reading, says so before anything else."""

import pytest

import dynhac
from dynhac import StoreError

WRONG = object()

POINTS = {
    "insert": lambda m: m.insert(WRONG),
    "insert nothing": lambda m: m.insert(None),
    "delete": lambda m: m.delete(WRONG),
    "delete nothing": lambda m: m.delete(None),
    "update": lambda m: m.update(WRONG, WRONG, WRONG, WRONG),
    "expire": lambda m: m.expire(WRONG),
}
GRAPHS = {
    "update": lambda m: m.update(add=WRONG, edges=WRONG, remove=WRONG, remove_edges=WRONG),
    "add": lambda m: m.add(WRONG),
    "remove": lambda m: m.remove(WRONG),
    "set_edges": lambda m: m.set_edges(WRONG, WRONG, WRONG),
    "remove_edges": lambda m: m.remove_edges(WRONG, WRONG),
}
WRITING = {"snapshot": lambda m: m.snapshot(), "batch": lambda m: m.batch().__enter__()}
READING = {
    "refresh": lambda m: m.refresh(),
    "changes": lambda m: m.changes(WRONG),
    "stats": lambda m: m.stats(),
    "enter": lambda m: m.__enter__(),
}
KINDS = {"points": POINTS, "graph": GRAPHS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_store_says_so_first(tmp_path, kind):
    for mode in ("w", "r"):
        model = dynhac.open(tmp_path / "store", kind, mode=mode)
        model.close()
        model.close()  # again, which does no harm
        for call in {**KINDS[kind], **WRITING, **READING}.values():
            with pytest.raises(StoreError, match="store is closed; open it again"):
                call(model)
        assert len(model) == len(model.labels(0.5)) == 0  # it can still be read
        assert model.path in repr(model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_open_for_reading_says_so_first(tmp_path, kind):
    dynhac.open(tmp_path / "store", kind).close()
    with dynhac.open(tmp_path / "store", mode="r") as model:
        for call in {**KINDS[kind], **WRITING}.values():
            with pytest.raises(StoreError, match="is open for reading; open it with mode='w'"):
                call(model)
        with pytest.raises(TypeError, match="since is <object"):
            model.changes(WRONG)


def test_the_graph_of_a_model_says_first_that_it_is_read_only():
    graph = dynhac.DynHAC().graph
    for call in GRAPHS.values():
        with pytest.raises(TypeError, match="the graph of a DynHAC is there to be read"):
            call(graph)
