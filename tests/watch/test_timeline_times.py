"""Times in a watch's timeline: the model's clock after each update."""

import pickle

import numpy as np
import pytest

import dynhac
from dynhac import DynHAC, GraphHAC
from dynhac.watch import history

START = np.datetime64("2024-03-01T12:00", "s")


def fill(model, times):
    """Insert points in two places, one at each time; return a watch of them."""
    watch = model.watch(0.2)
    for i, time in enumerate(times):
        model.insert([10.0 * (i % 2), 0.1 * i], timestamps=time)
    return watch


def as_pairs(timeline):
    return dict(zip(timeline.update.tolist(), timeline.time.tolist(), strict=True))


@pytest.mark.parametrize("window", [{}, {"max_points": 3}])
def test_the_time_of_an_update_is_the_latest_timestamp_seen(window):
    model = DynHAC(**window)
    timeline = fill(model, [5, 7, 6, 20]).timeline()
    assert as_pairs(timeline) == {1: 5, 2: 7, 3: 7, 4: 20}
    assert timeline.time.dtype == np.int64
    assert timeline.last_time == 20
    assert all(timeline.time[1:] >= timeline.time[:-1])


def test_dates():
    times = START + np.array([0, 3600, 7200]).astype("timedelta64[s]")
    timeline = fill(DynHAC(), times).timeline()
    assert timeline.time.dtype == np.dtype("datetime64[ns]")
    assert np.unique(timeline.time).tolist() == times.astype("datetime64[ns]").tolist()
    assert timeline.last_time == times[-1]


def test_ints_and_floats():
    timeline = fill(DynHAC(), [1, 2, 2.5]).timeline()
    assert timeline.time.dtype == np.float64
    assert np.unique(timeline.time).tolist() == [1.0, 2.0, 2.5]


def test_the_clock_without_new_points():
    model = DynHAC(max_age=10)
    watch = fill(model, [1, 2, 8])
    model.expire(12)
    timeline = watch.timeline()
    assert as_pairs(timeline)[4] == 12
    model.expire(13)
    assert watch.timeline().last_time == 13


def test_no_timestamps():
    model = DynHAC()
    watch = model.watch(0.2)
    model.insert([[0.0], [1.0]])
    graph = GraphHAC()
    other = graph.watch(0.2)
    graph.add([1, 2])
    for timeline in (watch.timeline(), other.timeline()):
        assert len(timeline.update)
        assert timeline.time is None
        assert timeline.last_time is None


@pytest.mark.parametrize("times", [[5, 7, 9], [5.5, 7, 9], START + np.arange(3)])
def test_times_are_saved(tmp_path, times):
    model = DynHAC()
    timeline = fill(model, times).timeline()
    model.save(tmp_path / "model")
    for other in (DynHAC.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        again = other.watches[0].timeline()
        assert again.time.dtype == timeline.time.dtype
        assert again.time.tolist() == timeline.time.tolist()
        assert again.last_time == timeline.last_time
        other.insert([3.0, 3.0], timestamps=times[-1])
        assert other.watches[0].timeline().time[-1] == timeline.time[-1]


def test_times_in_a_store(tmp_path):
    with dynhac.open(tmp_path / "store") as model:
        timeline = fill(model, [5, 7, 9]).timeline()
    with dynhac.open(tmp_path / "store") as model:
        assert model.watches[0].timeline().time.tolist() == timeline.time.tolist()


def test_a_summary_of_old_steps_has_the_time_of_the_last_of_them(monkeypatch):
    monkeypatch.setattr("dynhac.watch.history.KEPT", 5)
    model = DynHAC()
    timeline = fill(model, range(100, 130)).timeline()
    assert set(timeline.update.tolist()) < set(range(1, 31))
    assert all(time == 99 + update for update, time in as_pairs(timeline).items())
    assert timeline.last_time == 129


def test_plots_have_an_axis_of_times():
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    watch = fill(DynHAC(), START + np.arange(0, 30, 10).astype("timedelta64[D]"))
    assert watch.plot_timeline().get_xlabel() == "time"
    ax = watch.plot_timeline(x="update", labels={0: "first"})
    assert ax.get_xlabel() == "update"
    assert "first" in [label.get_text() for label in ax.get_yticklabels()]
    plt.close("all")


def test_timelines_that_go_on_are_those_of_the_whole_history(monkeypatch):
    """A history keeps what it has read; one that is loaded reads everything."""
    monkeypatch.setattr(history, "KEPT", 60)
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=4)
    watch = model.watch(0.3, min_size=2)
    ids: list[int] = []
    for i in range(300):
        if ids and rng.random() < 0.4:
            model.delete(ids.pop(int(rng.integers(len(ids)))))
        else:
            ids.append(model.insert(rng.normal(size=2), timestamps=float(i)))
        if rng.random() < 0.3:
            got = watch.timeline()
            loaded = history.History.from_columns(watch._history.columns())
            whole = loaded.timeline(got.last_update, got.last_time)
            for a, b in zip(got, whole, strict=True):
                assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
            got.update[:] = 0  # a caller may change what it got
    assert got.events
