"""Several processes that communicate: the programs of `distributed_programs.py`, their launcher, stores, and what fails."""

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="the protocol between the processes is rustgrad's own")
PROGRAMS = str(Path(__file__).parent / "distributed_programs.py")


def launch(count, *arguments, options=("--standalone",), check=True, **kwargs):
    command = [sys.executable, "-m", "rustgrad.distributed.run", *options, f"--nproc_per_node={count}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, **kwargs)
    assert not check or done.returncode == 0, done.stderr
    return done


def module(name):
    return importlib.import_module(f"rustgrad.distributed{name and '.' + name}")


def spawned(tmp_path, body, check=True):
    """Runs a program that spawns processes, each of which calls `run(rank)`."""
    head = "import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp\n"
    tail = "\nif __name__ == '__main__':\n    mp.spawn(run, args=sys.argv[1:], nprocs=2)\n"
    (tmp_path / "program.py").write_text(head + textwrap.dedent(body) + tail)
    command = [sys.executable, "-m", "rustgrad", str(tmp_path / "program.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    "count, programs",
    [(2, "reductions,messages,training,reducing"), (3, "reductions,movements,messages,groups,gradients,training")],
)
def test_collectives_and_training(count, programs):
    done = launch(count, PROGRAMS, programs)
    assert sorted(done.stdout.splitlines()) == [f"rank {i} of {count} is done" for i in range(count)]


def test_a_process_that_fails():
    messages = {
        "ends": "all_reduce: Connection closed by peer: rank 1",
        "message": "Connection closed by peer: rank 1",
        "other": "rank 1 takes part in broadcast of float32",
        "late": "Timed out waiting 1500ms for ranks [1]",
        "barrier": "Rank 1 failed to pass monitoredBarrier in 500 ms",
    }
    with ThreadPoolExecutor(3) as pool:
        for kind, done in zip(messages, pool.map(lambda kind: launch(2, PROGRAMS, "failures", kind), messages)):
            assert messages[kind] in done.stdout, (kind, done.stdout, done.stderr)


def test_processes_that_are_spawned(tmp_path):
    """The methods by which processes find each other; a launcher's variables are not there."""
    done = spawned(
        tmp_path,
        """
        from datetime import timedelta
        def run(rank, folder):
            for method in (f"file://{folder}/file", "tcp", "store"):
                store = None
                if method != f"file://{folder}/file":
                    if rank == 0:
                        store = dist.TCPStore("localhost", 0, None, True)
                        with open(f"{folder}/{method}-", "w") as file:
                            file.write(str(store.port))
                        os.rename(f"{folder}/{method}-", f"{folder}/{method}")
                    while not os.path.exists(f"{folder}/{method}"):
                        pass
                    port = int(open(f"{folder}/{method}").read())
                    store = store or dist.TCPStore("localhost", port)
                    if method == "tcp":
                        os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"
                        kept, store, method = store, None, f"tcp://localhost:{port}"
                    else:
                        method = None
                for _ in range(2):  # a store serves one group after another
                    dist.init_process_group("gloo", init_method=method, store=store, rank=rank, world_size=2)
                    pair = dist.new_group([0, 1])
                    x = torch.ones(1)
                    dist.all_reduce(x, group=pair)
                    assert x.item() == 2 and torch.__version__.startswith("2.")
                    dist.barrier()
                    dist.destroy_process_group()
            os.write(1, b"done\\n")
            if rank == 0:
                import time
                time.sleep(0.5)
        """,
    )
    assert done.stdout.split() == ["done", "done"]


def test_an_error_of_one_process_ends_all(tmp_path):
    body = """
    def run(rank, folder):
        dist.init_process_group("gloo", init_method=f"file://{folder}/file", rank=rank, world_size=2)
        if rank == 1:
            raise ValueError("boom")
        dist.all_reduce(torch.ones(3))
    """
    done = spawned(tmp_path, body, check=False)
    assert done.returncode == 1 and ("boom" in done.stderr or "rank 1 has ended" in done.stderr)


def test_the_launcher(tmp_path):
    (tmp_path / "work.py").write_text(
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "assert dist.is_torchelastic_launched() and int(os.environ['LOCAL_RANK']) == dist.get_rank()\n"
        "if '--fail' in sys.argv and dist.get_rank() == 1 and attempt == '0': sys.exit(3)\n"
        "dist.barrier()\n"
        "os.write(1, f'{dist.get_rank()} {dist.get_world_size()} {attempt} {sys.argv[1:]}\\n'.encode())\n"
    )
    run = lambda *arguments, **kwargs: launch(2, *arguments, cwd=tmp_path, **kwargs)
    assert sorted(run("work.py", "--a").stdout.splitlines()) == [f"{i} 2 0 ['--a']" for i in range(2)]
    assert run("-m", "work", options=("--standalone", "--max_restarts=1")).stdout.count("2 0") == 2
    done = run("work.py", "--fail", check=False)
    assert done.returncode == 1 and "rank 1, local_rank 1" in done.stderr and "exit code 3" in done.stderr
    done = run("work.py", "--fail", options=("--standalone", "--max-restarts=1"))
    assert sorted(done.stdout.splitlines()) == [f"{i} 2 1 ['--fail']" for i in range(2)]
    run("work.py", options=("--standalone", "--redirects=3", f"--log-dir={tmp_path}/logs", "--rdzv-id=job"))
    assert (tmp_path / "logs/job/attempt_0/1/stdout.log").read_text() == "1 2 0 []\n"
    command = [sys.executable, "-m", "rustgrad", "-m", "torch.distributed.launch", "--standalone", "work.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.stdout == "0 1 0 ['--local-rank=0']\n", done.stderr
    with pytest.raises(SystemExit):
        module("run").main(["--tee=3", "work.py"])


def test_two_agents(tmp_path):
    """Two machines, in so far as one can play them: agents that meet at an endpoint."""
    (tmp_path / "work.py").write_text(
        "import os, torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "x = torch.ones(1)\n"
        "dist.all_reduce(x)\n"
        "os.write(1, f'{dist.get_rank()} {os.environ[\"GROUP_RANK\"]} {x.item()}\\n'.encode())\n"
    )
    with module("tcp_store").socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rustgrad.distributed.run", "--nnodes=2", "--nproc_per_node=1"]
    endpoint = ["--rdzv_backend=c10d", f"--rdzv_endpoint=localhost:{port}", "work.py"]
    agents = [
        subprocess.Popen([*command, *endpoint], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [agent.communicate(timeout=100) for agent in agents]
    assert sorted(out for out, _ in told) == ["0 0 2.0\n", "1 1 2.0\n"], told


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interrupt_ends_all(tmp_path):
    (tmp_path / "work.py").write_text(
        "import os, time, torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "os.write(1, f'{os.getpid()}\\n'.encode())\n"
        "dist.recv(torch.ones(1))\n"
    )
    command = [sys.executable, "-m", "rustgrad.distributed.run", "--standalone", "--nproc_per_node=2", "work.py"]
    agent = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    pids = [int(agent.stdout.readline()) for _ in range(2)]
    agent.send_signal(signal.SIGINT)
    agent.communicate(timeout=60)
    assert agent.returncode == 130
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def stores(tmp_path):
    dist = module("")
    tcp = dist.TCPStore("localhost", 0, 1, True)
    yield "tcp", tcp, 1
    yield "hash", dist.HashStore(), 0
    yield "file", dist.FileStore(str(tmp_path / "store"), 1), 1
    yield "prefix", dist.PrefixStore("p", tcp), 1


def test_stores(tmp_path):
    dist = module("")
    for name, store, own in stores(tmp_path):
        before = store.num_keys()
        assert before >= own and (store.add("n", 1), store.add("n", 5)) == (1, 6), name
        store.set("a", "text")
        store.set("b", b"\0\xff")
        assert (store.get("a"), store.get("b"), store.get("n")) == (b"text", b"\0\xff", b"6")
        assert store.num_keys() == before + 3 and store.check(["a", "b"]) and not store.check(["a", "c"])
        assert store.compare_set("c", "old", "new") == b"old" and store.compare_set("c", "", "new") == b"new"
        assert store.compare_set("c", "other", "newer") == b"new" and store.compare_set("c", "new", "newer") == b"newer"
        store.append("d", "po")
        store.append("d", "tato")
        store.multi_set(["e", "f"], ["1", "2"])
        assert store.multi_get(["d", "e", "f"]) == [b"potato", b"1", b"2"] and store.has_extended_api()
        assert store.delete_key("d") and not store.delete_key("d")
        with pytest.raises(dist.DistStoreError, match="wait timeout after 100ms, keys:.*missing"):
            store.wait(["a", "missing"], timedelta(seconds=0.1))
        store.set_timeout(timedelta(seconds=0.1))
        with pytest.raises(RuntimeError, match="timeout"):
            store.get("missing")
    assert not issubclass(dist.DistStoreError, ValueError)


def test_a_store_for_several():
    dist = module("")
    server = dist.TCPStore("localhost", 0, 3, True, wait_for_workers=False)
    clients = [dist.TCPStore("localhost", server.port, 3, timeout=timedelta(seconds=20)) for _ in range(2)]
    got = []
    waits = [threading.Thread(target=lambda c=client: got.append(c.get("late"))) for client in clients]
    for wait in waits:
        wait.start()
    time.sleep(0.05)
    server.set("late", "here")
    for wait in waits:
        wait.join(20)
    assert got == [b"here"] * 2
    with pytest.raises(RuntimeError, match=f"failed to listen on any local network address. port: {server.port}"):
        dist.TCPStore("localhost", server.port, 1, True)
    with pytest.raises(RuntimeError, match="invalid literal"):
        clients[0].add("late", 1)
    stranger = module("tcp_store").socket.create_connection(("localhost", server.port))
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
    assert clients[0].get("late") == b"here"
    stranger.close()
    port = server.port
    del server
    with pytest.raises(dist.DistNetworkError, match="does not answer"):
        clients[0].get("late")
    with pytest.raises(dist.DistNetworkError, match="timed out after 200ms while trying to connect"):
        dist.TCPStore("localhost", port, timeout=timedelta(seconds=0.2))
    with pytest.raises(dist.DistStoreError, match="Timed out after 0 seconds waiting for clients. 1/2 clients joined"):
        dist.TCPStore("localhost", 0, 2, True, timeout=timedelta(seconds=0.2))
    with pytest.raises(ValueError, match="world size cannot be 0"):
        dist.TCPStore("localhost", 0, 0)


def test_imports_are_light():
    code = "import sys, rustgrad.nn; print([m for m in sys.modules if m.startswith('rustgrad.distributed')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout == "[]\n", done.stderr


def test_errors_of_groups(torch, monkeypatch):
    dist = module("")
    for kwargs, error, message in (
        ({"backend": "mpi"}, RuntimeError, "doesn't have MPI built in"),
        ({"backend": "foo"}, AssertionError, "Unknown backend type foo"),
        (
            {"init_method": "xyz://localhost:1", "rank": 0, "world_size": 2},
            RuntimeError,
            "No rendezvous handler for xyz",
        ),
        ({"init_method": "tcp://localhost:1"}, ValueError, "rank parameter missing"),
        ({"rank": 0, "world_size": 2}, ValueError, "environment variable MASTER_ADDR expected, but not set"),
    ):
        monkeypatch.delenv("MASTER_ADDR", raising=False)
        with pytest.raises(error, match=message):
            dist.init_process_group(**kwargs)
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        x = torch.ones(2)
        for call, error, message in (
            (lambda: dist.all_reduce(x, dist.ReduceOp.BAND), RuntimeError, "BAND with non-integral dtype"),
            (lambda: dist.all_reduce(x, dist.ReduceOp.PREMUL_SUM), RuntimeError, "PREMUL_SUM"),
            (lambda: dist.all_reduce(x + 0j, dist.ReduceOp.MAX), ValueError, "MAX on complex tensors"),
            (lambda: dist.all_reduce([x]), TypeError, "Expected parameter `tensor` of type torch.Tensor"),
            (lambda: dist.all_gather([x.double()], x), ValueError, "different dtypes"),
            (lambda: dist.gather(x), ValueError, "must be specified on destination rank"),
            (lambda: dist.send(x, 0), ValueError, "should not be the same as the rank"),
            (lambda: dist.broadcast(x), ValueError, "Must specify src or group_src"),
            (lambda: dist.batch_isend_irecv([]), ValueError, "must not be empty"),
            (lambda: dist.new_group([0, 5]), ValueError, "within the world_size"),
        ):
            with pytest.raises(error, match=message):
                call()
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        model(x).sum().backward()
        assert model.module.weight.grad.tolist() == [[1, 1]] and model.reducer is None
        with pytest.raises(RuntimeError, match="doesn't have any parameter that requires a gradient"):
            torch.nn.parallel.DistributedDataParallel(torch.nn.ReLU())
    finally:
        dist.destroy_process_group()
