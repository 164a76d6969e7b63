"""Devices: names of available and unavailable devices, and default devices."""

import copy
import pickle
import threading

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


@pytest.mark.parametrize("name", ["cpu", "cpu:0", "cuda", "cuda:1", "meta", "mps", "xla:3"])
def test_any_device_has_a_name(torch, name):
    device = torch.device(name)
    kind, _, index = name.partition(":")
    assert (device.type, device.index) == (kind, int(index) if index else None) and str(device) == name
    assert repr(device) == f"device(type='{kind}'" + (f", index={index})" if index else ")")
    assert device == torch.device(name) == torch.device(device) == torch.device(kind, device.index)
    assert hash(device) == hash(torch.device(name)) and device != torch.device("hip") and device != name
    assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device


def test_names_with_and_without_a_number_differ(torch):
    assert torch.device("cpu:0") != torch.device("cpu") and torch.device("cuda") != torch.device("cuda:0")
    assert torch.device("cuda", 1) == torch.device("cuda:1") == torch.device(type="cuda", index=1)
    assert torch.ones(1, device="cpu:0").device == torch.device("cpu")


@pytest.mark.parametrize("name", ["", "tpu", "cuda:", "cuda:a", "cuda:01", "cuda:-1", ":0"])
def test_what_is_no_name(torch, name):
    with pytest.raises(RuntimeError, match="evice string|device type"):
        torch.device(name)


def test_arguments_of_a_name(torch):
    with pytest.raises(RuntimeError, match="must not include an index because index was passed explicitly: cuda:0"):
        torch.device("cuda:0", 1)
    for index in (-1, -5):
        with pytest.raises(RuntimeError, match="Device index must not be negative"):
            torch.device("cuda", index)
    with pytest.raises(RuntimeError, match="Device index must not be negative"):
        torch.device(-1)
    for wrong in ((), (1.5,), (torch.device("cpu"), 0), (True,)):
        with pytest.raises(TypeError, match="device()"):
            torch.device(*wrong)
    with pytest.raises(TypeError):
        assert torch.device("cpu") < torch.device("cuda")


@own
@pytest.mark.parametrize("name", ["cuda", "mps", "xla"])
def test_an_absent_device_is_an_error_where_it_is_used(torch, name):
    model = torch.nn.Linear(2, 2)
    uses = [
        lambda d: torch.ones(2, device=d),
        lambda d: torch.tensor([1.0], device=d),
        lambda d: torch.ones(2).to(d),
        lambda d: torch.empty_like(torch.ones(2), device=d),
        lambda d: model.to(d),
        lambda d: torch.set_default_device(d),
        lambda d: torch.Generator(d),
        lambda d: torch.device(d).__enter__(),
    ]
    for use in uses:
        for device in (name, torch.device(name)):
            with pytest.raises(RuntimeError, match=f"device '{name}' is not known here; expected 'cpu' or 'gpu'"):
                use(device)
    assert model.weight.device == torch.get_default_device() == torch.device("cpu")


@own
def test_cuda_methods(torch):
    for thing in (torch.ones(1), torch.nn.Linear(2, 2)):
        for device in (None, 0, "cuda:0"):
            with pytest.raises(RuntimeError, match="device 'cuda.*' is not known here"):
                thing.cuda(device)
    with pytest.raises(RuntimeError, match="device 'cuda' is not known here"):
        torch.ones(1).type("torch.cuda.FloatTensor")


@own
def test_blocks_say_where_tensors_are_made(torch, device):
    place = torch.device(device)
    makers = [
        lambda: torch.ones(2),
        lambda: torch.tensor([1]),
        lambda: torch.rand(2),
        lambda: torch.arange(3),
        lambda: torch.eye(2),
    ]
    with place as entered:
        assert entered is place and torch.get_default_device() == place
        assert {m().device for m in makers} == {torch.ones(1, device=device).device}
        with torch.device("cpu"):
            assert {m().device for m in makers} == {torch.device("cpu")}
        assert torch.ones(1, device="cpu").device.type == "cpu" and torch.zeros(1).device.type == device
    assert torch.get_default_device() == torch.device("cpu") and torch.ones(1).device.type == "cpu"


