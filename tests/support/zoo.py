"""Every layer with a state and every optimizer, small, for checkpoints that cross between PyTorch and rustgrad.

`contents(torch)` is what one of them saves; `check(torch, saved)` raises unless the other one goes on from there as the first
one did.
"""

SHAPES = {
    "Linear": ((3, 2), [(4, 3)]),
    "Bilinear": ((2, 3, 2), [(4, 2), (4, 3)]),
    "Conv1d": ((2, 2, 3), [(1, 2, 5)]),
    "Conv2d": ((2, 2, 3), [(1, 2, 5, 5)]),
    "Conv3d": ((1, 2, 2), [(1, 1, 3, 3, 3)]),
    "ConvTranspose1d": ((2, 2, 3), [(1, 2, 4)]),
    "ConvTranspose2d": ((2, 2, 3), [(1, 2, 3, 3)]),
    "ConvTranspose3d": ((1, 2, 2), [(1, 1, 2, 2, 2)]),
    "BatchNorm1d": ((2,), [(4, 2)]),
    "BatchNorm2d": ((2,), [(2, 2, 3, 3)]),
    "BatchNorm3d": ((2,), [(2, 2, 2, 2, 2)]),
    "LayerNorm": ((3,), [(2, 3)]),
    "RMSNorm": ((3,), [(2, 3)]),
    "GroupNorm": ((2, 4), [(2, 4, 3)]),
    "PReLU": ((2,), [(3, 2)]),
    "RNN": ((2, 3, 2), [(4, 1, 2)]),
    "LSTM": ((2, 3), [(4, 1, 2)]),
    "GRU": ((2, 3), [(4, 1, 2)]),
    "RNNCell": ((2, 3), [(2, 2)]),
    "LSTMCell": ((2, 3), [(2, 2)]),
    "GRUCell": ((2, 3), [(2, 2)]),
}
OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.1, "amsgrad": True},
    "AdamW": {"lr": 0.1},
    "Adamax": {"lr": 0.1},
    "NAdam": {"lr": 0.1},
    "RAdam": {"lr": 0.1},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1},
    "Adadelta": {"lr": 1.0},
    "RMSprop": {"lr": 0.1, "centered": True, "momentum": 0.9},
    "Rprop": {"lr": 0.1},
    "ASGD": {"lr": 0.1, "t0": 2},
    "Adafactor": {"lr": 0.1},
    "Muon": {"lr": 0.1},
    "LBFGS": {"lr": 0.1, "max_iter": 3},
}
STEPS = 7


def numbers(torch, shape, seed):
    """Numbers between -1 and 1 that do not depend on a generator, which differ between libraries."""
    count = 1
    for size in shape:
        count *= size
    whole = (torch.arange(count, dtype=torch.int64) * 7919 + seed * 104729) % 2003
    return ((whole.to(torch.float64) / 1001) - 1).to(torch.float32).reshape(shape)


def layers(torch):
    """By name: a layer that makes itself, and its inputs."""
    nn = torch.nn
    made = {}
    for name, (arguments, shapes) in SHAPES.items():
        inputs = [numbers(torch, shape, 40 + i) for i, shape in enumerate(shapes)]
        made[name] = (lambda name=name, arguments=arguments: getattr(nn, name)(*arguments), inputs)
    image, words = numbers(torch, (2, 2, 3, 3), 5), torch.tensor([[1, 2], [0, 3]])
    sequence = numbers(torch, (3, 1, 4), 6)
    made["InstanceNorm2d"] = (lambda: nn.InstanceNorm2d(2, affine=True, track_running_stats=True), [image])
    made["Embedding"] = (lambda: nn.Embedding(4, 2, padding_idx=0), [words])
    made["EmbeddingBag"] = (lambda: nn.EmbeddingBag(4, 2), [words])
    made["LSTM, projected, both ways"] = (lambda: nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2), [sequence])
    made["MultiheadAttention"] = (lambda: nn.MultiheadAttention(4, 2), [sequence] * 3)
    made["TransformerEncoderLayer"] = (lambda: nn.TransformerEncoderLayer(4, 2, 3), [sequence])
    made["TransformerDecoderLayer"] = (lambda: nn.TransformerDecoderLayer(4, 2, 3), [sequence, sequence])
    made["Transformer"] = (lambda: nn.Transformer(4, 2, 1, 1, 3), [sequence, sequence])
    made["AdaptiveLogSoftmaxWithLoss"] = (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2, 4]),
        [numbers(torch, (3, 4), 7), torch.tensor([0, 3, 4])],
    )
    made["CrossEntropyLoss"] = (
        lambda: nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0])),
        [numbers(torch, (3, 2), 8), torch.tensor([0, 1, 1])],
    )
    parametrizations = nn.utils.parametrizations
    made["weight_norm"] = (lambda: parametrizations.weight_norm(nn.Linear(3, 2)), [numbers(torch, (4, 3), 9)])
    made["spectral_norm"] = (
        lambda: parametrizations.spectral_norm(nn.Linear(3, 2)).eval(),
        [numbers(torch, (4, 3), 9)],
    )
    made["weight_norm, the older one"] = (lambda: nn.utils.weight_norm(nn.Linear(3, 2)), [numbers(torch, (4, 3), 9)])
    made["containers"] = (
        lambda: nn.Sequential(
            nn.Linear(3, 2), nn.ModuleDict({"a": nn.ReLU()})["a"], nn.ModuleList([nn.Linear(2, 2)])[0]
        ),
        [numbers(torch, (4, 3), 9)],
    )
    return made


