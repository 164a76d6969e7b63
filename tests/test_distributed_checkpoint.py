"""`distributed.checkpoint`: checkpoints in a directory, in PyTorch's format, by one process and by several; what fails leaves none."""

import importlib
import io
import os
import pickle
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
from support import target

GOLDEN = Path(__file__).parent / "golden" / "distributed_checkpoint"
pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
own = pytest.mark.skipif(target.STAND_IN, reason="of rustgrad's own")


def module(torch, name=""):
    return importlib.import_module(f"{torch.__name__}.distributed.checkpoint{name and '.' + name}")


@pytest.fixture
def dcp(torch):
    return module(torch)


def state(torch, fill=True):
    def of(tensor):
        return tensor if fill else tensor.new_zeros(tensor.shape)

    return {
        "model": {"w": of(torch.arange(6.0).reshape(2, 3)), "p": torch.nn.Parameter(of(torch.ones(2)))},
        "view": of(torch.arange(10)[2:5]),
        "transposed": of(torch.arange(6.0).reshape(2, 3)).t(),
        "mixed": [
            1 if fill else 0,
            of(torch.ones(2, dtype=torch.bfloat16)),
            {"lr": 0.1 if fill else 0, 3: of(torch.ones(1))},
        ],
        "plain": [1, [2, 3]] if fill else [],
        "tuple": (1, torch.ones(1)) if fill else (),
        "step": 3 if fill else 0,
        "nothing": {},
    }


