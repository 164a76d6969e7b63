"""Pipes: streams and maps made of other ones, their graphs, files, data frames, and a `DataLoader` of them.

Orders of shuffled samples are PyTorch's for the same seeds.
"""

import functools
import importlib
import io
import pickle
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="where rustgrad does more, or does it right")


@pytest.fixture
def data(torch):
    for name in ("datapipes.utils.common", "datapipes.utils.decoder", "graph", "graph_settings"):
        importlib.import_module(f"{torch.__name__}.utils.data.{name}")
    return importlib.import_module(f"{torch.__name__}.utils.data")


@pytest.fixture
def steps(data):
    return data.datapipes.iter


@pytest.fixture
def ten(steps):
    return steps.IterableWrapper(range(10))


@pytest.fixture
def maps(data):
    return data.datapipes.map


def odd(x):
    return x % 2


def ten_times(x):
    return x * 10


class Numbers(target.torch.utils.data.IterDataPipe):
    """A stream without a length."""

    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        yield from range(self.count)


class Holder(target.torch.utils.data.IterDataPipe):
    """A pipe with any attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def method(self, x):
        return x


@own
def test_pipes_are_imported_on_first_use():
    code = """if True:
        import sys, rustgrad as torch
        from rustgrad.utils.data import DataLoader, TensorDataset
        list(DataLoader(TensorDataset(torch.ones(2))))
        assert not [m for m in sys.modules if "datapipes" in m or m.endswith("utils.data.graph")]
        assert list(torch.utils.data.datapipes.iter.IterableWrapper([1])) == [1]
        torch.utils.data.graph_settings.get_all_graph_pipes, torch.utils.data.IterDataPipe
    """
    subprocess.run([sys.executable, "-c", code], check=True)


# --- one iterator, lengths, names -----------------------------------------------------------------------------


def test_one_iterator_is_live(data, ten):
    doubled = ten.map(ten_times)
    first = iter(doubled)
    assert next(first) == 0 and doubled._number_of_samples_yielded == 1
    assert list(doubled) == list(range(0, 100, 10)) and doubled._number_of_samples_yielded == 10
    with pytest.raises(
        RuntimeError, match=r"iterator has been invalidated .* MapperIterDataPipe\(datapipe=Iter.*, fn=ten"
    ):
        next(first)
    with pytest.raises(RuntimeError, match="We recommend using `.fork"):
        list(zip(ten, ten, strict=False))

    class Own(data.IterDataPipe):
        def __iter__(self):
            return self

        def __next__(self):
            return next(self.left)

        def reset(self):
            self.left = iter(range(3))

    pipe = Own()
    first = iter(pipe)
    assert next(first) == 0 and list(pipe) == [0, 1, 2] and pipe._number_of_samples_yielded == 3
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)


def test_errors_name_the_pipe(data, ten):
    def fail(x):
        raise ValueError("no such file", x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = ten.map(fail).batch(2)
    with pytest.raises(ValueError, match="thrown by __iter__ of MapperIterDataPipe") as caught:
        list(pipe)
    assert caught.value.args[1] == 0 and "Batcher" not in str(caught.value)
    with pytest.raises(AttributeError, match="'IterableWrapperIterDataPipe' object has no attribute 'mapp"):
        ten.mapp  # noqa: B018


def test_lengths(data, ten):
    unknown = Numbers()
    assert (len(ten.batch(3)), len(ten.batch(3, drop_last=True)), len(ten.shuffle()), len(ten.map(odd))) == (
        4,
        3,
        10,
        10,
    )
    assert (len(ten.concat(ten)), len(ten.zip(ten.batch(3))), len(ten.mux(ten.batch(3)))) == (20, 4, 8)
    for pipe in (unknown.map(odd), unknown.batch(2), ten.concat(unknown), ten.zip(unknown), ten.mux(unknown)):
        with pytest.raises(TypeError, match="instance doesn't have valid length$"):
            len(pipe)
    for pipe in (unknown, ten.filter(odd), ten.batch(2).unbatch(), ten.groupby(odd)):
        with pytest.raises(TypeError, match="has no len"):
            len(pipe)
    assert repr(ten.batch(2)) == str(ten.batch(2)) == "BatcherIterDataPipe"
    assert "(functional name: ``batch``)" in ten.batch.__doc__ and {"map", "batch"} <= set(dir(ten))


def test_registered_forms(data, ten):
    @data.functional_datapipe("test_thrice")
    class Thrice(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for x in self.source:
                yield 3 * x

    try:
        assert list(ten.test_thrice())[:3] == [0, 3, 6]
        with pytest.raises(Exception, match="test_thrice as it is already taken"):
            data.functional_datapipe("test_thrice")(Thrice)
    finally:
        del data.IterDataPipe.functions["test_thrice"]


# --- steps over streams -----------------------------------------------------------------------------------------


def test_columns(steps):
    rows = [(0, 1), (2, 3)]
    pipe = steps.IterableWrapper(rows)
    assert list(pipe.map(ten_times, 1)) == [(0, 10), (2, 30)]
    assert list(pipe.map(ten_times, 1, -1)) == [(0, 1, 10), (2, 3, 30)]
    assert list(pipe.map(max, [1, 0])) == [(1,), (3,)] and rows == [(0, 1), (2, 3)]
    named = steps.IterableWrapper([{"a": 1, "b": 2}])
    assert list(named.map(ten_times, "a", "c")) == [{"a": 1, "b": 2, "c": 10}]
    assert list(pipe.filter(functools.partial(isinstance_of, int), input_col=0)) == rows
    for fn, columns in ((ten_times, [0, 1]), (isinstance_of, 0), (keyword_only, 0)):
        with pytest.raises(ValueError, match="The function .* takes"):
            pipe.map(fn, columns)
    with pytest.raises(ValueError, match="`output_col` must be None"):
        pipe.map(ten_times, None, 1)
    with pytest.raises(TypeError, match="A callable function is expected"):
        pipe.map(3)
    with pytest.raises(ValueError, match="Boolean output is required"):
        list(pipe.filter(max))


def isinstance_of(kind, value):
    return isinstance(value, kind)


def keyword_only(x, *, y):
    return x


def test_batches_and_groups(data, ten, steps):
    assert list(ten.batch(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert type(next(iter(ten.batch(4)))) is data.DataChunk and list(ten.batch(4).unbatch()) == list(range(10))
    assert list(ten.batch(2).batch(2).unbatch(-1)) == list(range(10))
    with pytest.raises(IndexError, match="unbatch_level 2 exceeds the depth"):
        list(ten.batch(2).unbatch(2))
    assert list(ten.groupby(odd, group_size=3, buffer_size=6)) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    with pytest.raises(RuntimeError, match="Failed to group items"):
        list(ten.groupby(odd, group_size=3, buffer_size=3))
    chunk = data.DataChunk([1, 2])
    assert chunk.as_str("> ") == "> [1, 2]" and pickle.loads(pickle.dumps(chunk)) == [1, 2]


@own
def test_a_group_of_a_full_buffer_has_its_own_key(steps):
    """PyTorch pairs it with the key of the last sample."""
    assert list(steps.IterableWrapper([1, 3, 5, 0]).groupby(odd, buffer_size=4, keep_key=True)) == [
        (1, [1, 3, 5]),
        (0, [0]),
    ]


def test_several_streams_of_one(ten):
    a, b = ten.fork(2, buffer_size=3)
    assert list(zip(a, b, strict=True)) == [(i, i) for i in range(10)] and len(a) == 10
    with pytest.raises(BufferError, match="ForkerIterDataPipe buffer overflow"):
        list(a)
    a, b = ten.demux(2, odd)
    assert list(b) == [1, 3, 5, 7, 9] and list(a) == [0, 2, 4, 6, 8]
    with pytest.raises(BufferError, match="Demultiplexer"):
        list(ten.demux(2, odd, buffer_size=2)[0])
    with pytest.raises(ValueError, match="should be between 0 and 0. 1 is returned"):
        list(ten.demux(1, odd)[0])
    for wrong in (lambda: ten.fork(0), lambda: ten.demux(0, odd), lambda: ten.fork(2, copy="some")):
        with pytest.raises(ValueError):
            wrong()
    lists = ten.batch(1, wrapper_class=list)
    assert all(x == y and x is not y for x, y in zip(*lists.fork(2, copy="shallow"), strict=True))


def test_children_begin_again_together(ten):
    a, b = ten.fork(2)
    first, other = iter(a), iter(b)
    assert next(first) == next(other) == 0
    with pytest.warns(UserWarning, match="Some child DataPipes are not exhausted"):
        again = iter(a)
    for stale in (first, other):
        with pytest.raises(RuntimeError, match=r"one of the ChildDataPipes of _ForkerIterDataPipe\(buffer_size=1000"):
            next(stale)
    # Closing iterators of the former round ends nothing of this one.
    del first, other
    assert list(again) == list(b) == list(range(10))


def test_shuffling(torch, ten, steps):
    torch.manual_seed(0)
    assert list(ten.shuffle()) == [3, 5, 0, 1, 9, 6, 2, 7, 4, 8]
    assert list(ten.shuffle(buffer_size=3)) == [0, 3, 1, 5, 6, 7, 8, 4, 2, 9]
    assert list(ten.shuffle().set_seed(4)) == [3, 5, 1, 8, 6, 7, 2, 0, 4, 9]
    assert list(ten.shuffle().set_shuffle(False)) == list(range(10)) and sorted(
        ten.batch(2).shuffle(unbatch_level=1)
    ) == list(ten)
    assert list(steps.Sampler(ten)) == list(range(10))
    with pytest.raises(AssertionError):
        ten.shuffle(buffer_size=0)


def test_sources_are_copied(steps):
    source = [[1], [2]]
    for copies, left in ((True, [1]), (False, [1, 0])):
        list(steps.IterableWrapper(source, deepcopy=copies).map(grow))
        assert source[0] == left
    with pytest.warns(UserWarning, match="can not be deepcopied"):
        assert list(steps.IterableWrapper(x for x in "ab")) == ["a", "b"]


def grow(x):
    x.append(0)
    return x


def test_maps(torch, maps):
    ten = maps.SequenceWrapper(range(10))
    assert list(ten.map(ten_times).batch(4)) == [[0, 10, 20, 30], [40, 50, 60, 70], [80, 90]]
    assert ten.concat(ten)[15] == 5 and ten.zip(ten.map(odd))[3] == (3, 1) and len(ten.zip(ten.batch(2))) == 5
    for pipe in (ten.batch(4, drop_last=True), ten.zip(ten), ten.concat(ten)):
        with pytest.raises(IndexError, match="out of"):
            pipe[30]
    torch.manual_seed(0)
    six = maps.SequenceWrapper(range(6))
    assert list(six.shuffle().set_seed(3)) == [0, 2, 3, 5, 4, 1] and len(six.shuffle()) == 6
    assert sorted(maps.SequenceWrapper({"a": 1, "b": 2}).shuffle(indices=["a", "b"])) == [1, 2]
    with pytest.raises(AttributeError, match="object has no attribute 'filter"):
        ten.filter  # noqa: B018


# --- files ------------------------------------------------------------------------------------------------------


def test_files(steps, tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("a.txt", "c.json", "b/d.txt"):
        (tmp_path / name).write_text("[1, 2]")
    listed = steps.FileLister(str(tmp_path), ["*.txt", "*.json"])
    assert [path.rsplit("/", 1)[1] for path in listed] == ["a.txt", "c.json"]
    assert len(list(steps.FileLister(str(tmp_path), "*.txt", recursive=True))) == 2
    assert [text for _, text in listed.open_files().read_from_stream(chunk=4)] == ["[1, ", "2]"] * 2
    (path, stream), *_ = listed.open_files("b")
    inner = stream.file_obj
    assert path.endswith("a.txt") and stream.read() == b"[1, 2]" and not inner.closed
    del stream, _
    assert inner.closed
    with pytest.warns(FutureWarning):
        decoded = dict(steps.RoutedDecoder(listed.open_files("b")))
    assert [*decoded.values()] == ["[1, 2]", [1, 2]]
    with pytest.raises(ValueError, match="Invalid mode"):
        listed.open_files("w")


def test_streams_close_with_their_children(data):
    common = data.datapipes.utils.common
    parent = common.StreamWrapper(io.BytesIO(b"p"), name="parent")
    child = common.StreamWrapper(io.BytesIO(b"c"), parent_stream=parent)
    parent.autoclose()
    assert not parent.closed and list(child) == [b"c"]
    common.StreamWrapper.close_streams({"key": [child]})
    assert child.closed and parent.closed and repr(parent).startswith("StreamWrapper<parent,<_io.BytesIO")


def test_decoders(data):
    decoder = data.datapipes.utils.decoder
    assert [decoder.basichandlers(*a) for a in (("txt", b"x"), ("cls", b"3"), ("json", b"{}"), ("png", b""))] == [
        "x",
        3,
        {},
        None,
    ]
    assert decoder.handle_extension("tar.gz zip", len)("x.tar.gz", b"12") == 2
    assert decoder.Decoder(decoder.basichandlers)([("a.json", b"1"), ("_key", b"k"), ("b.bin", b"z")]) == {
        "a.json": 1, "_key": "k", "b.bin": b"z",
    }  # fmt: skip
    with pytest.raises(AssertionError, match="unknown image specification"):
        decoder.imagehandler("cmyk")


# --- copies, graphs, snapshots ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Some child DataPipes")
def test_copies_begin_at_the_start(data, ten):
    pipe = ten.shuffle(buffer_size=3).map(ten_times).batch(2)
    next(iter(pipe))
    assert sorted(pickle.loads(pickle.dumps(pipe)).unbatch()) == list(range(0, 100, 10))
    a, _ = ten.fork(2)
    next(iter(a))
    assert list(pickle.loads(pickle.dumps(a))) == list(range(10))
    if importlib.util.find_spec("dill") is None:
        with pytest.warns(UserWarning, match="^Local function is not supported by pickle"):
            ten.map(lambda x: x)
    data.IterDataPipe.set_reduce_ex_hook(lambda pipe: (int, (3,)))
    try:
        assert pickle.loads(pickle.dumps(ten)) == 3
        with pytest.raises(RuntimeError, match="override existing reduce_ex_hook"):
            data.IterDataPipe.set_reduce_ex_hook(len)
    finally:
        data.IterDataPipe.set_reduce_ex_hook(None)


def test_graphs(data, ten):
    def below(pipe):
        return [p for p, _ in data.graph.traverse_dps(pipe)[id(pipe)][1].values()]

    a, b = ten.fork(2)
    both = a.map(odd).zip(b)
    pipes = data.graph_settings.get_all_graph_pipes(data.graph.traverse_dps(both))
    assert [type(p).__name__ for p in pipes] == [
        "ZipperIterDataPipe", "MapperIterDataPipe", "_ChildDataPipe", "_ForkerIterDataPipe", "IterableWrapperIterDataPipe", "_ChildDataPipe",
    ]  # fmt: skip
    assert below(Holder(x=[{"k": (ten,)}], y=ten)) == [ten]
    assert (
        below(Holder(x=[types.SimpleNamespace(inner=ten)])) == [ten]
        and below(Holder(x=functools.partial(odd, ten))) == []
    )
    circular = Holder()
    circular.inner = ten.map(circular.method)
    assert below(circular) == [circular.inner]
    with pytest.warns(FutureWarning, match="`traverse` function is deprecated"):
        graph = data.graph.traverse(circular.inner, only_datapipe=False)
    assert id(circular) in graph[id(circular.inner)][1]
    with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`"):
        data.graph.traverse_dps(3)


def test_settings_of_graphs(torch, data, ten, steps):
    settings = data.graph_settings
    pipe = ten.shuffle().map(abs).shuffle()
    settings.apply_random_seed(pipe, torch.Generator().manual_seed(3))
    assert list(pipe) == [5, 4, 8, 0, 3, 7, 1, 6, 2, 9]
    assert list(settings.apply_shuffle_settings(pipe, False)) == list(range(10))
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        assert type(settings.apply_shuffle_settings(ten, True)) is steps.Shuffler
    a, b = ten.fork(2)
    both = a.sharding_filter().zip(b.sharding_filter())
    assert list(settings.apply_sharding(both, 3, 1)) == [(1, 1), (4, 4), (7, 7)] and len(both) == 3
    with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline"):
        settings.apply_sharding(ten.sharding_filter().map(odd).sharding_filter(), 2, 0)


def test_groups_of_instances(ten, steps):
    groups = steps.sharding.SHARDING_PRIORITIES
    pipe = ten.sharding_filter()
    pipe.apply_sharding(2, 1, sharding_group=groups.DISTRIBUTED)
    pipe.apply_sharding(3, 2, sharding_group=groups.MULTIPROCESSING)
    assert list(pipe) == [5] and (pipe.num_of_instances, pipe.instance_id) == (6, 5)
    with pytest.raises(RuntimeError, match="cannot mix DEFAULT and non DEFAULT"):
        pipe.apply_sharding(2, 0)
    with pytest.raises(ValueError, match="should be smaller"):
        ten.sharding_filter().apply_sharding(2, 2)


def test_snapshots(torch, data, ten):
    restore = importlib.import_module(
        f"{torch.__name__}.utils.data.datapipes.utils.snapshot"
    )._simple_graph_snapshot_restoration
    pipe = ten.shuffle().map(ten_times)
    expected = list(data.graph_settings.apply_random_seed(pipe, torch.Generator().manual_seed(0)))
    restore(pipe, 4, torch.Generator().manual_seed(0))
    with pytest.raises(RuntimeError, match="Snapshot restoration cannot be applied"):
        restore(pipe, 1)
    assert list(pipe) == expected[4:] and pipe._number_of_samples_yielded == 10
    with pytest.raises(RuntimeError, match="exceeds the number of samples"):
        restore(pipe, 11)


# --- checks ---------------------------------------------------------------------------------------------------------


def test_determinism(data):
    @data.non_deterministic
    class Draws(data.IterDataPipe):
        pass

    maybe = data.non_deterministic(lambda shuffles: shuffles)(Numbers)
    with data.guaranteed_datapipes_determinism():
        assert list(maybe(False)) == []
        for make in (Draws, lambda: maybe(True)):
            with pytest.raises(TypeError, match="is non-deterministic"):
                make()
    assert Draws() is not None
    with pytest.raises(TypeError, match="required to return a boolean"):
        maybe(3)
    for wrong in (3, dict):
        with pytest.raises(TypeError, match="decorated"):
            data.non_deterministic(wrong)


@own
def test_types_of_samples(data, ten):
    """PyTorch's checks of types are out of order: its classes of pipes keep no types."""

    class Pairs(data.IterDataPipe[tuple[int, str]]):
        def __init__(self, source):
            self.source = source

        @data.runtime_validation
        def __iter__(self) -> Iterator[tuple[int, str]]:
            yield from self.source

    class Firsts(data.IterDataPipe[int]):
        @data.argument_validation
        def __init__(self, pairs: data.IterDataPipe[tuple[int, str]], count: int = 1):
            self.pairs = pairs

    assert Firsts(Pairs([])) is not None and Firsts(ten) is not None
    with pytest.raises(TypeError, match="Expected argument 'pairs' as an IterDataPipe"):
        Firsts([])
    with pytest.raises(TypeError, match="Expected type of argument 'pairs' as a subtype"):
        Firsts(Firsts(Pairs([])))
    assert list(Pairs([(1, "a")])) == [(1, "a")]
    for wrong in ([1], [(1, 2)], [(True, "a")]):
        with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
            list(Pairs(wrong))
        with data.runtime_validation_disabled():
            assert list(Pairs(wrong)) == wrong
    with pytest.raises(TypeError, match="Can not decorate function odd"):
        data.runtime_validation(odd)


