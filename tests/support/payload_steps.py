"""Random updates with payloads, for a durable model or for its twin: a plain model and a dict.

Step i of a seed is one update, and perhaps a payload that is set in the same batch. It depends on
the seed, on i and on the ids that the model holds. Ids are few, so that they are used again.
"""

import numpy as np

import dynhac
from dynhac import DynHAC, GraphHAC

SORTS = {
    "int ids": ("points", {"n_neighbors": 3}),
    "str ids": ("points", {"n_neighbors": 3}),
    "few points": ("points", {"n_neighbors": 3, "max_points": 12}),
    "ages": ("points", {"n_neighbors": 3, "max_age": 4}),
    "vertices": ("graph", {}),
}
WORDS = ["oil", "gold", "rain", "中文", "été"]


class Twin:
    """A model in memory, and the payloads that its points should have."""

    def __init__(self, sort):
        kind, parameters = SORTS[sort]
        self.model = (DynHAC if kind == "points" else GraphHAC)(**parameters)
        self.kept = {}

    @property
    def ids(self):
        return self.model.ids

    def update(self, payload=None, **batch):
        self.model.update(**batch)
        gone, new = ("delete", "ids") if isinstance(self.model, DynHAC) else ("remove", "add")
        for id in batch.get(gone, ()):
            self.kept.pop(id, None)
        new = batch.get(new) or []
        self.kept.update(zip(new, payload or [None] * len(new), strict=True))
        self.kept = {id: kept for id, kept in self.kept.items() if kept and id in self.model}

    def set_payload(self, ids, payload):
        for id, each in zip(ids, payload, strict=True):
            self.kept.pop(id, None)
            if each is not None:
                self.kept[id] = each


def step(model, sort, seed, i):
    """Make step ``i``."""
    rng = np.random.default_rng([seed, i])
    kind = int if sort in ("int ids", "few points", "ages") else str
    held = model.ids.tolist()
    gone = [id for id in held if rng.random() < 0.25]
    free = [kind(n) for n in range(30)]
    free = [id for id in free if id not in held or id in gone]
    new = [id for id in free if rng.random() < 0.2]
    payload = [some_payload(rng, i) for _ in new] if rng.random() < 0.8 else None
    if SORTS[sort][0] == "graph":
        model.update(add=new, remove=gone, payload=payload)
    else:
        batch = {"delete": gone}
        if new:
            batch |= {"insert": rng.normal(size=(len(new), 2)), "ids": new, "payload": payload}
            if sort == "ages":
                batch["timestamps"] = (i + rng.integers(-3, 2, len(new))).astype(float)
        model.update(**batch)
    some = [id for id in model.ids.tolist() if rng.random() < 0.1]
    if some and rng.random() < 0.5:
        model.set_payload(some, [some_payload(rng, i) for _ in some])


def some_payload(rng, i):
    if rng.random() < 0.2:
        return None
    words = [WORDS[n] for n in rng.integers(len(WORDS), size=2).tolist()]
    return {"title": " ".join(words), "step": i, "about": {"even": bool(i % 2 == 0), "n": i % 3}}


def check(model, twin):
    """Compare all that can be seen of the payloads."""
    ids = twin.ids.tolist()
    assert model.ids.tolist() == ids
    assert model.payloads(ids) == [twin.kept.get(id) for id in ids]
    for word in WORDS:
        has_word = {id for id, kept in twin.kept.items() if word in kept["title"]}
        assert set(model.find(word, limit=None).tolist()) == has_word
    for name, value in (("even", True), ("n", 1)):
        equal = {id for id, kept in twin.kept.items() if kept["about"][name] == value}
        assert set(model.find(where={f"about.{name}": value}, limit=None).tolist()) == equal


def write(job, say):
    """Make steps, each in a batch, until the process is killed."""
    kind, parameters = SORTS[job["sort"]]
    model = dynhac.open(
        job["path"], kind, durability=job["durability"], snapshot_seconds=0.02, **parameters
    )
    say(f"opened {model.update_number}")
    while True:
        with model.batch():
            step(model, job["sort"], job["seed"], model.update_number + 1)
        say(model.update_number)
