"""Functions of numbers, texts and lists, and modules with options, whose archives are recorded."""

# ruff: noqa: B007, UP031, E702
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchscript_cases import save
from torchscript_modules import x


def arith(a: int, b: int, c: float, z: complex):
    r: list[float] = [
        a / b,
        float(a // b),
        float(a % b),
        c**2,
        c // 0.3,
        c % 0.3,
        float(-a // b),
        float(round(c)),
        abs(-c),
        float(int(c)),
        min(c, 1.0),
        max(a, b) * 1.0,
    ]
    q = [a << 2, a >> 1, a & b, a | b, a ^ b, int(a**2)]
    import_ok = a == b or (a != b and not (c < 2.5))
    return r, import_ok, z * 2 + 1, q[0], divmod(a, b)


save("arith", arith, 7, -3, 2.6, 1 + 2j)


def maths(c: float, t: Tensor):
    return (
        math.sqrt(c),
        math.sin(c),
        math.pi,
        math.floor(c),
        math.ceil(c),
        math.log(c),
        math.exp(c),
        math.pow(c, 2.0),
        math.isnan(c),
        math.inf,
        float("inf"),
        float("nan") != 0.0,
        int(t.sum().item()),
        float(t[0, 0]),
        bool(t[0, 0] > 0),
        t.size(0),
        t.shape,
        t.dim(),
        t.dtype,
        t.device,
        t.is_cuda,
        t.requires_grad,
    )


save("maths", maths, 2.6, x)


def strs(s: str, n: int):
    return (
        s.upper(),
        s.split(","),
        s.replace("a", "b"),
        s.startswith("a"),
        s[0],
        s[1:3],
        len(s),
        s.strip(),
        s + "x",
        "%d-%s" % (n, s),
        f"{s} and {n}",
        ord("a"),
        chr(98),
        str(n),
        int("12"),
        float("1.5"),
        s.find("b"),
        s.count("a"),
        "a" in s,
        hex(n),
        s.join(["q", "r"]),
        [c for c in ["a", "b"]],
        s.lower().capitalize(),
        s.isdigit(),
    )


save("strs", strs, "abc,def", 5)


def lists(l: list[int], t: list[Tensor]):
    m = [v * 2 for v in l]
    m.append(5)
    m.extend([7, 8])
    m.insert(0, 9)
    p = m.pop()
    m.sort()
    m.reverse()
    m[0] = 100
    del m[0]
    m.append(3)
    q = l + m
    srt = sorted(l)
    i = m.index(3)
    c = m.count(3)
    m.remove(3)
    e: list[str] = []
    d = {1: 2, 3: 4}
    d[5] = 6
    keys = list(d.keys())
    vals = list(d.values())
    g = d.get(9)
    h = d.get(1, 3)
    has = 3 in d
    d.pop(1)
    d.update({8: 9})
    x = d.setdefault(4, 4)

    return (
        m,
        p,
        q,
        srt,
        i,
        c,
        e,
        d,
        keys,
        vals,
        g,
        h,
        has,
        sum(l),
        max(l),
        min(l),
        any([True, False]),
        all([True]),
        len(t),
        torch.cat(t),
        l[-1],
        l[1:],
        l[::2],
        x,
        [1] * 3,
        l == [1],
    )


save("lists", lists, [3, 1, 2], [x, x])


class Opt(nn.Module):
    t: Tensor | None
    shape: tuple[int, int]

    def __init__(self):
        super().__init__()
        self.m = None
        self.t = None
        self.p = nn.Parameter(torch.ones(4))
        self.register_parameter("none", None)
        self.flag = True
        self.shape = (4, 1)

    def forward(self, x: Tensor, u: int | str = 3) -> Tensor:
        t = self.t
        if t is None:
            self.t = x.sum()
        else:
            x = x + t
        if isinstance(u, int):
            x = x + u
        else:
            x = x - 1
        y = torch.jit.annotate(list[Tensor], [])
        y.append(x)
        if self.training:
            x = x * 2
        return x * self.p + len(y)


save("opt", Opt(), x)
save(
    "trace_fn",
    torch.jit.trace(
        lambda a: (a @ a.t()).softmax(-1)[:, 1:].reshape(a.size(0), -1).clamp(min=0.1) + a.new_zeros(1), (x,)
    ),
    x,
)


class Emb(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 4, padding_idx=0)
        self.ln = nn.LayerNorm(4)
        self.eb = nn.EmbeddingBag(10, 4)
        self.il = nn.InstanceNorm1d(4, affine=True)

    def forward(self, i):
        y = self.ln(self.e(i))
        return self.il(y.transpose(1, 2)).mean(2) + self.eb(i)


save("emb", Emb(), torch.randint(0, 10, (3, 4)))


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 3)
        self.ce = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.bce = nn.BCEWithLogitsLoss()
        self.k = nn.KLDivLoss(reduction="batchmean")
        self.sl = nn.SmoothL1Loss()
        self.nl = nn.NLLLoss()

    def forward(self, x, t):
        o = self.l(x)
        h = F.one_hot(t, 3).float()
        return (
            self.ce(o, t)
            + self.bce(o, h)
            + self.k(o.log_softmax(1), h.softmax(1))
            + self.sl(o, h)
            + F.mse_loss(o, h)
            + self.nl(o.log_softmax(1), t)
            + F.l1_loss(o, h)
            + F.cosine_similarity(o, h).mean()
            + F.triplet_margin_loss(o, h, h)
            + F.huber_loss(o, h)
        )
