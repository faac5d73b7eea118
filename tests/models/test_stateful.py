"""All operations of ``GraphHAC`` in any order, on any small graph: hypothesis looks for a way to
break it.

After every step the engine's own verification, the plain oracles, brute force where it applies, all
cuts and the reported change must agree.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from soak import SOAK
from strategies import PALETTES, SHAPES, Stream
from watching import Watched

from dynhac import _core

choices = st.randoms(use_true_random=False)


class GraphMachine(RuleBasedStateMachine):
    """One graph; every rule is one batch."""

    @initialize(
        epsilon=st.sampled_from((0.0, 0.1, 1.0)),
        threshold=st.sampled_from((0.0, 0.01, 0.25)),
        palette=st.sampled_from(sorted(PALETTES)),
        text=st.booleans(),
        threads=st.sampled_from((1, 2)),
        shape=st.sampled_from(sorted(SHAPES)),
        n=st.integers(0, 14),
        most_levels=st.sampled_from((None, 0, 1, 2)),
        rng=choices,
    )
    def begin(self, epsilon, threshold, palette, text, threads, shape, n, most_levels, rng):
        if most_levels is not None:  # so that small graphs have a last level
            _core.bound_levels(most_levels, 0)
        self.stream = Stream(rng, palette, text=text)
        self.watched = Watched(self.stream, epsilon, threshold, threads)
        self.watched.update(self.stream.seed_with(shape, n))

    def step(self, operation, rng):
        self.stream.rng = rng
        self.watched.update(getattr(self.stream, operation)())

    def is_small(self):
        return len(self.stream.model) < 24

    def has_ids(self):
        return bool(self.stream.model)

    def has_edges(self):
        return any(self.stream.model.values())

    @rule(rng=choices)
    @precondition(is_small)
    def add(self, rng):
        self.step("add", rng)

    @rule(rng=choices)
    @precondition(has_ids)
    def remove(self, rng):
        self.step("remove", rng)

    @rule(rng=choices)
    @precondition(has_ids)
    def set_edges(self, rng):
        self.step("set_edges", rng)

    @rule(rng=choices)
    @precondition(has_edges)
    def remove_edges(self, rng):
        self.step("cut_edges", rng)

    @rule(rng=choices)
    @precondition(has_ids)
    def replace(self, rng):
        self.step("replace", rng)

    @rule(rng=choices)
    @precondition(is_small)
    def mixed(self, rng):
        self.step("mixed", rng)

    @rule(rng=choices)
    def rejected(self, rng):
        self.stream.rng = rng
        self.watched.reject(*self.stream.bad())

    @rule()
    def nothing(self):
        version = self.watched.g.version
        self.watched.update({})
        assert self.watched.g.version == version

    @invariant()
    def all_is_right(self):
        self.watched.judge()

    def teardown(self):
        _core.bound_levels()


TestGraph = GraphMachine.TestCase
TestGraph.settings = settings(max_examples=60 * SOAK, stateful_step_count=25)