def flat(value):
    if isinstance(value, dict):
        return {k: flat(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [flat(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def test_saved_and_loaded(torch, dcp, tmp_path):
    metadata = dcp.save(state(torch), checkpoint_id=tmp_path / "a")
    assert sorted(os.listdir(tmp_path / "a")) == [".metadata", "__0_0.distcp"]
    names = "mixed.0 mixed.1 mixed.2.3 mixed.2.lr model.p model.w plain step transposed tuple view".split()
    assert sorted(metadata.state_dict_metadata) == names
    assert metadata.planner_data["mixed.2.lr"] == ("mixed", 2, "lr") and metadata.version == "1.0.0"
    found = state(torch, False)
    weight, param = found["model"]["w"], found["model"]["p"]
    dcp.load(found, checkpoint_id=str(tmp_path / "a"))
    assert flat(found) == flat(state(torch))
    assert found["model"]["w"] is weight and found["model"]["p"] is param and param.requires_grad
    info = {i.fqn: s for i, s in metadata.storage_data.items()}
    assert info["view"].relative_path == "__0_0.distcp" and info["view"].length < 2000


def test_parts_and_other_types(torch, dcp, tmp_path):
    dcp.save(state(torch), checkpoint_id=tmp_path)
    found = {"model": {"w": torch.zeros(2, 3, dtype=torch.float64)}, "view": torch.zeros(6, dtype=torch.int64)[::2]}
    dcp.load(found, checkpoint_id=tmp_path)
    assert flat(found) == {"model": {"w": [[0, 1, 2], [3, 4, 5]]}, "view": [2, 3, 4]}
    partial = {"view": torch.zeros(3, dtype=torch.int64), "more": torch.ones(1)}
    dcp.load(partial, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert flat(partial) == {"view": [2, 3, 4], "more": [1]}
    whole = module(torch, "state_dict_loader")._load_state_dict_from_keys(checkpoint_id=tmp_path)
    assert flat(whole["model"]) == flat(state(torch)["model"]) and whole["mixed"][0] == 1
    part = module(torch, "state_dict_loader")._load_state_dict_from_keys("model", checkpoint_id=tmp_path)
    assert list(part) == ["model"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda t: {"more": t.zeros(1)}, "RuntimeError: Missing key in checkpoint state_dict: more."),
        (
            lambda t: {"view": t.zeros(4)},
            r"ValueError: Size mismatch between saved .*\[3\].* and current: .*\[4\].* for view",
        ),
        (
            lambda t: {"view": 1},
            "ValueError: Invalid checkpoint metadata for view, expected BytesStorageMetadata but found",
        ),
    ],
)
def test_what_is_not_loaded(torch, dcp, tmp_path, change, text):
    dcp.save(state(torch), checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match=text) as caught:
        dcp.load({"model": {"w": torch.zeros(2, 3)}, **change(torch)}, checkpoint_id=tmp_path)
    assert list(caught.value.failures) == [0] and "(RANK 0)" in str(caught.value)
    assert not isinstance(caught.value, Exception)


def test_no_checkpoint(torch, dcp, tmp_path):
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})
    with pytest.raises(dcp.CheckpointException, match="metadata is None; global metadata read failed"):
        dcp.load({"a": torch.zeros(1)}, checkpoint_id=tmp_path)
    for data in (b"garbage", b""):
        (tmp_path / ".metadata").write_bytes(data)
        with pytest.raises(dcp.CheckpointException, match="metadata is None"):
            dcp.load({"a": torch.zeros(1)}, checkpoint_id=tmp_path)


class Unpicklable:
    def __reduce__(self):
        raise ValueError("cannot pickle")


def test_a_save_that_fails_leaves_no_checkpoint(torch, dcp, tmp_path):
    with pytest.raises(dcp.CheckpointException, match="ValueError: cannot pickle"):
        dcp.save({"a": torch.ones(2), "b": Unpicklable()}, checkpoint_id=tmp_path)
    assert ".metadata" not in os.listdir(tmp_path)
    with pytest.raises(dcp.CheckpointException, match="duplicated flatten key a.b"):
        dcp.save({"a.b": 1, "a": {"b": 2}}, checkpoint_id=tmp_path)


@own
def test_a_save_that_fails_over_another_checkpoint(torch, dcp, tmp_path, monkeypatch):
    """The files of the old one are written over, so its metadata goes first; and none is ever half written."""
    dcp.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    with (
        pytest.warns(UserWarning, match="overwriting since self.overwrite=True"),
        pytest.raises(dcp.CheckpointException),
    ):
        dcp.save({"a": torch.ones(2), "b": Unpicklable()}, checkpoint_id=tmp_path)
    assert ".metadata" not in os.listdir(tmp_path)
    monkeypatch.setattr(dcp.filesystem._pickles, "dump", lambda found, file: file.write(b"half") and 1 / 0)
    with pytest.raises(dcp.CheckpointException, match="ZeroDivisionError"):
        dcp.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    assert os.listdir(tmp_path) == ["__0_0.distcp"]


def test_overwriting(torch, dcp, tmp_path):
    dcp.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists and self.overwrite=False"):
        dcp.save({"a": torch.zeros(2)}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    found = {"a": torch.zeros(2)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert flat(found) == {"a": [1, 1]}


def test_damaged_files(torch, dcp, tmp_path):
    dcp.save({"a": torch.ones(200)}, checkpoint_id=tmp_path)
    file = tmp_path / "__0_0.distcp"
    file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(dcp.CheckpointException, match="RANK 0"):
        dcp.load({"a": torch.zeros(200)}, checkpoint_id=tmp_path)
    file.unlink()
    with pytest.raises(dcp.CheckpointException, match="FileNotFoundError"):
        dcp.load({"a": torch.zeros(200)}, checkpoint_id=tmp_path)


@own
def test_metadata_makes_nothing_else(torch, dcp, tmp_path):
    class Attack:
        def __reduce__(self):
            return os.system, ("true",)

    for value, text in ((Attack(), "names posix.system|names nt.system"), ({"a": 1}, "expected Metadata, got dict")):
        (tmp_path / ".metadata").write_bytes(pickle.dumps(value))
        with pytest.raises(pickle.UnpicklingError, match=text):
            dcp.FileSystemReader(tmp_path).read_metadata()
    metadata = dcp.save({"a": torch.ones(1)}, checkpoint_id=tmp_path / "b")
    for info in metadata.storage_data.values():
        info.relative_path = "../outside"
    file = io.BytesIO()
    module(torch, "_pickles").dump(metadata, file)
    (tmp_path / "b" / ".metadata").write_bytes(file.getvalue())
    with pytest.raises(dcp.CheckpointException, match="expected a file of the directory"):
        dcp.load({"a": torch.ones(1)}, checkpoint_id=tmp_path / "b")
    assert b"rustgrad" not in file.getvalue() and b"torch.distributed.checkpoint.metadata" in file.getvalue()


@pytest.mark.parametrize("kind", ["threads", "each"])
def test_several_files(torch, dcp, tmp_path, kind):
    values = {str(i): torch.arange(i + 1.0) for i in range(6)} | {"n": 1}
    options = {"thread_count": 2} if kind == "threads" else {"single_file_per_rank": False}
    dcp.save(values, storage_writer=dcp.FileSystemWriter(tmp_path, **options))
    assert len(list(tmp_path.glob("__0_*.distcp"))) == (2 if kind == "threads" else 7)
    found = {k: torch.zeros_like(v) if k != "n" else 0 for k, v in values.items()}
    dcp.load(found, storage_reader=dcp.FileSystemReader(tmp_path))
    assert flat(found) == flat(values)


class Counter:
    def __init__(self, torch):
        self.x, self.n = torch.zeros(2), 0

    def state_dict(self):
        return {"x": self.x, "n": self.n}

    def load_state_dict(self, given):
        self.x, self.n = given["x"], given["n"]


def test_objects_with_states(torch, dcp, tmp_path):
    a, b = Counter(torch), Counter(torch)
    a.x, a.n = torch.tensor([1.0, 2.0]), 7
    assert isinstance(a, dcp.stateful.Stateful) and not isinstance(3, dcp.stateful.Stateful)
    model, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    dcp.save({"c": a, "model": model}, checkpoint_id=tmp_path)
    dcp.load({"c": b, "model": other}, checkpoint_id=tmp_path)
    assert b.x.tolist() == [1, 2] and b.n == 7 and torch.equal(model.weight, other.weight)


def test_in_the_background(torch, dcp, tmp_path):
    value = torch.arange(3.0)
    done = dcp.async_save({"a": value, "n": [1]}, checkpoint_id=tmp_path / "a")
    value.zero_()  # the copy is what is written
    assert type(done.result()).__name__ == "Metadata"
    found = {"a": torch.zeros(3)}
    dcp.load(found, checkpoint_id=tmp_path / "a")
    assert flat(found) == {"a": [0, 1, 2]}
    failing = dcp.async_save({"b": lambda: 0}, checkpoint_id=tmp_path / "b") if target.STAND_IN is False else None
    if failing is not None:
        with pytest.raises(dcp.CheckpointException):
            failing.result()
        stager = dcp.staging.DefaultStager()
        both = dcp.async_save({"a": torch.ones(2)}, checkpoint_id=tmp_path / "c", async_stager=stager)
        assert both.staging_completion.result()["a"].tolist() == [1, 1] and both.upload_completion.result()
        stager.close()


def test_training_goes_on(torch, dcp, tmp_path):
    """A fresh optimizer has states to load into; another order of its groups does not matter."""
    states = module(torch, "state_dict")

    def make(order):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        return model, torch.optim.AdamW([{"params": model[i].parameters(), "lr": 0.1 * (i + 1)} for i in order])

    def step(model, optimizer):
        model(torch.ones(3, 2)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    model, optimizer = make((0, 1))
    step(model, optimizer)
    own, optim = states.get_state_dict(model, optimizer)
    dcp.save({"model": own, "optim": optim}, checkpoint_id=tmp_path)
    other, fresh = make((1, 0))
    before = [p.detach().clone() for p in other.parameters()]
    own, optim = states.get_state_dict(other, fresh)
    assert all(torch.equal(p, b) and p.grad is None for p, b in zip(other.parameters(), before, strict=True))
    assert [g["lr"] for g in fresh.param_groups] == [0.2, 0.1]
    found = {"model": own, "optim": optim}
    dcp.load(found, checkpoint_id=tmp_path)
    states.set_state_dict(other, fresh, model_state_dict=found["model"], optim_state_dict=found["optim"])
    step(model, optimizer)
    step(other, fresh)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_flat_states_of_optimizers(torch):
    states = module(torch, "state_dict")
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    options = states.StateDictOptions(flatten_optimizer_state_dict=True)
    flat_state = states.get_optimizer_state_dict(model, optimizer, options=options)
    assert flat_state["state.weight.step"].item() == 1 and flat_state["param_groups.bias.lr"] == 0.5
    flat_state["state.weight.exp_avg"] = torch.ones(1, 2)
    flat_state["param_groups.weight.lr"] = 0.25
    other = torch.optim.Adam(model.parameters(), lr=1.0)
    states.set_optimizer_state_dict(model, other, flat_state, options=options)
    assert other.state_dict()["state"][0]["exp_avg"].tolist() == [[1, 1]] and other.param_groups[0]["lr"] == 0.25
    nested = states.get_optimizer_state_dict(model, optimizer)
    del nested["state"]["weight"]
    with pytest.raises(RuntimeError, match="Missing optimizer state for parameter 'weight'"):
        states.set_optimizer_state_dict(model, other, nested)
    with pytest.raises(KeyError):
        states.get_optimizer_state_dict(model, torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), 0.1))
    assert sorted(states.get_model_state_dict(torch.nn.DataParallel(model))) == ["module.bias", "module.weight"]


def test_one_file_and_back(torch, dcp, tmp_path):
    convert = module(torch, "format_utils")
    dcp.save(state(torch), checkpoint_id=tmp_path / "a")
    convert.dcp_to_torch_save(tmp_path / "a", tmp_path / "a.pt")
    loaded = torch.load(tmp_path / "a.pt", weights_only=False)
    assert flat(loaded["model"]) == flat(state(torch)["model"]) and loaded["plain"] == [1, [2, 3]]
    program = [sys.executable, "-m", f"{torch.__name__}.distributed.checkpoint.format_utils"]
    subprocess.run([*program, "torch_to_dcp", tmp_path / "a.pt", tmp_path / "b"], check=True, capture_output=True)
    found = {"model": state(torch, False)["model"], "step": 0}
    dcp.load(found, checkpoint_id=tmp_path / "b")
    assert flat(found) == flat({"model": state(torch)["model"], "step": 3})
    reader, planner = convert.BroadcastingTorchSaveReader(tmp_path / "a.pt"), convert.DynamicMetaLoadPlanner()
    found = {"model": {"w": torch.zeros(2, 3)}}
    dcp.load(found, storage_reader=reader, planner=planner, no_dist=True) if not target.STAND_IN else None
    assert target.STAND_IN or flat(found) == {"model": {"w": [[0, 1, 2], [3, 4, 5]]}}


def test_a_checkpoint_of_pytorch(torch, dcp):
    """Of two processes, written by PyTorch 2.15: `golden/record_distributed_checkpoint.py`."""
    found = {
        "model": {"weight": torch.zeros(2, 3), "half": torch.zeros(2, dtype=torch.bfloat16)},
        "large": torch.zeros(40, dtype=torch.int16),
        "transposed": torch.zeros(3, 2, dtype=torch.float64),
        "list": [torch.tensor(0), {"name": "", "size": None}],
        "of_rank_0": torch.zeros(2, dtype=torch.int64),
        "of_rank_1": torch.zeros(2, dtype=torch.int64),
        "step": 0,
    }
    dcp.load(found, checkpoint_id=GOLDEN)
    assert flat(found) == {
        "model": {"weight": [[0, 1, 2], [3, 4, 5]], "half": [1.5, -2]},
        "large": list(range(40)),
        "transposed": [[0, 3], [1, 4], [2, 5]],
        "list": [3, {"name": "a", "size": [2, 3]}],
        "of_rank_0": [0, 0],
        "of_rank_1": [1, 1],
        "step": 7,
    }
    metadata = dcp.FileSystemReader(GOLDEN).read_metadata()
    weight = metadata.state_dict_metadata["model.weight"]
    assert weight.size == torch.Size([2, 3]) and weight.properties.dtype is torch.float32
    assert weight.properties.strides == (3, 1) and weight.properties.layout is torch.strided
    files = {info.relative_path for info in metadata.storage_data.values()}
    assert (
        files == {"__0_0.distcp", "__1_0.distcp"}
        and str(metadata.storage_meta.checkpoint_id) == "distributed_checkpoint"
    )
    file = io.BytesIO()
    if not target.STAND_IN:
        module(torch, "_pickles").dump(metadata, file)
        assert module(torch, "_pickles").load(io.BytesIO(file.getvalue())) == metadata


def test_pieces_of_tensors(torch, dcp, tmp_path):
    """A tensor that was saved in pieces, as PyTorch's sharded ones are, is loaded whole, and into other pieces."""
    meta, planner = dcp.metadata, dcp.planner

    class Halves(dcp.DefaultSavePlanner):
        def create_local_plan(self):
            whole = self.state_dict["x"]
            self.state_dict = {"x": whole}
            items = []
            for start in (0, 2):
                chunk = meta.ChunkStorageMetadata(torch.Size([start, 0]), torch.Size([2, 3]))
                properties = meta.TensorProperties.create_from_tensor(whole)
                data = planner.TensorWriteData(chunk, properties, whole.size())
                items.append(
                    planner.WriteItem(
                        meta.MetadataIndex("x", chunk.offsets), planner.WriteItemType.SHARD, tensor_data=data
                    )
                )
            return dcp.SavePlan(items, planner_data=self.mappings)

        def lookup_object(self, index):
            return self.state_dict["x"][index.offset[0] : index.offset[0] + 2]

    x = torch.arange(12.0).reshape(4, 3)
    made = dcp.save({"x": x}, checkpoint_id=tmp_path, planner=Halves())
    assert len(made.state_dict_metadata["x"].chunks) == 2
    found = {"x": torch.zeros(4, 3)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert torch.equal(found["x"], x)
    piece = meta.ChunkStorageMetadata(torch.Size([1, 1]), torch.Size([2, 2]))
    items = dcp.planner_helpers.create_read_items_for_chunk_list("x", made.state_dict_metadata["x"], [piece])
    assert [(list(i.storage_offsets), list(i.dest_offsets), list(i.lengths)) for i in items] == [
        ([1, 1], [0, 0], [1, 2]),
        ([0, 1], [1, 0], [1, 2]),
    ]


def test_work_is_shared(torch, dcp):
    meta, planner = dcp.metadata, dcp.planner

    def plan(**sizes):
        items = [dcp.planner_helpers._create_write_items(name, torch.zeros(n))[0] for name, n in sizes.items()]
        return planner.SavePlan(items)

    share = module(torch, "_dedup_save_plans").dedup_save_plans
    plans = share([plan(a=6, b=100, c=2), plan(a=6, b=100, c=2, d=1)])
    assert [[i.index.fqn for i in p.items] for p in plans] == [["a", "c"], ["b", "d"]]
    lowest = share([plan(a=6, b=100), plan(a=6, b=100, d=1)], save_to_lowest_rank=True)
    assert [[i.index.fqn for i in p.items] for p in lowest] == [["a", "b"], ["d"]]
    assert meta.MetadataIndex("a", [1], 2) == meta.MetadataIndex("a", [1]) != meta.MetadataIndex("a")


def test_a_storage_of_a_program(torch, dcp):
    """Writer and reader may be anything: here a dict."""
    import dataclasses

    kept = {}

    class Writer(dcp.StorageWriter):
        def reset(self, checkpoint_id=None): ...
        def set_up_storage_writer(self, is_coordinator, *args, **kwargs): ...
        def prepare_local_plan(self, plan):
            return plan

        def prepare_global_plan(self, plans):
            return [dataclasses.replace(p, storage_data=i) for i, p in enumerate(plans)]

        def write_data(self, plan, planner):
            made = []
            for item in plan.items:
                data = planner.resolve_data(item)
                kept[item.index] = data.getvalue() if hasattr(data, "getvalue") else data.clone()
                made.append(dcp.storage.WriteResult(item.index, 1, plan.storage_data))
            done = torch.futures.Future()
            done.set_result(made)
            return done

        def finish(self, metadata, results):
            kept["metadata"] = metadata

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id):
            return True

    class Reader(dcp.StorageReader):
        def reset(self, checkpoint_id=None): ...
        def read_metadata(self, *args, **kwargs):
            return kept["metadata"]

        def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs): ...
        def prepare_local_plan(self, plan):
            return plan

        def prepare_global_plan(self, plans):
            return plans

        def read_data(self, plan, planner):
            for item in plan.items:
                if item.type is dcp.planner.LoadItemType.BYTE_IO:
                    planner.load_bytes(item, io.BytesIO(kept[item.storage_index]))
                else:
                    target_tensor = planner.resolve_tensor(item).detach()
                    target_tensor.copy_(kept[item.storage_index])
                    planner.commit_tensor(item, target_tensor)
            done = torch.futures.Future()
            done.set_result(None)
            return done

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id):
            return True

    dcp.save(state(torch), storage_writer=Writer())
    found = state(torch, False)
    dcp.load(found, storage_reader=Reader())
    assert flat(found) == flat(state(torch))