# --- loading --------------------------------------------------------------------------------------------------------


def loaded(loader):
    """Batches as lists, samples as numbers."""
    return [x if isinstance(x, int) else x.tolist() for x in loader]


def test_loading_here(torch, data, ten, maps):
    pipe = ten.shuffle().sharding_filter().map(abs)
    torch.manual_seed(5)
    shuffled = data.DataLoader(pipe, shuffle=True, batch_size=5)
    assert len(shuffled) == 2 and loaded(shuffled) == [[1, 5, 2, 6, 4], [9, 0, 7, 8, 3]]
    assert loaded(data.DataLoader(pipe, shuffle=False, batch_size=5)) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        assert sorted(loaded(data.DataLoader(ten, shuffle=True, batch_size=None))) == list(range(10))
    with pytest.raises(ValueError, match="expected unspecified sampler"):
        data.DataLoader(pipe, sampler=[1])
    torch.manual_seed(0)
    batches = data.DataLoader(maps.SequenceWrapper(range(6)).batch(2), shuffle=True, batch_size=None)
    assert sorted(map(str, batches)) == ["[0, 1]", "[2, 3]", "[4, 5]"]
    with pytest.raises(TypeError, match="valid length"):
        len(data.DataLoader(ten.filter(odd)))


def test_workers_divide_one_order(torch, data, ten):
    pipe = ten.shuffle().sharding_filter().map(abs)
    generator = torch.Generator().manual_seed(3)
    options = {"num_workers": 2, "shuffle": True, "multiprocessing_context": "fork"}
    batches = loaded(data.DataLoader(pipe, batch_size=3, generator=generator, **options))
    assert batches == [[1, 9, 0], [2, 7, 8], [6, 3], [5, 4]]
    loader = data.DataLoader(pipe, batch_size=None, persistent_workers=True, **options)
    torch.manual_seed(9)
    try:
        assert [loaded(loader) for _ in range(2)] == [[8, 4, 5, 6, 7, 9, 0, 3, 2, 1], [0, 7, 3, 4, 1, 2, 8, 9, 5, 6]]
    finally:
        loader._iterator._shutdown_workers()


