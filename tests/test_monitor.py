"""`monitor`: windows of figures, events and handlers."""

import datetime
import importlib
import time

import pytest


@pytest.fixture
def monitor(torch):
    return importlib.import_module(f"{torch.__name__}.monitor")


def test_stats_are_logged_window_by_window(monitor):
    events, A = [], monitor.Aggregation
    handle = monitor.register_event_handler(events.append)
    try:
        stat = monitor.Stat("s", (A.SUM, A.MEAN, A.MIN, A.MAX, A.COUNT, A.VALUE), datetime.timedelta(milliseconds=20))
        before = (A.SUM, A.MEAN, A.MIN, A.MAX, A.COUNT)
        assert stat.get() == dict.fromkeys(before, 0.0) and stat.name == "s"
        time.sleep(0.02 - time.monotonic() % 0.02)
        stat.add(5)
        stat.add(6)
        time.sleep(0.03)
        stat.add(1)
        assert stat.get() == {A.SUM: 11, A.MEAN: 5.5, A.MIN: 5, A.MAX: 6, A.COUNT: 2} and stat.count == 1
        assert events[0].name == monitor.STAT_EVENT and events[0].data["s.mean"] == 5.5 and len(events) == 1
        del stat
        assert len(events) == 2 and events[1].data["s.sum"] == 1
        few = monitor.Stat("f", [A.SUM], datetime.timedelta(hours=1), 2)
        for value in (1, 3, 9):
            few.add(value)
        assert few.get() == {A.SUM: 4} and few.count == 0 and events[2].data == {"f.sum": 4}
    finally:
        monitor.unregister_event_handler(handle)


def test_events_reach_handlers(monitor):
    events, now = [], datetime.datetime.now()
    handle = monitor.register_event_handler(events.append)
    event = monitor.Event("n", now, {"a": 1.5, "b": 2, "c": "x", "d": True})
    monitor.log_event(event)
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    assert events == [event] and event.data == {"a": 1.5, "b": 2, "c": "x", "d": 1.0} and event.timestamp == now
    for bad in (
        lambda: monitor.Event("n", 1, {}),
        lambda: monitor.Event("n", now, {"a": []}),
        lambda: monitor.log_event(3),
    ):
        with pytest.raises(TypeError):
            bad()
    scalars = []

    class Writer:
        def add_scalar(self, name, value, walltime):
            scalars.append((name, value))

    handler = monitor.TensorboardEventHandler(Writer())
    handler(event)
    handler(monitor.Event(monitor.STAT_EVENT, now, {"s.sum": 2.0}))
    assert scalars == [("s.sum", 2.0)]
