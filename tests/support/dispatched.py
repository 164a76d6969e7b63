"""Programs whose ops a mode below autograd logs, and the log as text."""

import importlib

# What autograd's engine does with gradients is not dispatched here: their sums, copies of gradients, and detached saved results.
ENGINE = ("aten.detach.default", "aten.new_empty_strided", "profiler.")
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def shown(value, torch):
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(shown(v, torch) for v in value) + "]"
    return repr(value)


def sequence(torch, name):
    """The ops of a program in their order, with shapes and numbers."""
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
    log = []

    class Log(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            given = [shown(a, torch) for a in args] + [f"{k}={shown(v, torch)}" for k, v in kwargs.items()]
            log.append(f"{func}({', '.join(given)})")
            return func(*args, **kwargs)

    torch.manual_seed(0)
    run = PROGRAMS[name](torch, torch.nn, torch.nn.functional)
    with Log():
        run()
    # Defaults that PyTorch's own code spells out.
    lines = [line.replace(", memory_format=torch.preserve_format", "").replace(", attn_mask=None", "") for line in log]
    # The engine's copies of gradients into another layout.
    copies = {i + 1 for i, line in enumerate(lines) if line.startswith("aten.new_empty_strided")}
    return [line for i, line in enumerate(lines) if i not in copies and not line.startswith(ENGINE)]


@program
def mlp(torch, nn, F):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    return lambda: F.cross_entropy(model(x), y).backward()


@program
def shapes_of_linear(torch, nn, F):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3, bias=False))
    x = torch.randn(5, 4)

    def run():
        with torch.no_grad():
            model(x), model(x[None]), model(x[0])

    return run


@program
def cnn(torch, nn, F):
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 2),
    )  # fmt: skip
    x = torch.randn(2, 3, 8, 8)
    return lambda: model(x).sum().backward()


@program
def attention(torch, nn, F):
    q, k, v = (torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3))
    mask = torch.ones(5, 5).tril() == 0

    def run():
        scores = ((q @ k.transpose(-2, -1)) / 2).masked_fill(mask, float("-inf"))
        return (F.softmax(scores, -1) @ v).mean().backward()

    return run


@program
def fused_attention(torch, nn, F):
    q, k, v = (torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


@program
def feed_forward(torch, nn, F):
    embedding, norm = nn.Embedding(10, 8), nn.LayerNorm(8)
    inner = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    i = torch.randint(0, 10, (2, 5))
    return lambda: inner(norm(embedding(i))).pow(2).mean().backward()


@program
def heads(torch, nn, F):
    layer, x = nn.Linear(8, 24), torch.randn(2, 5, 8)

    def run():
        parts = [t.view(2, 5, 2, 4).transpose(1, 2) for t in layer(x).split(8, dim=2)]
        (parts[0] * parts[1] * parts[2]).transpose(1, 2).contiguous().view(2, 5, 8).sum().backward()

    return run


@program
def sgd(torch, nn, F):
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)

    def run():
        for _ in range(2):
            optimizer.zero_grad()
            F.mse_loss(model(x), torch.zeros(4, 2)).backward()
            optimizer.step()

    return run


@program
def adam(torch, nn, F):
    model, x = nn.Linear(3, 2, bias=False), torch.randn(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, foreach=False)

    def run():
        model(x).sum().backward()
        optimizer.step()

    return run


@program
def factories(torch, nn, F):
    def run():
        torch.ones(2, 3), torch.zeros(2), torch.arange(5), torch.full((2,), 3.0), torch.rand(3), torch.randn(2, 2)
        torch.empty(3), torch.tensor([1.0, 2.0]), torch.eye(3), torch.linspace(0, 1, 5), torch.zeros_like(torch.ones(2))
        torch.randint(0, 3, (2,)), torch.randperm(4)

    return run


@program
def indexing(torch, nn, F):
    x, i = torch.arange(12.0).view(3, 4), torch.tensor([0, 2])

    def run():
        x[0], x[:, 1], x[1:], x[None], x[i], x[x > 3], x[..., 0], x[0, 1], x[:, i]
        x[0] = 1
        x[i] = 2.0
        x[x > 5] = 0
        x[1:, ::2] = torch.ones(2, 2)
        x[0, 0].item(), float(x.sum()), bool((x > 0).any())

    return run


@program
def functions(torch, nn, F):
    x, y = torch.randn(3, 4), torch.randn(3, 4)

    def run():
        x + y, x - 1, 1 - x, x * 2, x / y, 2 / x, x**2, 2**x, -x, x @ y.t(), x.sum(0), x.mean(1, keepdim=True), x.max(0)
        x.std(), x.var(0), torch.cat([x, y]), torch.stack([x, y], 1), x.chunk(2, 1), x.flatten(), x.reshape(2, 6), x.T
        x.t().contiguous(), x.double(), x.float(), x.clone(), x.unsqueeze(0).squeeze(0), x.repeat(2, 1), x.norm()
        torch.where(x > 0, x, y), x.softmax(-1), x.log_softmax(1), x.sort(), x.gather(1, x.argsort(1)), x.eq(y).all()
        (
            F.dropout(x, 0.5),
            F.gelu(x),
            F.normalize(x),
            F.pad(x, (1, 1)),
            x.masked_fill(x > 0, 0.0),
            torch.outer(x[0], y[0]),
        )

    return run


@program
def layers(torch, nn, F):
    x, w = torch.randn(1, 2, 6), torch.randn(3, 2, 3)
    image = torch.randn(1, 2, 4, 4)

    def run():
        F.conv1d(x, w), F.conv_transpose2d(image, torch.randn(2, 3, 3, 3)), F.avg_pool2d(image, 2)
        F.interpolate(image, scale_factor=2), F.interpolate(image, size=(8, 8), mode="bilinear"), F.group_norm(image, 2)
        F.batch_norm(image, torch.zeros(2), torch.ones(2)), F.l1_loss(x, x), F.smooth_l1_loss(x, x)
        F.binary_cross_entropy_with_logits(x, x.sigmoid()), F.layer_norm(x, (6,)), F.embedding(torch.tensor([1]), x[0])

    return run