def test_results_stay_where_their_operands_are(torch):
    s, t = torch.tensor(2.0), torch.tensor([1.0, 2.0])
    with torch.device("meta"):
        results = [s + 1, s * s, s < 1, 2**s, s.clamp(0, 1), torch.where(s > 1, s, 0.0), s.lerp(s, 0.5), t.mean() * 0.5]
        results += [t.cov(), torch.isin(t, t), torch.multinomial(t, 1), t.view(1, 2).corrcoef(), t.nanmean()]
        assert {r.device.type for r in results} == {"cpu"}
        # What has no device of its own, and what is converted, is made on the default one.
        assert {torch.as_tensor(x).device.type for x in (t, [1], t.numpy())} == {"meta"}
        assert torch.tensor(t.numpy()).device.type == "meta" and torch.as_tensor(t, device="cpu") is t
    assert torch.as_tensor(t) is t and torch.as_tensor(torch.empty(2, device="meta")).device.type == "meta"


@own
def test_a_block_ends_with_an_error(torch, device):
    with pytest.raises(ValueError), torch.device(device):
        raise ValueError
    assert torch.get_default_device().type == "cpu"


@own
def test_the_default_device_and_blocks(torch, device):
    try:
        with torch.device("cpu"):
            torch.set_default_device(device)
            assert torch.ones(1).device.type == "cpu"
        assert torch.ones(1).device.type == device
    finally:
        torch.set_default_device(None)
    assert torch.ones(1).device.type == "cpu"


def test_legacy_constructors_and_counts_of_steps_stay_on_the_cpu(torch):
    np = pytest.importorskip("numpy")
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([weight])
    weight.grad = torch.ones(2)
    with torch.device("meta"):
        made = [torch.Tensor([1.0]), torch.Tensor(2, 3), torch.FloatTensor(2), torch.Tensor(np.ones(2))]
        moved = [torch.asarray(np.ones(2)), torch.asarray(torch.ones(2, device="cpu")), torch.asarray([1.0])]
        optimizer.step()
    assert {t.device.type for t in made} == {"cpu"} and {t.device.type for t in moved} == {"meta"}
    assert optimizer.state[weight]["step"].device.type == "cpu" and weight.tolist() != [1, 1]


@own
def test_threads_have_their_own_default_device(torch, device):
    seen = []
    with torch.device(device):
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).device.type))
        thread.start()
        thread.join()
    assert seen == ["cpu"]


def test_forms_of_to(torch):
    x = torch.ones(2)
    assert x.to("cpu") is x and x.to() is x and x.to(None) is x and x.to(x) is x and x.to(torch.float32) is x
    assert x.to("cpu", copy=True) is not x and x.to(torch.float32, False, True) is not x
    assert (
        x.to("cpu", torch.float64, True, True).dtype == x.to(torch.ones(1, dtype=torch.float64)).dtype == torch.float64
    )
    kinds = {float: torch.float64, int: torch.int64, bool: torch.bool, complex: torch.complex128}
    assert all(x.to(kind).dtype == dtype for kind, dtype in kinds.items())
    for wrong in (("cpu", True), (torch.float32, "cpu"), (1.5,), (x, 1), ("cpu", None, False, False, 1)):
        with pytest.raises(TypeError, match="to.. received an invalid combination"):
            x.to(*wrong)
    with pytest.raises(TypeError, match="to.. received an invalid combination"):
        x.to("cpu", foo=1)


def test_a_module_is_not_copied_by_to(torch):
    model = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="does not accept copy argument"):
        model.to("cpu", copy=True)
    with pytest.raises(TypeError, match="to.. received an invalid combination"):
        model.to("cpu", True)
    assert model.to("cpu", torch.float64, True) is model and model.weight.dtype == torch.float64


@pytest.mark.parametrize("device", ["cpu", "device"])
def test_cuda_takes_no_other_device(torch, device):
    with pytest.raises(RuntimeError, match="must be cuda device"):
        torch.ones(1).cuda(torch.device("cpu") if device == "device" else device)
