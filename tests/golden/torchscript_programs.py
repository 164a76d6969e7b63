"""Interfaces, classes, hooks, traces and models as in the field, whose archives are recorded."""

# ruff: noqa: B007, UP031, E702

import torch
from torch import Tensor, nn
from torchscript_cases import save
from torchscript_modules import x


# silero like
class Silero(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 4, 3, padding=1), nn.ReLU())
        self.dec = nn.ModuleDict({"16k": nn.LSTMCell(4, 4)})
        self._state = torch.zeros(0)
        self._ctx = torch.zeros(0)
        self.sr = [8000, 16000]
        self._last = 0

    def forward(self, x: Tensor, sr: int):
        if x.dim() == 1:
            x = x.unsqueeze(0)
        if sr not in self.sr:
            raise ValueError(f"Supported sampling rates: {self.sr}")
        if self._last and self._last != sr:
            self.reset_states(1)
        if not len(self._state):
            self._state = torch.zeros([2, x.shape[0], 4])
        y = self.enc(x.unsqueeze(1)).mean(-1)
        for k, d in self.dec.items():
            h, c = d(y, (self._state[0], self._state[1]))
            self._state = torch.stack([h, c])
        self._last = sr
        return h

    @torch.jit.export
    def reset_states(self, batch_size: int = 1) -> None:
        self._state = torch.zeros(0)
        self._last = 0


save("silero", Silero().eval(), torch.randn(2, 8), 16000, grads=False)


@torch.jit.interface
class Ifc(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Impl(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.l(x)


class UseI(nn.Module):
    i: Ifc

    def __init__(self):
        super().__init__()
        self.i = Impl()

    def forward(self, x: Tensor) -> Tensor:
        v: Ifc = self.i
        return v.forward(x)


save("iface", UseI(), x)


@torch.jit.script
class Acc:
    def __init__(self, k: int):
        self.k = k
        self.l: list[int] = []

    def add(self, v: int) -> int:
        self.l.append(v)
        self.k += v
        return self.k

    def __add__(self, o: int) -> int:
        return self.k + o


class UseC(nn.Module):
    def forward(self, x: Tensor):
        a = Acc(3)
        a.add(4)
        r = a.add(5)
        return x + r, a.l, a + 1


save("cls", UseC(), x)


class Prop(nn.Module):
    def __init__(self):
        super().__init__()
        self._v = 3.0

    @property
    def v(self) -> float:
        return self._v * 2

    @v.setter
    def v(self, nv: float):
        self._v = nv

    def forward(self, x: Tensor):
        self.v = 4.0
        return x * self.v


save("prop", Prop(), x)


class ForkM(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: Tensor):
        f = torch.jit.fork(self.l, x)
        g = torch.jit.fork(foo_, x, 2)
        return torch.jit.wait(f) + torch.jit.wait(g)


def foo_(x, k: int):
    return x * k


save("fork", ForkM(), x)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = self.a
        self.c = nn.Linear(4, 4)
        self.c.weight = self.a.weight

    def forward(self, x):
        return self.a(x) + self.b(x) + self.c(x)


save("shared", Shared(), x)


class NoGradM(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: Tensor):
        with torch.no_grad():
            y = self.l(x)
        return y + self.l(x)


save("nograd", NoGradM(), x)


class Hook(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.l(x)


def hk(self, inp: tuple[Tensor], out: Tensor) -> Tensor:
    return out * 2


def phk(self, inp: tuple[Tensor]) -> tuple[Tensor]:
    return (inp[0] + 1,)


h = Hook()
h.register_forward_hook(hk)
h.register_forward_pre_hook(phk)
save("hook", h, x)


class ClipT(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, stride=4, bias=False)
        self.cls = nn.Parameter(torch.randn(8))
        self.ln = nn.LayerNorm(8)
        self.attn = nn.MultiheadAttention(8, 2)

    def forward(self, x):
        x = self.conv(x.type(self.conv.weight.dtype))
        x = x.reshape(x.shape[0], x.shape[1], -1).permute(0, 2, 1)
        x = torch.cat(
            [self.cls.to(x.dtype) + torch.zeros(x.shape[0], 1, x.shape[-1], dtype=x.dtype, device=x.device), x], dim=1
        )
        x = self.ln(x.type(torch.float32)).type(x.dtype).permute(1, 0, 2)
        x = self.attn(x, x, x, need_weights=False)[0]
        x = x / x.norm(dim=-1, keepdim=True)
        return x.argmax(dim=-1), x


quant = torch.jit.trace(lambda a: torch.cat([a[:, i : i + 1].clone().mul_(2) for i in range(2)], 1), (x,))
save("trace_inpl", quant, x)


def tin(x):
    y = torch.zeros_like(x)
    y[0] = x[1]
    y[:, 1] = 3
    y += x
    y[1:, 2:].fill_(2)
    return y, y * 2


save("trace_inpl2", torch.jit.trace(tin, (x,)), x)


def td(x):
    return {"a": x * 2, "b": x.size(0) * x}


save("trace_dict", torch.jit.trace(td, (x,), strict=False), x)


class Buf(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("np", torch.ones(2), persistent=False)
        self.register_buffer("p", torch.arange(3))
        self.cst = torch.tensor([1.0, 2.0])

    def forward(self, x: Tensor):
        return x.sum() + self.np.sum() + self.cst.sum() + self.p.sum()


save("buf", Buf(), x)