@own
def test_threads_have_graphs_of_their_own(torch, data, ten):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = ten.shuffle().sharding_filter().map(lambda x: x + 1)
    seen = []
    loader = data.DataLoader(
        pipe,
        num_workers=2,
        shuffle=True,
        multiprocessing_context="thread",
        batch_size=None,
        worker_init_fn=lambda i: seen.append(data.get_worker_info().dataset),
    )
    assert sorted(loaded(loader)) == list(range(1, 11)) and seen[0] is not seen[1]


# --- data frames ------------------------------------------------------------------------------------------------------


class Frame:
    """Columns by name: all that pipes need of a data frame."""

    def __init__(self, columns):
        self.columns = columns

    def __getitem__(self, key):
        return Frame({k: v[key] for k, v in self.columns.items()}) if isinstance(key, slice) else self.columns[key]

    def __setitem__(self, key, column):
        self.columns[key] = column

    def __getattr__(self, name):
        if name == "columns":
            raise AttributeError(name)
        return self.columns[name]


@pytest.fixture
def frames(torch, data):
    wrapper = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.dataframe.dataframe_wrapper")

    class Frames:
        @staticmethod
        def create_dataframe(rows, columns):
            return Frame(dict(zip(columns, torch.tensor(rows).unbind(1), strict=True)))

        is_dataframe = staticmethod(lambda data: isinstance(data, Frame))
        is_column = staticmethod(lambda data: isinstance(data, torch.Tensor))
        get_columns = staticmethod(lambda frame: list(frame.columns))
        get_len = staticmethod(lambda frame: len(next(iter(frame.columns.values()))))
        get_item = staticmethod(lambda frame, i: frame[i : i + 1])

        @staticmethod
        def concat(frames):
            return Frame({k: torch.cat([f.columns[k] for f in frames]) for k in frames[0].columns})

        @staticmethod
        def iterate(data):
            if isinstance(data, torch.Tensor):
                return iter(data.tolist())
            return zip(*(c.tolist() for c in data.columns.values()), strict=True)

    before = wrapper.get_df_wrapper()
    wrapper.set_df_wrapper(Frames)
    yield (lambda count: Numbers(count).map(with_remainder)._to_dataframes_pipe(columns=["i", "j"], dataframe_size=7))
    wrapper.set_df_wrapper(before)


def with_remainder(i):
    return i, i % 3


@own
def test_data_frames(frames):
    """PyTorch asks pandas itself where it could ask the wrapper."""
    numbers = frames(10)
    numbers["k"] = numbers["j"] + numbers.i * 3
    assert list(numbers) == [(i, i % 3, i % 3 + 3 * i) for i in range(10)]
    assert list(frames(10).filter(lambda frame: frame.i > 5)) == [(6, 0), (7, 1), (8, 2), (9, 0)]
    shuffled = list(frames(100).shuffle())
    assert sorted(shuffled) == [with_remainder(i) for i in range(100)] != shuffled
    assert list(frames(20).batch(8))[-1].__len__() == 4
    assert list(frames(20).batch(8).batch(3).unbatch(2)) == [with_remainder(i) for i in range(20)]
    sums = list(frames(6).batch(3).collate({"j": max, "i": sum}))
    assert [(int(row.i), int(row.j)) for row in sums] == [(3, 2), (12, 2)]
