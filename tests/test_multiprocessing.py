"""Tensors in shared memory, and sent to other processes; `spawn` and its errors."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest
from support import target

pytestmark = pytest.mark.skipif(os.name == "nt", reason="shared memory needs a Unix system")
METHODS = ("fork", "spawn", "forkserver")


@pytest.fixture
def mp(torch):
    import importlib

    module = importlib.import_module(torch.__name__ + ".multiprocessing")
    yield module
    module.set_sharing_strategy("file_descriptor")


def _import_target():
    return target.torch


def _serve(inbox, outbox, given):
    """In the child: adds one to what it was given, changes what it receives, answers with a new tensor."""
    given += 1
    received = inbox.get()
    received[0] = 42
    outbox.put((received.sum().item(), received.is_shared(), _import_target().arange(1000.0)))
    inbox.get()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_tensors_cross_in_shared_memory(torch, mp, method, strategy):
    if strategy not in mp.get_all_sharing_strategies():
        pytest.skip("the strategy exists on Linux only")
    mp.set_sharing_strategy(strategy)
    context = mp.get_context(method)
    given, sent = torch.zeros(3).share_memory_(), torch.ones(5)
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=_serve, args=(inbox, outbox, given), daemon=True)
    process.start()
    inbox.put(sent)
    total, was_shared, answer = outbox.get(timeout=60)
    assert (total, was_shared) == (46, True) and answer.tolist() == list(range(1000)) and answer.is_shared()
    assert given.tolist() == [1, 1, 1] and sent.tolist() == [42, 1, 1, 1, 1] and sent.is_shared()
    inbox.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_sharing_moves_the_memory_of_views_and_leaves(torch):
    t = torch.arange(6.0)
    row, bits = t.view(2, 3)[1], t.view(torch.int32)
    assert not t.is_shared() and not row.is_shared()
    assert row.share_memory_() is row and t.is_shared() and bits.is_shared() and t.untyped_storage().is_shared()
    t[3] = -1
    assert row.tolist() == [-1, 4, 5] and t.tolist() == [0, 1, 2, -1, 4, 5]
    address = t.data_ptr()
    assert t.share_memory_().data_ptr() == address
    module = torch.nn.Linear(2, 2)
    module(torch.ones(1, 2)).sum().backward()
    assert module.share_memory() is module and module.weight.is_shared() and module.weight.is_leaf
    torch.optim.SGD(module.parameters(), lr=0.1).step()
    assert torch.empty(0).share_memory_().is_shared()
    if torch.__name__ != "torch":  # PyTorch crashes.
        with pytest.raises(RuntimeError, match="not resizable"):
            t.resize_(100)


def test_sharing_keeps_what_saw_the_memory_before(torch):
    numpy = pytest.importorskip("numpy")
    array = numpy.ones(3, numpy.float32)
    t = torch.from_numpy(array).share_memory_()
    t[0] = 5
    assert array.tolist() == [1, 1, 1] and t.tolist() == [5, 1, 1]
    if torch.__name__ != "torch":  # PyTorch frees what its arrays show.
        t = torch.ones(3)
        seen = t.numpy()
        t.share_memory_()
        t.zero_()
        assert seen.tolist() == [1, 1, 1] and t.numpy().tolist() == [0, 0, 0]
        del t
        gc.collect()
        assert seen.tolist() == [1, 1, 1]


def test_backward_through_shared_memory(torch):
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    with torch.no_grad():
        x.share_memory_()
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]


def _train(i, weight):
    weight.data[i] += 1.0
    weight.data[i + 2 :: 2] = float(i)


def test_processes_train_one_parameter(torch, mp):
    weight = torch.nn.Parameter(torch.zeros(10)).share_memory_()
    mp.spawn(_train, args=(weight,), nprocs=2)
    assert weight.tolist() == [1, 1, 0, 1, 0, 1, 0, 1, 0, 1]


def _fail(i):
    if i == 1:
        raise ValueError("no such thing")
    time.sleep(60)


def _die(i):
    os.kill(os.getpid(), signal.SIGKILL) if i else time.sleep(60)


def _leave(i):
    sys.exit(3)


def test_errors_of_processes(torch, mp):
    start = time.monotonic()
    with pytest.raises(
        mp.ProcessRaisedException, match="(?s)-- Process 1 terminated.*ValueError: no such thing"
    ) as raised:
        mp.start_processes(_fail, nprocs=2, start_method="fork")
    assert raised.value.error_index == 1 and raised.value.pid
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with signal SIGKILL") as killed:
        mp.start_processes(_die, nprocs=2, start_method="fork")
    assert killed.value.exit_code == -9 and killed.value.signal_name == "SIGKILL"
    with pytest.raises(mp.ProcessExitedException, match="exit code 3"):
        mp.start_processes(_leave, nprocs=1, start_method="fork")
    assert time.monotonic() - start < 40, "the other process is not waited for"
    context = mp.start_processes(print, nprocs=2, join=False, start_method="fork")
    while not context.join(timeout=10):
        pass
    assert len(context.pids()) == 2 and not mp.active_children()
    again = pickle.loads(pickle.dumps(mp.ProcessExitedException("m", 1, 2, 3, "SIGKILL")))
    assert (again.error_index, again.exit_code) == (1, 3)


def test_what_cannot_cross(torch, mp):
    from multiprocessing.reduction import ForkingPickler

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(torch.ones(2, requires_grad=True) * 2)
    leaf = torch.ones(2, requires_grad=True)
    back = pickle.loads(ForkingPickler.dumps(leaf))
    back.data[0] = 3
    assert back.requires_grad and leaf.tolist() == [3, 1]
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("pigeon")
    if torch.__name__ != "torch":
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            torch.empty(2, device="meta").share_memory_()


def test_one_message_keeps_shared_memory_shared(torch, mp):
    from multiprocessing.reduction import ForkingPickler

    t = torch.arange(4)
    whole, part = pickle.loads(ForkingPickler.dumps((t, t[1:3])))
    whole[1] = -7
    assert part.tolist() == [-7, 2] and t.tolist() == [0, -7, 2, 3]


def test_plain_pickles_are_copies(torch, mp):
    t = torch.arange(4).share_memory_()
    copy = pickle.loads(pickle.dumps(t))
    copy[0] = 9
    assert t[0] == 0


def test_named_files_and_descriptors_are_freed(torch, mp):
    from multiprocessing.reduction import ForkingPickler

    if sys.platform != "linux" or torch.__name__ == "torch":
        pytest.skip("looks into /dev/shm and /proc")

    def used():
        files = [name for name in os.listdir("/dev/shm") if name.startswith(f"rustgrad-{os.getpid()}-")]
        return len(files), len(os.listdir("/proc/self/fd"))

    torch.ones(3).share_memory_()
    mp.set_sharing_strategy("file_system")
    pickle.loads(ForkingPickler.dumps(torch.ones(3)))
    gc.collect()
    before = used()
    for strategy in ("file_descriptor", "file_system"):
        mp.set_sharing_strategy(strategy)
        kept = [torch.ones(100).share_memory_() for _ in range(20)]
        assert used() != before
        if strategy == "file_system":
            kept += [pickle.loads(ForkingPickler.dumps(t)) for t in kept]
        del kept
        gc.collect()
        assert used() == before


def test_the_namespace_has_that_of_multiprocessing(torch, mp):
    import multiprocessing

    # `reducer` is a module of the standard library, not a name of ours.
    assert set(multiprocessing.__all__) - {"reducer"} <= set(dir(mp)) and mp.Queue and mp.cpu_count() >= 1
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()


FORKED = """
import rustgrad as torch
from rustgrad import multiprocessing as mp

def send(queue, received):
    queue.put(torch.ones(3))
    received.wait()

mp.set_sharing_strategy("file_system")
context = mp.get_context("fork")
queue, received = context.Queue(), context.Event()
process = context.Process(target=send, args=(queue, received))
process.start()
print(queue.get().sum().item())
received.set()
process.join()
"""


@pytest.mark.skipif(sys.platform != "linux" or target.STAND_IN, reason="the strategy exists on Linux only")
def test_files_of_a_forked_process_are_tracked_once():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")
