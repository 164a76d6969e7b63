"""What libraries do with private names of PyTorch: loaders of their own, ragged sizes, progress bars, questions to tensors."""

import importlib
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time

import pytest
import rustgrad as torch
from rustgrad.utils import data


def module(path):
    return importlib.import_module(f"rustgrad.{path}")


class Squares(data.Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        return i * i


class Counting(data.IterableDataset):
    def __iter__(self):
        return iter(range(5))


@pytest.mark.parametrize(
    ("kind", "dataset", "batched", "requests", "batches"),
    [
        (0, Squares(), True, [[0, 2], [3]], [[0, 4], [9]]),
        (0, Squares(), False, [3], [9]),
        (1, Counting(), True, [[None] * 3] * 2, [[0, 1, 2], [3, 4]]),
        (1, Counting(), False, [None] * 2, [0, 1]),
    ],
)
def test_fetchers_of_a_library(kind, dataset, batched, requests, batches):
    fetcher = data._DatasetKind.create_fetcher(kind, dataset, batched, list if batched else (lambda x: x), False)
    assert [fetcher.fetch(request) for request in requests] == batches
    if kind:
        with pytest.raises(StopIteration):
            while True:
                fetcher.fetch([None])


def test_an_iterator_of_a_library_has_the_names_of_pytorchs():
    base = module("utils.data.dataloader")._BaseDataLoaderIter

    class Iterator(base):
        def _next_data(self):
            return self._collate_fn([self._dataset[i] for i in self._next_index()])

    loader = data.DataLoader(Squares(), batch_size=3, collate_fn=list, drop_last=True)
    state = torch.get_rng_state()
    found = Iterator(loader)
    assert not torch.equal(state, torch.get_rng_state()) and isinstance(found._base_seed, int)
    assert list(found) == [[0, 1, 4], [9, 16, 25]] and found._num_yielded == 2
    found._reset(loader)
    assert found._num_yielded == 0 and next(found) == [0, 1, 4]
    settings = (found._num_workers, found._timeout, found._drop_last, found._auto_collation, found._dataset_kind)
    assert settings == (0, 0, True, True, 0) and (found._rank, found._world_size) == (0, 1)
    assert isinstance(iter(loader), base)
    with pytest.raises(AttributeError, match="'Iterator' object has no attribute '_nothing'"):
        found._nothing  # noqa: B018


def test_a_loader_of_a_library_that_sets_its_attributes_itself():
    class Loader(data.DataLoader):
        def __init__(self, dataset):
            self.dataset, self.num_workers, self.timeout = dataset, 0, 0
            self._dataset_kind = data._DatasetKind.Map
            self.sampler, self.batch_size, self.drop_last = data.SequentialSampler(dataset), 3, False
            self.batch_sampler = data.BatchSampler(self.sampler, 3, False)
            self.collate_fn, self.persistent_workers, self.generator = list, False, None
            self._DataLoader__initialized = True
            self._IterableDataset_len_called = None
            self._iterator = None
            self.check_worker_number_rationality()

        def __iter__(self):
            self._iterator = iter([list(indices) for indices in self._index_sampler])
            return self._iterator

    loader = Loader(Squares())
    assert loader._iterator is None and len(loader) == 3
    assert list(loader) == [[0, 1, 2], [3, 4, 5], [6]] and loader._iterator is not None
    with pytest.raises(ValueError, match="batch_size attribute should not be set after Loader is initialized"):
        loader.batch_size = 4
    with pytest.raises(ValueError, match="_dataset_kind: expected 0"):
        loader._dataset_kind = 1


def _as_worker(queue):
    worker = module("utils.data._utils.worker")
    before = data.get_worker_info()
    worker._worker_info = worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=None)
    queue.put((before, data.get_worker_info().id, worker.ManagerWatchdog().is_alive()))


def test_a_process_that_a_library_makes_a_worker():
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=_as_worker, args=(queue,))
    process.start()
    assert queue.get() == (None, 1, True)
    process.join()
    assert data.get_worker_info() is None


def test_numbers_of_a_worker_for_numpy():
    # Recorded from PyTorch.
    generate = module("utils.data._utils.worker")._generate_state
    assert generate(123, 0) == [4253025450, 2184329087, 1599386872, 2820677907]
    assert generate(2**40 + 5, 3) == [3453014069, 1603536151, 2410470037, 3509082754]


@pytest.mark.skipif(os.name == "nt", reason="there are no such processes")
@pytest.mark.parametrize(("code", "message"), [("sys.exit(3)", "exit code 3"), ("os.abort()", "signal: 6")])
def test_a_worker_that_died_is_an_error(code, message):
    signals = module("utils.data._utils.signal_handling")
    signals._set_worker_signal_handlers()
    signals._set_SIGCHLD_handler()
    with subprocess.Popen([sys.executable, "-c", f"import os, sys; {code}"], stderr=subprocess.DEVNULL) as process:
        signals._set_worker_pids(7, (process.pid,))
        try:
            for _ in range(200):
                try:
                    signals._error_if_any_worker_fails()
                except RuntimeError as error:
                    assert f"DataLoader worker (pid {process.pid})" in str(error) and message in str(error)
                    break
                time.sleep(0.05)
            else:
                pytest.fail("the dead worker was not seen")
        finally:
            signals._remove_worker_pids(7)
        signals._error_if_any_worker_fails()


