"""Programs that draw random numbers on the CPU after `torch.manual_seed(0)`, run with PyTorch and with rustgrad.

Each is an expression, or statements that leave their result in `out`: a tensor, or a list of tensors and numbers.
"""

DRAWS = [
    # Shapes, dtypes, ranges.
    "torch.rand(5)",
    "torch.rand(3, 700)[-1, -5:]",
    "torch.rand(5, dtype=torch.float64)",
    "torch.rand(5, dtype=torch.complex64)",
    "torch.rand(40, dtype=torch.float16)",
    "torch.rand(2000, dtype=torch.bfloat16).sort(descending=True)[0][:20]",
    "torch.empty(40).uniform_(-0.3, 0.1)",
    "torch.empty(40, dtype=torch.float64).uniform_(-0.3, 0.1)",
    "torch.empty(40, dtype=torch.bfloat16).uniform_(-1, 3)",
    "torch.empty(40).uniform_(1e8, 1e8 + 8)",
    "torch.rand_like(torch.empty(3, 4, dtype=torch.float64))",
    # Normal numbers: few, blocks, a rest, twice, the spare one of a pair.
    "torch.randn(5)",
    "torch.randn(15)",
    "torch.randn(16)",
    "torch.randn(21)",
    "torch.randn(3, 701)[-1, -20:]",
    "torch.randn(5, dtype=torch.float64)",
    "torch.randn(21, dtype=torch.float64)",
    "torch.randn(21, dtype=torch.float16)",
    "torch.randn(40, dtype=torch.bfloat16)",
    "torch.randn(20, dtype=torch.complex64)",
    "torch.empty(5).normal_(3, 2)",
    "torch.empty(40).normal_(3, 2)",
    "torch.normal(torch.arange(20.0), torch.arange(1.0, 21.0))",
    "torch.normal(2.0, torch.ones(3))",
    "torch.normal(torch.ones(3), 2.0)",
    "torch.normal(0.5, 2.0, (2, 3))",
    "out = [torch.randn(3), torch.rand(2), torch.randn(3), torch.randn(20), torch.randn(1)]",
    # The order of memory.
    "torch.empty(5, 8).t().uniform_()",
    "torch.empty(5, 8).t().normal_()",
    "torch.empty(6, 8)[:, ::2].uniform_()",
    "torch.empty(3, 4, 5).permute(2, 0, 1).normal_()",
    "torch.empty(2, 3, 4, 4).to(memory_format=torch.channels_last).normal_()",
    "torch.rand_like(torch.empty(3, 4).t())",
    # Integers.
    "torch.randint(0, 10, (20,))",
    "torch.randint(-5, 2**28 - 6, (5,))",
    "torch.randint(0, 2**28, (5,))",
    "torch.randint(-(2**62), 2**62, (5,))",
    "torch.randint(0, 2**30, (5,), dtype=torch.int32)",
    "torch.randint(0, 200, (5,), dtype=torch.uint8)",
    "torch.randint(0, 1000, (5,), dtype=torch.float16)",
    "torch.empty(5).random_()",
    "torch.empty(5, dtype=torch.float64).random_()",
    "torch.empty(5, dtype=torch.int64).random_()",
    "torch.empty(5, dtype=torch.int32).random_()",
    "torch.empty(5, dtype=torch.int8).random_()",
    "torch.empty(20, dtype=torch.bool).random_()",
    "torch.empty(5, dtype=torch.bfloat16).random_()",
    "torch.empty(5, dtype=torch.int64).random_(7)",
    "torch.empty(5, dtype=torch.int64).random_(-(2**63), None)",
    "torch.empty(5, dtype=torch.int64).random_(3, None)",
    "torch.randperm(10)",
    "torch.randperm(1000)[-10:]",
    "torch.randperm(10, dtype=torch.int32)",
    # Bernoulli with a tensor, and the distributions made of uniform and normal numbers.
    "torch.bernoulli(torch.full((40,), 0.3))",
    "torch.bernoulli(torch.full((40,), 0.3, dtype=torch.float64))",
    "torch.empty(5, 8).bernoulli_(torch.linspace(0, 1, 8))",
    "torch.empty(20).exponential_(2.0)",
    "torch.empty(20, dtype=torch.float64).exponential_()",
    "torch.empty(20).cauchy_(1, 2)",
    "torch.empty(21).log_normal_(0.5, 2)",
    "torch.empty(20).geometric_(0.2)",
    "torch.empty(20, dtype=torch.int64).geometric_(0.2)",
    "torch.poisson(torch.full((20,), 4.0))",
    "torch.poisson(torch.full((200,), 50.0))",
    "torch.poisson(torch.tensor([0.0, 3.0, 0.0, 20.0]))",
    "torch.binomial(torch.full((20,), 20.0), torch.full((20,), 0.2))",
    "torch.binomial(torch.full((200,), 100.0), torch.full((200,), 0.8))",
    "torch._standard_gamma(torch.full((20,), 0.5))",
    "torch._standard_gamma(torch.linspace(1, 20, 20))",
    "torch._sample_dirichlet(torch.full((4, 3), 0.5))",
    # Sampling.
    "torch.multinomial(torch.arange(1.0, 9.0), 1)",
    "torch.multinomial(torch.arange(1.0, 9.0), 4)",
    "torch.multinomial(torch.arange(1.0, 13.0).reshape(3, 4), 1, True)",
    "torch.multinomial(torch.arange(1.0, 13.0).reshape(3, 4), 20, True)",
    "torch.multinomial(torch.arange(1.0, 13.0, dtype=torch.float64), 20, True)",
    "torch.multinomial(torch.tensor([0.0, 1.0, 0.0, 3.0]), 2)",
    "torch.distributions.Categorical(logits=torch.arange(6.0)).sample((20,))",
    "torch.distributions.Normal(torch.zeros(3), 2.0).sample((2,))",
    "torch.distributions.Bernoulli(torch.tensor([0.2, 0.7])).sample((20,))",
    "torch.distributions.Beta(torch.tensor([2.0, 3.0]), 4.0).sample((4,))",
    "torch.distributions.VonMises(0.0, 1.0).sample((20,))",
    "torch.quasirandom.SobolEngine(3, scramble=True, seed=0).draw(4)",
    "torch.quasirandom.SobolEngine(3, scramble=True).draw(4)",
    "torch.nn.functional.rrelu(torch.arange(-5.0, 5.0), 0.1, 0.3, True)",
    "torch.nn.functional.gumbel_softmax(torch.arange(6.0).reshape(2, 3), hard=True)",
    # Seeds, generators, states.
    "out = torch.manual_seed(2**40 + 7) and torch.rand(3)",
    "out = torch.manual_seed(-1) and torch.rand(3)",
    "torch.rand(3, generator=torch.Generator())",
    "torch.randint(0, 10, (3,), generator=torch.Generator().manual_seed(5))",
    "torch.Generator().get_state()",
    "torch.rand(624); out = torch.get_rng_state()",
    "torch.rand(7); state = torch.get_rng_state(); a = torch.randn(3); torch.set_rng_state(state); out = [a, torch.randn(3)]",
    "g = torch.Generator(); h = g.clone_state(); out = [torch.rand(2, generator=g), torch.rand(2, generator=h)]",
    "out = [torch.initial_seed(), torch.Generator().initial_seed()]",
    # Layers, initialisations, data.
    "m = torch.nn.Linear(5, 3); out = list(m.parameters())",
    "m = torch.nn.Conv2d(3, 4, 3); out = list(m.parameters())",
    "m = torch.nn.Embedding(6, 4); out = list(m.parameters())",
    "m = torch.nn.LSTM(3, 4, bidirectional=True); out = list(m.parameters())",
    "m = torch.nn.MultiheadAttention(8, 2); out = list(m.parameters())",
    "m = torch.nn.TransformerEncoderLayer(8, 2, 16); out = list(m.parameters())",
    "m = torch.nn.Bilinear(3, 2, 4); out = list(m.parameters())",
    "torch.nn.init.trunc_normal_(torch.empty(4, 5))",
    "torch.nn.init.trunc_normal_(torch.empty(20, 20), std=0.02, a=-0.03, b=0.03)",
    "torch.nn.init.trunc_normal_(torch.empty(20, 20), std=2.0, a=-0.3, b=0.5)",
    "torch.nn.init.orthogonal_(torch.empty(4, 6))",
    "torch.nn.init.sparse_(torch.empty(10, 4), 0.5)",
    "torch.nn.init.kaiming_normal_(torch.empty(6, 5))",
    "torch.nn.init.xavier_uniform_(torch.empty(6, 5))",
    "torch.nn.functional.dropout(torch.ones(4), 0.0); out = torch.rand(2)",
    "loader = torch.utils.data.DataLoader(range(10), batch_size=4, shuffle=True); out = [*loader, *loader, torch.rand(1)]",
    "s = torch.utils.data.RandomSampler(range(5), num_samples=12); out = [*s, *s]",
    "s = torch.utils.data.RandomSampler(range(5), replacement=True, num_samples=40); out = list(s)",
    "g = torch.Generator(); s = torch.utils.data.RandomSampler(range(5), generator=g); out = [*s, *s, torch.rand(1, generator=g)]",
    "s = torch.utils.data.WeightedRandomSampler([0.1, 0.4, 0.5], 10); out = list(s)",
    "s = torch.utils.data.SubsetRandomSampler([3, 5, 7, 9]); out = list(s)",
    "a, b = torch.utils.data.random_split(range(10), [7, 3]); out = [*a, *b]",
    "torch.pca_lowrank(torch.arange(30.0).reshape(6, 5).sin(), 2)[1]",
    # One training step of a network.
    """
m = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(m.parameters(), 0.01)
out = []
for _ in range(5):
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    loss = torch.nn.functional.cross_entropy(m(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    out.append(loss.item())
""",
]

