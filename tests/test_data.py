"""Data sets, samplers, collation, and the loader with and without workers."""

import os
import signal
import subprocess
import sys
import time
import warnings
from collections import namedtuple

import pytest


class Squares:
    """A plain map-style data set."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return i * i


@pytest.fixture
def data(torch):
    import importlib

    return importlib.import_module(torch.__name__ + ".utils.data")


def test_tensor_dataset(torch, data):
    x, y = torch.arange(10.0).reshape(5, 2), torch.arange(5)
    dataset = data.TensorDataset(x, y)
    assert len(dataset) == 5 and [t.tolist() for t in dataset[2]] == [[4, 5], 2]
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(x, y[:3])
    batches = list(data.DataLoader(dataset, batch_size=2))
    assert [tuple(b[0].shape) for b in batches] == [(2, 2), (2, 2), (1, 2)]
    assert batches[1][1].tolist() == [2, 3] and isinstance(batches[0], list)


def test_loader_on_a_device(torch, data, device):
    x = torch.arange(6.0).to(device)
    (first, *_) = data.DataLoader(data.TensorDataset(x), batch_size=4)
    assert first[0].device == x.device and first[0].tolist() == [0, 1, 2, 3]


def test_combinations(torch, data):
    both = data.ConcatDataset([Squares(3), Squares(2)])
    assert len(both) == 5 and [both[i] for i in range(-2, 3)] == [0, 1, 0, 1, 4]
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-6]
    assert [data.Subset(Squares(5), [4, 1])[i] for i in range(2)] == [16, 1]
    assert data.StackDataset(a=Squares(3), b=Squares(3))[2] == {"a": 4, "b": 4}
    with pytest.raises(NotImplementedError):
        data.Dataset()[0]
    assert isinstance(data.Subset(Squares(3), [0]) + data.Subset(Squares(3), [1]), data.ConcatDataset)


def test_random_split(torch, data):
    parts = data.random_split(Squares(10), [7, 3], generator=torch.Generator().manual_seed(1))
    assert sorted(i for p in parts for i in p.indices) == list(range(10)) and [len(p) for p in parts] == [7, 3]
    again = data.random_split(Squares(10), [7, 3], generator=torch.Generator().manual_seed(1))
    assert [p.indices for p in parts] == [p.indices for p in again]
    assert [len(p) for p in data.random_split(Squares(10), [0.5, 0.26, 0.24])] == [6, 2, 2]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(Squares(10), [7, 4])


def test_samplers(torch, data):
    dataset = Squares(7)
    assert list(data.SequentialSampler(dataset)) == list(range(7))
    assert sorted(data.RandomSampler(dataset)) == list(range(7))
    assert len(list(data.RandomSampler(dataset, replacement=True, num_samples=20))) == 20
    assert len(list(data.RandomSampler(dataset, num_samples=10))) == 10
    assert sorted(data.SubsetRandomSampler([3, 5, 1])) == [1, 3, 5]
    assert list(data.BatchSampler(range(5), 2, drop_last=False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, True)) == 2
    with pytest.raises(ValueError, match="num_samples should be a positive integer"):
        data.RandomSampler(dataset, num_samples=0)
    with pytest.raises(TypeError, match="replacement should be a boolean"):
        data.RandomSampler(dataset, replacement=1)
    with pytest.raises(ValueError, match="batch_size should be a positive integer"):
        data.BatchSampler(range(5), 0, False)


def test_shuffling_follows_the_seed(torch, data):
    def order(seed):
        torch.manual_seed(seed)
        return [i for batch in data.DataLoader(Squares(20), batch_size=3, shuffle=True) for i in batch.tolist()]

    assert order(1) == order(1) and order(1) != order(2) and sorted(order(1)) == [i * i for i in range(20)]
    loader = data.DataLoader(Squares(20), shuffle=True, generator=torch.Generator().manual_seed(3))
    assert [b.item() for b in loader] != [b.item() for b in loader]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_is_an_iterator_that_knows_its_length(torch, data, workers):
    batches = iter(data.DataLoader(range(10), batch_size=4, num_workers=workers))
    assert len(batches) == 3 and next(batches).tolist() == [0, 1, 2, 3] and iter(batches) is batches
    assert [b.tolist() for b in batches] == [[4, 5, 6, 7], [8, 9]]
    with pytest.raises(StopIteration):
        next(batches)


def test_loader_lengths(torch, data):
    assert len(data.DataLoader(Squares(10), batch_size=3)) == 4
    assert len(data.DataLoader(Squares(10), batch_size=3, drop_last=True)) == 3
    assert len(data.DataLoader(Squares(10), batch_size=None)) == 10
    assert [b.tolist() for b in data.DataLoader(Squares(4), batch_sampler=[[3, 0], [1]])] == [[9, 0], [1]]
    assert list(data.DataLoader(Squares(3), batch_size=None)) == [0, 1, 4]


Point = namedtuple("Point", "x y")


def test_collate(torch, data):
    collate = data.default_collate
    assert collate([1, 2]).dtype == torch.int64 and collate([1.5, 2.0]).dtype == torch.float64
    assert collate([True, False]).dtype == torch.bool
    assert collate(["a", "b"]) == ["a", "b"] and collate([("a", 1), ("b", 2)])[0] == ("a", "b")
    assert collate([torch.ones(2), torch.zeros(2)]).shape == (2, 2)
    made = collate([{"a": 1, "b": (2.0, "x")}, {"a": 3, "b": (4.0, "y")}])
    assert made["a"].tolist() == [1, 3] and made["b"][0].tolist() == [2, 4] and list(made["b"][1]) == ["x", "y"]
    point = collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point) and point.y.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="equal size"):
        collate([[1, 2], [3]])
    with pytest.raises(TypeError, match="must contain tensors, numpy arrays, numbers, dicts or lists; found"):
        collate([object()])


def test_collate_numpy(torch, data):
    numpy = pytest.importorskip("numpy")
    batch = data.default_collate([numpy.ones(3, numpy.float32), numpy.zeros(3, numpy.float32)])
    assert batch.shape == (2, 3) and batch.dtype == torch.float32
    assert data.default_collate([numpy.float64(1), numpy.float64(2)]).tolist() == [1, 2]
    assert data.default_convert({"a": numpy.arange(2)})["a"].tolist() == [0, 1]


def test_collate_fn(torch, data):
    loader = data.DataLoader(Squares(4), batch_size=2, collate_fn=sum)
    assert list(loader) == [1, 13]


def stream(data, n):
    class Stream(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            start, step = (info.id, info.num_workers) if info else (0, 1)
            return iter(range(start, n, step))

    return Stream()


def test_iterable(torch, data):
    loader = data.DataLoader(stream(data, 5), batch_size=2)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in data.DataLoader(stream(data, 5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(data.ChainDataset([stream(data, 2), stream(data, 3)])) == [0, 1, 0, 1, 2]
    with pytest.raises(TypeError, match="abstract"):
        data.IterableDataset()
    with pytest.raises(ValueError, match="expected unspecified shuffle option, but got shuffle=True"):
        data.DataLoader(stream(data, 5), shuffle=True)
    with pytest.raises(ValueError, match="expected unspecified sampler option"):
        data.DataLoader(stream(data, 5), sampler=[0])


OWN = ("thread",)  # contexts that PyTorch does not have


@pytest.fixture(params=[None, "spawn", "thread"])
def context(torch, request):
    if torch.__name__ == "torch" and request.param in OWN:
        pytest.skip("threads are rustgrad's own")
    return request.param


def test_workers_keep_the_order(torch, data, context):
    plain = [b.tolist() for b in data.DataLoader(Squares(23), batch_size=4)]
    for kept in (False, True):
        loader = data.DataLoader(
            Squares(23), batch_size=4, num_workers=2, persistent_workers=kept, multiprocessing_context=context
        )
        assert [b.tolist() for b in loader] == plain
        next(iter(loader))
        assert [b.tolist() for b in loader] == plain
    assert data.get_worker_info() is None


def test_iterable_data_sets_in_workers(torch, data):
    for context in (None, *OWN) if torch.__name__ != "torch" else (None,):
        loader = data.DataLoader(stream(data, 11), batch_size=2, num_workers=2, multiprocessing_context=context)
        for _ in range(2):
            assert [b.tolist() for b in loader] == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    kept = data.DataLoader(stream(data, 3), num_workers=2, persistent_workers=True)
    assert [[b.item() for b in kept] for _ in range(2)] == [[0, 1, 2]] * 2


def test_kept_workers_take_their_seeds_once(torch, data):
    class Drawing(Squares):
        def __getitem__(self, i):
            return torch.randint(0, 2**40, ()).item()

    def seeded(dataset, context):
        torch.manual_seed(5)
        return data.DataLoader(dataset, num_workers=1, persistent_workers=True, multiprocessing_context=context)

    torch.manual_seed(5)
    seed = torch.empty((), dtype=torch.int64).random_().item()
    after = torch.rand(1)
    for context in ("fork", *OWN) if torch.__name__ != "torch" else ("fork",):
        loader = seeded(Squares(3), context)
        assert [[int(b) for b in loader] for _ in range(2)] == [[0, 1, 4]] * 2
        assert torch.equal(torch.rand(1), after)
    loader = seeded(Drawing(3), "fork")
    drawn = [int(b) for _ in range(2) for b in loader]
    torch.manual_seed(seed)
    assert drawn == [torch.randint(0, 2**40, ()).item() for _ in range(6)]


def _marked(number):
    os.environ["MARK"] = str(number)


def test_workers_are_processes_with_seeds_of_their_own(torch, data):
    class Marked(Squares):
        def __getitem__(self, i):
            import random

            info = data.get_worker_info()
            return (
                info.id,
                info.num_workers,
                os.getpid(),
                torch.initial_seed() - info.seed,
                random.random(),
                os.environ["MARK"],
            )

    def rows(generator=None):
        loader = data.DataLoader(Marked(4), batch_size=None, num_workers=2, worker_init_fn=_marked, generator=generator)
        return list(loader)

    torch.manual_seed(3)
    first = rows()
    assert [r[0] for r in first] == [0, 1, 0, 1] and {r[1] for r in first} == {2} and {r[3] for r in first} == {0}
    assert len({r[2] for r in first} | {os.getpid()}) == 3 and len({r[4] for r in first}) == 4
    assert [r[5] for r in first] == ["0", "1", "0", "1"] and "MARK" not in os.environ
    torch.manual_seed(3)
    assert [r[4] for r in rows()] == [r[4] for r in first]
    assert [r[4] for r in rows()] != [r[4] for r in first]
    a, b = (rows(torch.Generator().manual_seed(1)) for _ in range(2))
    assert [r[4] for r in a] == [r[4] for r in b]


def test_batches_arrive_in_shared_memory(torch, data):
    class Images(Squares):
        def __getitem__(self, i):
            return {"x": torch.full((100, 100), float(i)), "label": i, "name": "n" * 20_000}

    batches = list(data.DataLoader(Images(6), batch_size=4, num_workers=2))
    assert [b["x"][:, 0, 0].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5]] and batches[0]["x"].is_shared()
    assert batches[0]["label"].tolist() == [0, 1, 2, 3] and batches[1]["name"] == ["n" * 20_000] * 2
    batches[0]["x"].add_(1)
    assert batches[0]["x"][0, 0, 0] == 1
    rows = torch.arange(200_000.0).reshape(100, 2000)
    loaded = list(data.DataLoader(data.TensorDataset(rows), batch_size=None, num_workers=2))
    assert len(loaded) == 100 and all(torch.equal(r[0], rows[i]) for i, r in enumerate(loaded))
    assert loaded[3][0].untyped_storage().nbytes() < rows.untyped_storage().nbytes() or torch.__name__ == "torch"


class Broken(Squares):
    def __init__(self, n, how):
        super().__init__(n)
        self.how = how

    def __getitem__(self, i):
        if i == 5:
            self.how()
        return i


def _no_sample():
    raise KeyError("no such sample")


class Strange(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def _strange():
    raise Strange(1, 2)


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_errors_in_workers_reach_the_caller(torch, data):
    for workers in (0, 2):
        with pytest.raises(KeyError, match="no such sample"):
            list(data.DataLoader(Broken(8, _no_sample), num_workers=workers))
    with pytest.raises(
        KeyError, match="(?s)Caught KeyError in DataLoader worker process 0.*Original Traceback.*_no_sample"
    ):
        list(data.DataLoader(Broken(8, _no_sample), batch_size=2, num_workers=2))
    with pytest.raises(RuntimeError, match="Caught Strange in DataLoader worker process"):
        list(data.DataLoader(Broken(8, _strange), num_workers=2))
    batches, seen = iter(data.DataLoader(Broken(10, _no_sample), batch_size=2, num_workers=2)), []
    while True:
        try:
            seen.append(next(batches).tolist())
        except KeyError:
            seen.append("error")
        except StopIteration:
            break
    assert seen == [[0, 1], [2, 3], "error", [6, 7], [8, 9]]
    with pytest.raises(TypeError, match="worker process 0"):
        list(data.DataLoader(Squares(4), num_workers=1, worker_init_fn=lambda: None))


def test_a_result_that_cannot_be_sent_is_an_error(torch, data):
    if torch.__name__ == "torch":
        pytest.skip("PyTorch waits forever")
    with pytest.raises(Exception, match="(?s)Caught .* in DataLoader worker process 0.*pickle"):
        list(data.DataLoader(Squares(2), num_workers=1, collate_fn=lambda batch: lambda: batch))
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        list(data.DataLoader(Squares(2), num_workers=1, collate_fn=lambda batch: w * 2))


def test_a_killed_worker_is_an_error(torch, data):
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid.* \d+\) .*killed by signal: Killed"):
        list(data.DataLoader(Broken(8, _die), num_workers=2))
    assert time.monotonic() - start < 20
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(data.DataLoader(Broken(8, lambda: os._exit(1)), num_workers=2))


def test_a_slow_worker_times_out(torch, data):
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        list(data.DataLoader(Broken(8, lambda: time.sleep(60)), num_workers=2, timeout=0.5))


def test_workers_end_with_their_loader(torch, data):
    import gc
    import multiprocessing

    gc.collect()
    assert not multiprocessing.active_children()
    for _ in data.DataLoader(Squares(100), num_workers=2):
        break
    loader = data.DataLoader(Squares(4), num_workers=2, persistent_workers=True)
    list(loader)
    workers = multiprocessing.active_children()
    list(loader)
    assert len(workers) == 2 and set(multiprocessing.active_children()) == set(workers)
    del loader
    gc.collect()
    assert not multiprocessing.active_children()


def test_workers_end_with_a_killed_program(torch, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import importlib, os, signal
data = importlib.import_module("{torch.__name__}.utils.data")
batches = iter(data.DataLoader(range(10**6), num_workers=2))
next(batches)
import multiprocessing
print(*(p.pid for p in multiprocessing.active_children()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    pids = [int(p) for p in done.stdout.split()]
    assert len(pids) == 2 and done.returncode == -signal.SIGKILL
    end = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{p}") for p in pids) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(os.path.exists(f"/proc/{p}") for p in pids)


def test_batches_as_they_are_ready(torch, data):
    def sleepy(batch):
        time.sleep(1.0 if batch[0] == 0 else 0.0)
        return batch[0]

    order = list(data.DataLoader(range(4), num_workers=2, collate_fn=sleepy, in_order=False))
    assert sorted(order) == [0, 1, 2, 3] and order[0] != 0


def test_contexts(torch, data):
    import multiprocessing

    loader = data.DataLoader(Squares(4), num_workers=1, multiprocessing_context=multiprocessing.get_context("fork"))
    assert loader.multiprocessing_context.get_start_method() == "fork" and len(list(loader)) == 4
    with pytest.raises(ValueError, match="multi-process loading"):
        data.DataLoader(Squares(4), multiprocessing_context="fork")
    with pytest.raises(ValueError, match="valid start method"):
        data.DataLoader(Squares(4), num_workers=1, multiprocessing_context="teleport")
    with pytest.raises(TypeError, match="valid context object"):
        data.DataLoader(Squares(4), num_workers=1, multiprocessing_context=3)


def test_distributed_sampler(torch, data):
    parts = [list(data.DistributedSampler(range(10), 3, rank, shuffle=False)) for rank in range(3)]
    assert parts == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    dropped = [list(data.DistributedSampler(range(10), 3, rank, shuffle=False, drop_last=True)) for rank in range(3)]
    assert dropped == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    samplers = [data.DistributedSampler(range(10), 2, rank, seed=5) for rank in range(2)]
    first = [list(s) for s in samplers]
    assert sorted(sum(first, [])) == list(range(10)) and [list(s) for s in samplers] == first
    for s in samplers:
        s.set_epoch(1)
    assert [list(s) for s in samplers] != first and len(samplers[0]) == 5
    assert list(data.DistributedSampler(range(1), 3, 2, shuffle=False)) == [0]
    with pytest.raises(ValueError, match=r"Invalid rank 3, rank should be in the interval \[0, 2\]"):
        data.DistributedSampler(range(3), 3, 3)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        data.DistributedSampler(range(3))


BAD = [
    ({"num_workers": -1}, "num_workers option should be non-negative"),
    ({"timeout": -1}, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
    ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
    ({"shuffle": True, "sampler": [0]}, "sampler option is mutually exclusive with shuffle"),
    ({"batch_size": 2, "batch_sampler": [[0]]}, "batch_sampler option is mutually exclusive"),
    ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
    ({"batch_size": 0}, "batch_size should be a positive integer value"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda v: str(v)[:40])
def test_bad_options(torch, data, options, message):
    with pytest.raises(ValueError, match=message):
        data.DataLoader(Squares(4), **options)


def test_options_are_fixed(torch, data):
    loader = data.DataLoader(Squares(4))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3


def test_strings_of_numpy_are_strings(torch, data):
    numpy = pytest.importorskip("numpy")
    names = numpy.array(["a", "b", "c"])
    assert data.default_collate(list(names)) == ["a", "b", "c"] and data.default_collate(names) is names
    batch = data.default_collate([(1, names[0]), (2, names[1])])
    assert batch[0].tolist() == [1, 2] and batch[1] == ("a", "b")
    for bad in (numpy.array([[["a", "b"]]]), numpy.array([object(), object()])):
        with pytest.raises(TypeError):
            data.default_collate(bad)


def test_stacked_data_sets_ask_for_many_at_once(torch, data):
    class Many(Squares):
        def __getitems__(self, indices):
            asked.append(list(indices))
            return [self[i] for i in indices][:limit]

    asked, limit = [], None
    pairs = data.StackDataset(Many(6), Squares(6))
    assert pairs.__getitems__([1, 3]) == [(1, 1), (9, 9)] and asked == [[1, 3]]
    named = data.StackDataset(a=Many(6), b=Squares(6))
    assert named.__getitems__([2]) == [{"a": 4, "b": 4}]
    batch = next(iter(data.DataLoader(pairs, batch_size=3)))
    assert batch[0].tolist() == batch[1].tolist() == [0, 1, 4] and asked[-1] == [0, 1, 2]
    with pytest.raises(IndexError):
        pairs.__getitems__([0, 6])
    limit = 1
    with pytest.raises(ValueError, match="Expected 2, got 1"):
        pairs.__getitems__([0, 1])


def test_what_programs_read_of_a_loader(torch, data):
    loader = data.DataLoader(Squares(4), batch_size=2, num_workers=2)
    batches = iter(loader)
    assert loader._auto_collation and loader._index_sampler is loader.batch_sampler
    assert len({worker.pid for worker in batches._workers}) == 2
    list(batches)
    assert len(batches._workers) == 2
    single = data.DataLoader(Squares(4), batch_size=None)
    assert not single._auto_collation and single._index_sampler is single.sampler
    with pytest.warns(UserWarning, match="excessive worker creation"):
        data.DataLoader(Squares(4), num_workers=100000)


def test_a_length_that_is_exceeded(torch, data):
    """As in PyTorch: once the length of an iterable data set was asked for, more batches than that are warned of."""

    class Longer(data.IterableDataset):
        def __iter__(self):
            return iter(range(4))

        def __len__(self):
            return 2

    loader = data.DataLoader(Longer(), batch_size=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(loader) == [0, 1, 2, 3]
        assert len(loader) == 2
        batches = iter(loader)
        assert [next(batches), next(batches)] == [0, 1] and batches._num_yielded == 2
    with pytest.warns(UserWarning, match=r"reported to be 2\(when accessing len\(dataloader\)\), but 3 samples"):
        assert next(batches) == 2


class _EndsEarly:
    def __len__(self):
        return 7

    def __getitem__(self, index):
        return next(iter([])) if index == 3 else index


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_that_raises_stop_iteration_ends_the_pass(torch, workers):
    loader = torch.utils.data.DataLoader(_EndsEarly(), batch_size=2, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[0, 1]]


def test_arrays_without_dimensions_are_collated(torch):
    numpy = pytest.importorskip("numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = torch.utils.data.default_collate([numpy.array(1), numpy.array(2)])
    assert made.tolist() == [1, 2] and made.dtype == torch.int64