def test_ragged_sizes_that_are_said_to_be_equal():
    ops, names = module("nested._internal.ops"), module("nested._internal.nested_tensor")
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)], layout=torch.jagged)
    parts = ops.extract_kwargs(nested)
    assert parts["offsets"] is nested.offsets() and parts["lengths"] is None and parts["_ragged_idx"] == 1
    assert {k: len(v) for k, v in parts["_metadata_cache"].items()} == {"min_seqlen": 2, "max_seqlen": 3}
    sizes = names._tensor_symint_registry
    other, apart = nested.offsets().clone(), nested.offsets().clone()
    sizes[other] = sizes[nested.offsets()]
    moved = names.NestedTensor(torch.ones(5, 3), **{**parts, "offsets": other})
    assert moved.shape == nested.shape and (moved + nested).unbind()[1].tolist() == [[2.0] * 3] * 3
    assert moved.offsets() is other
    assert names.NestedTensor(torch.ones(5, 3), **{**parts, "offsets": apart}).shape != nested.shape
    with pytest.raises(KeyError):
        sizes[torch.ones(2)]


def test_results_with_named_parts():
    pytree = module("utils._pytree")
    found = torch.ones(2, 3).max(0)
    assert pytree.is_structseq(found) and pytree.is_structseq(type(found)) and pytree.is_structseq_instance(found)
    assert not pytree.is_structseq_instance(type(found)) and not pytree.is_structseq((1, 2))
    assert (type(found).n_fields, type(found).n_sequence_fields, type(found).n_unnamed_fields) == (2, 2, 0)


def test_questions_to_tensors():
    x = torch.ones(4)
    assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of(x, x.clone())
    assert isinstance(x.untyped_storage(), torch.StorageBase) and not isinstance(x, torch.StorageBase)
    assert not isinstance(x, torch._C._distributed_rpc.PyRRef)
    native = module("_C._functorch")
    assert native is torch._C._functorch and native.get_unwrapped(x) is x and not native.is_gradtrackingtensor(x)
    seen = []
    torch.vmap(lambda t: seen.append((native.is_batchedtensor(t), native.is_batchedtensor(x))) or t)(x)
    assert seen == [(True, False)]
    functional = module("_subclasses.functional_tensor")
    assert functional.mb_unwrap_functional_tensor(x) is x and not isinstance(x, functional.FunctionalTensor)
    for refused in (functional.FunctionalTensor, functional.FunctionalTensorMode):
        with pytest.raises(NotImplementedError, match=refused.__name__):
            refused(x)
    with pytest.raises(NotImplementedError, match="HigherOrderOperator"):
        module("_ops").HigherOrderOperator("name")


def test_devices_and_threads():
    assert module("_utils")._get_device_module("cpu") is torch.cpu
    with pytest.raises(RuntimeError, match="Device 'nothing' does not have a corresponding module"):
        module("_utils")._get_device_module("nothing")
    names = module("multiprocessing")
    before = names._get_thread_name()
    names._set_thread_name("loading")
    assert names._get_thread_name() == "loading"
    names._set_thread_name(before)
    assert torch.set_vital("a", "b", "c") is None and torch.backends.fp32_precision == "none"
    comm = module("cuda.comm")
    assert comm.reduce_add([torch.ones(2), torch.ones(2)]).tolist() == [2.0, 2.0]
    with module("cuda.profiler").profile():
        pass


def test_a_progress_bar_without_tqdm():
    program = """
    import sys
    sys.modules["tqdm"] = None
    from rustgrad.hub import tqdm
    assert [i for i in tqdm(range(3), desc="rows")] == [0, 1, 2]
    with tqdm(total=10, disable=True) as bar:
        bar.update(4)
        bar.set_description("x")
        bar.set_postfix(loss=1)
    assert bar.n == 4
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert ran.stderr.split() == "rows: 1 of 3 rows: 2 of 3 rows: 3 of 3".split()


FUNCTORCH = [
    ("vmap", "torch.vmap", lambda f: f(torch.sin)(torch.ones(2))),
    ("grad", "torch.func.grad", lambda f: f(torch.sum)(torch.ones(2))),
    ("jacrev", "torch.func.jacrev", lambda f: f(torch.sin)(torch.ones(2))),
    ("make_functional", "torch.func.functional_call", lambda f: f(torch.nn.Linear(2, 2))),
    ("make_functional_with_buffers", "torch.func.functional_call", lambda f: f(torch.nn.Linear(2, 2))),
    ("combine_state_for_ensemble", "torch.func.stack_module_state", lambda f: f([torch.nn.Linear(2, 2)])),
]


@pytest.mark.parametrize(("name", "successor", "use"), FUNCTORCH)
def test_functions_of_functorch_warn(name, successor, use, recwarn):
    function = getattr(module("_functorch_names"), name)
    match = f"integrated functorch.*`functorch.{name}` is deprecated.*Please use `{successor}` instead"
    with pytest.warns(FutureWarning, match=match) as seen:
        use(function)
    assert len(seen) == 1 and seen[0].filename == __file__
    use(getattr(module("_functorch.make_functional"), name, function.__wrapped__))
    assert not recwarn.list
