"""What breaks in on a call that `rustgrad.compile` watches, from outside of the function: the collector, handlers of signals, other
threads, profilers; and code that has no file.
"""

import cProfile
import functools
import gc
import os
import signal
import threading
import warnings
import weakref

import pytest


@pytest.fixture(autouse=True)
def nothing_is_compiled(torch):
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("kind", ["finalizer", "weak set"])
def test_garbage_of_others_is_not_collected_in_a_watched_call(torch, kind):
    class Cycle:
        def __init__(self):
            self.itself = self

        if kind == "finalizer":

            def __del__(self):
                pass

    known = weakref.WeakSet()

    @torch.compile
    def f(x):
        # More objects than the collector waits for.
        kept = [[] for _ in range(5000)]
        return x + len(kept)

    once = gc.get_threshold()
    try:
        gc.set_threshold(2000)
        for _ in range(4):
            gc.collect()
            known.add(Cycle())
            f(torch.ones(3))
    finally:
        gc.set_threshold(*once)
    assert f._compiled_state.road == "replay", f._compiled_state.reasons
    assert gc.isenabled()


def test_the_collector_stays_off_until_the_last_watched_call_of_all_threads_ends(torch):
    from rustgrad.compiler._calls import uncollected

    seen = {}
    inside, may_end = threading.Barrier(2), threading.Event()

    def call(name, waits_for):
        with uncollected:
            inside.wait(10)
            waits_for.wait(10)
            seen[name] = gc.isenabled()

    passed = threading.Event()
    passed.set()
    threads = [threading.Thread(target=call, args=a) for a in (("first", passed), ("second", may_end))]
    for thread in threads:
        thread.start()
    threads[0].join(10)
    may_end.set()
    threads[1].join(10)
    assert seen == {"first": False, "second": False}
    assert gc.isenabled()
    if hasattr(os, "fork"):
        with uncollected:
            child = os.fork()
            if child == 0:
                os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert gc.isenabled()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("kind", ["function", "partial", "object"])
def test_a_handler_of_a_signal_in_a_watched_call_is_no_part_of_it(torch, kind):
    """The function computes for some milliseconds, so that a timer falls into each of the first calls."""
    ran = []

    def note(number, frame):
        ran.append(number)

    class Base:
        def __call__(self, number, frame):
            note(number, frame)

    class Handler(Base):
        pass

    def plain(number, frame):
        note(number, frame)

    handler = {"function": plain, "partial": functools.partial(plain), "object": Handler()}[kind]

    @torch.compile
    def f(x):
        for _ in range(5000):
            x = x * 1.0001
        return x

    x = torch.ones(2000)
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(4):
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            interrupted = f(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert ran
    assert f._compiled_state.reasons == []
    for _ in range(4):
        assert torch.equal(f(x), interrupted)
    assert f._compiled_state.road == "replay"


@pytest.mark.parametrize("file", ["<string>", "<stdin>", "<ipython-input-1>", "<doctest a[0]>"])
@pytest.mark.parametrize("kind", ["partial", "metaclass"])
def test_code_without_a_file_is_watched_as_well(torch, file, kind):
    """What a function reaches through C, which the audit does not read."""
    code = """
import functools

rate, calls = 2.0, []

def scaled(x):
    calls.append(1)
    return x * rate

class Meta(type):
    def __getattr__(cls, name):
        return scaled

class Scaling(metaclass=Meta):
    pass

part = functools.partial(scaled)
functions = {"partial": lambda x: part(x) + 1, "metaclass": lambda x: Scaling.scaled(x) + 1}
"""
    names = {}
    exec(compile(code, file, "exec"), names)
    f = torch.compile(names["functions"][kind])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            assert f(torch.ones(1)).item() == 3
        names["rate"] = 5.0
        assert f(torch.ones(1)).item() == 6
    assert len(names["calls"]) == 6


def test_a_profiler_written_in_c_stays_on(torch):
    """`cProfile` cannot be put back by `sys.setprofile`, so no call is watched while it is on (before CPython 3.12)."""
    f = torch.compile(lambda x: x.exp() + 1)
    profiler = cProfile.Profile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profiler.enable()
        for _ in range(5):
            f(torch.ones(2))
        profiler.disable()
    calls = {}
    for entry in profiler.getstats():
        if hasattr(entry.code, "co_name"):
            calls[entry.code.co_name] = calls.get(entry.code.co_name, 0) + entry.callcount
    assert calls["compiled"] == 5
    for _ in range(4):
        f(torch.ones(2))
    assert f._compiled_state.road == "replay"


def test_a_warning_that_a_function_runs_eagerly_names_the_callers_line(torch):
    class Layer(torch.nn.Module):
        def forward(self, x):
            return print(end="") or x

    for f in (torch.compile(Layer()), torch.compile(lambda x: print(end="") or x)):
        with pytest.warns(UserWarning, match="runs eagerly") as told:
            for _ in range(3):
                f(torch.ones(2))
        assert [w.filename for w in told] == [__file__]


def test_a_compiled_module_has_the_length_of_its_original(torch):
    layers = [torch.compile(torch.nn.Sequential(*[torch.nn.ReLU()] * n)) for n in range(3)]
    assert [len(c) for c in layers] == [0, 1, 2]
    assert [bool(c) for c in layers] == [False, True, True]
    single = torch.compile(torch.nn.Linear(1, 1))
    assert single
    with pytest.raises(TypeError):
        len(single)