@own
def test_what_is_refused(torch, dcp, tmp_path):
    with pytest.raises(dcp.CheckpointException, match="expected a dense tensor. Hint: save its parts"):
        dcp.save({"a": torch.eye(2).to_sparse()}, checkpoint_id=tmp_path)
    with pytest.raises(NotImplementedError, match="compressed files"):
        dcp.FileSystemWriter(tmp_path, serialization_format=dcp.filesystem.SerializationFormat.SAFETENSORS)
    with pytest.raises(RuntimeError, match="Cannot detect which StorageReader"):
        dcp.load({}, checkpoint_id="s3://bucket/checkpoint")


def spawned(tmp_path, body):
    """Runs a program of two processes, each of which calls `run(rank)` with a process group."""
    program = f"""
        import os, sys, warnings
        import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp, torch.multiprocessing as mp
        from torch.distributed.checkpoint import state_dict as states

        class Bad:
            def __reduce__(self):
                raise ValueError("cannot pickle")

        def start(rank, path):
            dist.init_process_group("gloo", init_method=f"file://{{path}}/store", rank=rank, world_size=2)
            run(rank, path)
            dist.destroy_process_group()

        def run(rank, path):
        {textwrap.indent(textwrap.dedent(body), "            ").lstrip()}

        if __name__ == "__main__":
            mp.spawn(start, args=(sys.argv[1],), nprocs=2)
    """
    lines = textwrap.dedent(
        program.replace("        def run(rank, path):\n        ", "        def run(rank, path):\n            ")
    )
    (tmp_path / "program.py").write_text(lines)
    command = [sys.executable, "-m", "rustgrad", str(tmp_path / "program.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


@own
def test_two_processes(torch, dcp, tmp_path):
    spawned(
        tmp_path,
        """
        state = {"w": torch.arange(6.0), "big": torch.ones(100), f"of_{rank}": torch.full((2,), rank), "rank": rank}
        made = dcp.save(state, checkpoint_id=path + "/a")
        files = {i.fqn: s.relative_path for i, s in made.storage_data.items()}
        assert files == {"w": "__0_0.distcp", "big": "__1_0.distcp", "of_0": "__0_0.distcp", "of_1": "__1_0.distcp", "rank": "__0_0.distcp"}, files
        found = {"w": torch.zeros(6), "big": torch.zeros(100), f"of_{rank}": torch.zeros(2), "rank": -1}
        dcp.load(found, checkpoint_id=path + "/a")
        assert found["w"].tolist() == [0, 1, 2, 3, 4, 5] and found["big"].sum() == 100
        assert found[f"of_{rank}"].tolist() == [rank, rank] and found["rank"] == 0
        for call in (
            lambda: dcp.save({"x": torch.ones(2), f"n{rank}": Bad() if rank else 1}, checkpoint_id=path + "/bad"),
            lambda: dcp.load({"w": torch.zeros(6), **({"nope": 0} if rank else {})}, checkpoint_id=path + "/a"),
        ):
            try:
                call()
            except dcp.CheckpointException as error:
                assert list(error.failures) == [1] and "(RANK 1)" in str(error), error
            else:
                raise AssertionError("expected an error on both ranks")
        dist.barrier()
        assert not os.path.exists(path + "/bad/.metadata")
        dcp.async_save({"a": torch.ones(3)}, checkpoint_id=path + "/async").result()
        dcp.save({"w": torch.full((2,), rank)}, checkpoint_id=path + "/alone", use_collectives=False)
        assert os.path.exists(path + f"/alone/__{rank}.metadata") and os.path.exists(path + f"/alone/__{rank}_0.distcp")
        found = {"w": torch.full((2,), -1)}
        dcp.load(found, checkpoint_id=path + "/alone")
        assert found["w"].tolist() == [rank, rank]
        """,
    )
    found = {"w": torch.zeros(6), "of_1": torch.zeros(2)}
    dcp.load(found, checkpoint_id=tmp_path / "a")
    assert found["w"].tolist() == [0, 1, 2, 3, 4, 5] and found["of_1"].tolist() == [1, 1]
    assert (tmp_path / "async" / ".metadata").exists()


@own
def test_two_processes_that_train(tmp_path):
    spawned(
        tmp_path,
        """
        torch.manual_seed(rank)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        model(torch.full((1, 2), rank + 1.0)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        own, optim = states.get_state_dict(model, optimizer)
        assert sorted(own) == ["bias", "weight"] == sorted(optim["state"])
        dcp.save({"model": own, "optim": optim}, checkpoint_id=path + "/a")
        full = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
        assert bool(states.get_model_state_dict(model, options=full)) is (rank == 0)
        torch.manual_seed(10 + rank)
        plain = torch.nn.Linear(2, 1)
        fresh = torch.optim.Adam(plain.parameters(), lr=1.0)
        first = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        given = (own, optim) if rank == 0 else ({}, {})
        states.set_state_dict(plain, fresh, model_state_dict=given[0], optim_state_dict=given[1], options=first)
        assert torch.equal(plain.weight, model.module.weight) and fresh.param_groups[0]["lr"] == 0.1
        assert torch.equal(fresh.state[plain.weight]["exp_avg"], optimizer.state[model.module.weight]["exp_avg"])
        """,
    )


def test_warnings(torch, dcp, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dcp.save({"a": torch.ones(1)}, checkpoint_id=tmp_path)
        dcp.load({"a": torch.ones(1)}, checkpoint_id=tmp_path)
    texts = [str(w.message) for w in caught]
    assert any("assuming the intent is to save in a single process" in t for t in texts)
    assert any("assuming the intent is to load in a single process" in t for t in texts)
    with pytest.warns(FutureWarning, match="`save_state_dict` is deprecated"):
        dcp.save_state_dict({"a": torch.ones(1)}, dcp.FileSystemWriter(tmp_path / "o"), no_dist=True)
    found = {"a": torch.zeros(1)}
    with pytest.warns(FutureWarning, match="`load_state_dict` is deprecated"):
        dcp.load_state_dict(found, dcp.FileSystemReader(tmp_path / "o"), no_dist=True)
    assert flat(found) == {"a": [1]}
