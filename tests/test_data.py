"""Data sets, samplers, collation, and the loader with and without workers."""

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


def test_workers_keep_the_order(torch, data):
    if torch.__name__ == "torch":
        pytest.skip("PyTorch's workers are processes")
    plain = [b.tolist() for b in data.DataLoader(Squares(23), batch_size=4)]
    for kept in (False, True):
        loader = data.DataLoader(Squares(23), batch_size=4, num_workers=3, persistent_workers=kept)
        assert [b.tolist() for b in loader] == plain
        next(iter(loader))
        assert [b.tolist() for b in loader] == plain
    values = [v for b in data.DataLoader(stream(data, 10), batch_size=2, num_workers=2) for v in b.tolist()]
    assert sorted(values) == list(range(10))
    seen = []
    list(data.DataLoader(Squares(4), num_workers=2, worker_init_fn=seen.append))
    assert sorted(seen) == [0, 1] and data.get_worker_info() is None


def test_errors_in_workers_reach_the_caller(torch, data):
    class Broken(Squares):
        def __getitem__(self, i):
            raise KeyError("no such sample")

    for workers in (0,) if torch.__name__ == "torch" else (0, 2):
        with pytest.raises(KeyError, match="no such sample"):
            list(data.DataLoader(Broken(3), num_workers=workers))


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