# PyTorch on Intel's processors draws these by another generator; elsewhere, and here, they are as follows.
FLIPS = [
    "torch.empty(40).bernoulli_(0.3)",
    "torch.empty(40, dtype=torch.int64).bernoulli_(0.3)",
    "torch.empty(5, 8).t().bernoulli_(0.3)",
    "torch.nn.functional.dropout(torch.ones(40), 0.3)",
    "torch.nn.functional.dropout(torch.ones(5, 8).t(), 0.3)",
    "torch.nn.functional.dropout(torch.ones(40, dtype=torch.float64), 0.1)",
    "torch.nn.functional.alpha_dropout(torch.ones(40), 0.3, True)",
    "torch.nn.functional.dropout2d(torch.ones(4, 10, 2, 2), 0.3)[:, :, 0, 0]",
    "torch.native_dropout(torch.ones(40), 0.3, True)[0]",
    "torch.dropout(torch.ones(40), 0.3, True)",
]


def run(torch, source):
    """The numbers of a program's result, flat, complex ones as pairs."""
    torch.manual_seed(0)
    names = {"torch": torch}
    try:
        code = compile(source, "<program>", "eval")
    except SyntaxError:
        exec(source, names)
        result = names["out"]
    else:
        result = eval(code, names)
    return list(_numbers(torch, result))


def _numbers(torch, result):
    if isinstance(result, (list, tuple)):
        for part in result:
            yield from _numbers(torch, part)
    elif isinstance(result, torch.Tensor):
        t = result.detach()
        t = torch.view_as_real(t) if t.is_complex() else t
        yield from (t.double() if t.is_floating_point() else t).reshape(-1).tolist()
    else:
        yield result
