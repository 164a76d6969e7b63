"""Modules whose archives are recorded: layers, control flow, exported methods."""

# ruff: noqa: B007, UP031, E702
import enum
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchscript_cases import save


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))

    def forward(self, x):
        return self.l(x)


x = torch.randn(5, 4)
save("mlp", MLP(), x, extra={"meta.json": "{}"})
save("mlp_half", MLP().eval().half(), x.half())


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.gn = nn.GroupNorm(2, 8)
        self.c2 = nn.Conv2d(8, 4, 3, padding="same")
        self.ct = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.ap = nn.AdaptiveAvgPool2d((2, 2))
        self.ac = nn.ModuleList(
            [
                nn.GELU(),
                nn.SiLU(),
                nn.LeakyReLU(0.1),
                nn.ELU(),
                nn.Hardtanh(),
                nn.Softplus(),
                nn.PReLU(),
                nn.ReLU6(inplace=True),
                nn.Hardswish(inplace=True),
            ]
        )
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.c(x))))
        x = self.gn(x)
        x = self.ct(self.c2(x))
        for a in self.ac:
            x = a(x)
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        x = torch.flatten(self.ap(x), 1)
        return F.log_softmax(self.fc(x), dim=1)


im = torch.randn(2, 3, 8, 8)
save("cnn", CNN(), im)
save("cnn_frozen", torch.jit.freeze(torch.jit.script(CNN().eval())), im, grads=False)


class RNN(nn.Module):
    def __init__(self, kind, **kw):
        super().__init__()
        self.r = kind(4, 6, 2, batch_first=True, **kw)
        self.o = nn.Linear(6 * (2 if kw.get("bidirectional") else 1), 2)

    def forward(self, x):
        y, h = self.r(x)
        return self.o(y[:, -1])


seq = torch.randn(3, 7, 4)
save("lstm", RNN(nn.LSTM), seq)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.LSTMCell(4, 6)
        self.b = nn.GRUCell(6, 4)

    def forward(self, x):
        h, c = self.a(x[:, 0])
        for i in range(1, x.size(1)):
            h, c = self.a(x[:, i], (h, c))
        return self.b(h, x[:, 0])


enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
sx = torch.randn(2, 5, 8)
save(
    "tenc_eval",
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval(),
    sx,
    grads=False,
)


class MHA(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        a, w = self.m(x, x, x)
        assert w is not None
        return a + w.sum()


save("mha_trace", torch.jit.trace(MHA().eval(), sx, check_trace=False), sx)


class CtlF(nn.Module):
    def forward(self, x: Tensor, n: int, flag: bool, names: list[str], opt: Tensor | None):
        acc = torch.zeros_like(x)
        i = 0
        while i < n:
            if i % 2 == 0:
                acc = acc + x * i
            elif flag and i > 2:
                acc = acc - x
            else:
                acc += 1
            i += 1
            if i > 6:
                break
        for k in range(n, 0, -1):
            if k == 2:
                continue
            acc = acc * 1.01 + k
        tot = 0.0
        for j, nm in enumerate(names):
            tot += len(nm) * j
        for a, b in zip([1, 2, 3], [4, 5, 6]):
            tot += a * b
        if opt is not None:
            acc = acc + opt
        d: dict[str, Tensor] = {}
        for nm in names:
            d[nm] = acc + len(nm)
        out: list[Tensor] = []
        for k2, v in d.items():
            out.append(v)
        s2 = "_".join(names)
        s3 = f"{s2} has {n} {tot}"
        return acc, torch.stack(out), tot, s3, d, (i, flag)


save("ctl", CtlF(), x, 5, True, ["a", "bcd", "ef"], None)


class Pt(NamedTuple):
    a: Tensor
    b: int
    c: float | None


class NT(nn.Module):
    def forward(self, x: Tensor):
        p = Pt(x * 2, 3, None)
        q = Pt(p.a + p.b, 4, 1.5)
        return p, q, q.a * q.b


save("nt", NT(), x)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class En(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = Color.BLUE

    def forward(self, x: Tensor, e: int):
        r = Color.RED
        if self.c == Color.BLUE and r != self.c:
            return x + 1 + r.value
        return x


save("enum", En(), x, 1)


class Inpl(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.zeros(4))
        self.n = 0
        self.lst = [1, 2]
        self.d = {"k": 1.5}
        self.name = "hello"

    def forward(self, x: Tensor):
        y = x.clone()
        y[0] = 1
        y[1:3, 0] = torch.tensor([5.0, 6.0])
        y[..., 1] += 2
        y[y > 1] *= 3
        y[:, -1].mul_(2)
        y[[0, 2]] = y[[1, 3]]
        self.buf += y.sum(0)
        self.n += 1
        self.lst.append(self.n)
        z = y[None, ::2, 1:].transpose(1, 2)[0].contiguous().view(-1)
        w = y[torch.tensor([0, 1]), :][:, torch.tensor([True, False, True, True])]
        del x
        return y, z, w, self.buf.clone(), self.n, self.lst, self.d["k"], self.name


save("inpl", Inpl(), x)


class Exc(nn.Module):
    def forward(self, x: Tensor, k: int):
        assert k < 10, "k too big"
        if k == 3:
            raise ValueError(f"three {k}")
        if k == 4:
            raise RuntimeError(f"four {k}")
        return x * k


save("exc", Exc(), x, 2)


class Exp(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.m = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})

    def forward(self, x: Tensor):
        for k, v in self.m.items():
            x = v(x)
        return self.helper(x) + self.ign(x)

    @torch.jit.export
    def helper(self, x: Tensor) -> Tensor:
        return self.l(x).sigmoid()

    @torch.jit.export
    def two(self, x: Tensor, k: int = 2) -> tuple[Tensor, int]:
        return self.helper(x) * k, k

    @torch.jit.unused
    def ign(self, x: Tensor) -> Tensor:
        return x


class Exp2(Exp):
    def forward(self, x: Tensor):
        for k, v in self.m.items():
            x = v(x)
        return self.helper(x)


save("export", Exp2(), x)