def fill(torch, module):
    """Gives parameters and floating buffers numbers of their own."""
    with torch.no_grad():
        for i, tensor in enumerate([*module.parameters(), *module.buffers()]):
            if tensor.is_floating_point():
                tensor.copy_(numbers(torch, tuple(tensor.shape), i).abs() + 0.1)
    return module


def first(result):
    while isinstance(result, tuple):
        result = result[0]
    return result.detach()


def run_layer(torch, make, inputs):
    """(the layer after a call in training mode, its result in evaluation mode)."""
    module = fill(torch, make())
    for part in module.modules():
        if hasattr(part, "dropout") and isinstance(part.dropout, torch.nn.Dropout):
            part.dropout.p = 0.0
    with torch.no_grad():
        if any(hasattr(part, "running_mean") for part in module.modules()):
            module.train()(*inputs)
        return module, first(module.eval()(*inputs))


def parameters(torch, name):
    shapes = [(3, 2), (2, 2)] if name == "Muon" else [(3, 2), (2,)]
    return [torch.nn.Parameter(numbers(torch, shape, i)) for i, shape in enumerate(shapes)]


def advance(torch, optimizer, weights, count, start):
    """Steps on a loss whose gradient changes from step to step."""
    for step in range(start, start + count):

        def closure(step=step):
            optimizer.zero_grad()
            loss = sum(((w - numbers(torch, tuple(w.shape), 20 + step + i)) ** 2).sum() for i, w in enumerate(weights))
            loss.backward()
            return loss

        optimizer.step(closure)


def contents(torch):
    """States of all layers and optimizers, with what each gives or does next."""
    saved = {"layers": {}, "optimizers": {}}
    for name, (make, inputs) in layers(torch).items():
        module, result = run_layer(torch, make, inputs)
        saved["layers"][name] = {"state": module.state_dict(), "result": result}
    for name, options in OPTIMIZERS.items():
        weights = parameters(torch, name)
        optimizer = getattr(torch.optim, name)(weights, **options)
        advance(torch, optimizer, weights, STEPS, 0)
        state, here = optimizer.state_dict(), [w.detach().clone() for w in weights]
        # The state holds the optimizer's own tensors: a copy, before it goes on.
        state = {
            "state": {k: copied(torch, v) for k, v in state["state"].items()},
            "param_groups": state["param_groups"],
        }
        advance(torch, optimizer, weights, 2, STEPS)
        saved["optimizers"][name] = {"state": state, "weights": here, "after": [w.detach().clone() for w in weights]}
    return saved


def copied(torch, value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {k: copied(torch, v) for k, v in value.items()}
    return [copied(torch, v) for v in value] if isinstance(value, list) else value


def check(torch, saved):
    """Raises unless layers with these states give the results, and optimizers with these states take the next steps."""
    made = layers(torch)
    assert made.keys() == saved["layers"].keys() and OPTIMIZERS.keys() == saved["optimizers"].keys()
    for name, (make, inputs) in made.items():
        module = make()
        before = list(module.state_dict())
        assert before == list(saved["layers"][name]["state"]), name
        module.load_state_dict(saved["layers"][name]["state"])
        for part in module.modules():
            if hasattr(part, "dropout") and isinstance(part.dropout, torch.nn.Dropout):
                part.dropout.p = 0.0
        with torch.no_grad():
            close(torch, first(module.eval()(*inputs)), saved["layers"][name]["result"], name)
    for name, options in OPTIMIZERS.items():
        weights = parameters(torch, name)
        optimizer = getattr(torch.optim, name)(weights, **options)
        optimizer.load_state_dict(saved["optimizers"][name]["state"])
        with torch.no_grad():
            for weight, value in zip(weights, saved["optimizers"][name]["weights"]):
                weight.copy_(value)
        advance(torch, optimizer, weights, 2, STEPS)
        for weight, value in zip(weights, saved["optimizers"][name]["after"]):
            close(torch, weight.detach(), value, name)


def close(torch, got, expected, name):
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5, msg=lambda text: f"{name}: {text}")
