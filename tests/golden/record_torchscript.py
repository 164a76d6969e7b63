"""Archives of TorchScript as PyTorch writes them, with the results and gradients that it computes; `make golden` runs it with PyTorch.

python tests/golden/record_torchscript.py FILE.zip
"""

# ruff: noqa: B007, UP031, E702
import enum
import io
import math
import sys
import warnings
import zipfile
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
CASES = {}


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return [plain(v) for v in value] if isinstance(value, list) else value


def save(name, m, *args, grads=True, extra=None):
    """Writes an archive, and what the module that PyTorch reads from it computes."""
    scripted = m if isinstance(m, (torch.jit.ScriptModule, torch.jit.ScriptFunction)) else torch.jit.script(m)
    file = io.BytesIO()
    torch.jit.save(scripted, file, **({"_extra_files": extra} if extra else {}))
    file.seek(0)
    read = torch.jit.load(file)
    state = {k: v.clone() for k, v in read.state_dict().items()}
    torch.manual_seed(3)
    out, found = read(*args), None
    if grads and isinstance(out, Tensor) and out.requires_grad:
        out.float().pow(2).sum().backward()
        found = {n: p.grad for n, p in read.named_parameters() if p.grad is not None}
        out = out.detach()
    recorded = io.BytesIO()
    torch.save((args, plain(out), found, state), recorded)
    CASES[name] = without_sources(file.getvalue()), recorded.getvalue()


def without_sources(data):
    """An archive without the lines of the program that its code came from."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            if not info.filename.endswith(".debug_pkl"):
                new.writestr(zipfile.ZipInfo(info.filename), old.read(info))
    return made.getvalue()


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


class Misc(nn.Module):
    def forward(self, x: Tensor):
        y, idx = torch.max(x, dim=1)
        v, i2 = x.topk(2, dim=1)
        a = x.argsort(dim=1)
        st, _ = torch.sort(x, dim=0, descending=True)
        u = torch.unique(idx)
        c = torch.cumsum(x, 0)
        n = torch.norm(x)
        n2 = x.norm(p=2, dim=1, keepdim=True)
        m = torch.einsum("ij,kj->ik", x, x)
        ch = x.chunk(2, dim=1)
        sp = torch.split(x, [1, 3], dim=1)
        w = torch.where(x > 0, x, torch.zeros_like(x))
        w2 = torch.where(x > 0, 1.0, 0.0)
        z = torch.full([2, 3], 1.5)
        ar = torch.arange(5)
        ar2 = torch.arange(0, 1, 0.25)
        ls = torch.linspace(0, 1, 5)
        ey = torch.eye(3)
        mm = torch.matmul(x, x.t())
        bm = torch.bmm(x[None], x.t()[None])
        pd = F.pad(x, [1, 1], mode="constant", value=0.0)
        pd2 = F.pad(x[None], [1, 1], mode="reflect")
        g = torch.gather(x, 1, torch.zeros(5, 1, dtype=torch.long))
        sc = torch.zeros(5, 4).scatter_(1, torch.zeros(5, 1, dtype=torch.long), 1.0)
        ms = x.masked_fill(x > 0, 0.0)
        tr = torch.tril(mm)
        cl = torch.clamp(x, -1, 1)
        std = x.std()
        vr = x.var(dim=1, unbiased=False)
        pr = x.prod()
        e = x.expand(2, 5, 4)
        rp = x.repeat(2, 1)
        fl = torch.flip(x, [0])
        ro = torch.roll(x, 1, 0)
        q = x.to(torch.float64)
        q2 = x.type(torch.float16)
        q3 = x.double()
        q4 = x.long()
        q5 = x.to("cpu")
        q6 = x.to(q)
        lse = torch.logsumexp(x, 1)
        nz = torch.nonzero(x > 0)
        sm = F.softmax(x, dim=-1)
        fft = torch.fft.rfft(x).abs()
        st2 = torch.stft(x.flatten(), 8, 4, window=torch.hann_window(8), return_complex=True).abs()
        sq = x[:, :1].squeeze(1).unsqueeze(-1)
        mesh = torch.meshgrid([torch.arange(2), torch.arange(3)], indexing="ij")
        tt = torch.tensor([[1, 2], [3, 4]], dtype=torch.float)
        inv = torch.linalg.inv(tt)
        svd = torch.linalg.svdvals(tt)
        nrm = torch.linalg.norm(x)
        bc = torch.bincount(idx)
        close = torch.allclose(x, x)
        eq = torch.equal(x, x)
        iss = x.is_floating_point()
        un = x.unfold(1, 2, 1)
        per = x.permute(1, 0)
        mean = torch.mean(x, [0, 1])
        am = torch.amax(x, 1)
        cd = torch.cdist(x, x)
        bt = torch.bitwise_and(idx, 1)
        flo = torch.floor_divide(idx, 2)
        rem = torch.remainder(x, 2)
        po = torch.pow(x.abs(), 2.5)
        pw = 2**x
        rs = 1 - x
        rd = 1 / x.abs()
        fd = x // 1
        iv = x.item() if x.numel() == 1 else 0.0
        gl = F.glu(x, dim=1)
        nrmz = F.normalize(x, dim=1)
        up = F.interpolate(x[None], size=8, mode="linear")
        uf = F.unfold(x[None, None], [2, 2])
        ps = F.pixel_shuffle(x[:4].reshape(1, 4, 2, 2), 2)
        grid = F.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2), align_corners=False)
        aff = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 2, 2], align_corners=False)
        lp = F.lp_pool1d(x[None], 2.0, 2)
        sdpa = F.scaled_dot_product_attention(x[None], x[None], x[None])
        rnd = torch.rand(2) * 0
        rl = torch.randn_like(x) * 0
        dr = F.dropout(x, 0.0, True)
        ap = F.adaptive_max_pool1d(x[None], 2)
        mp = F.max_pool1d(x[None], 2, ceil_mode=True)
        avp = F.avg_pool2d(x[None, None], 2)
        return [
            y,
            idx,
            v,
            i2,
            a,
            st,
            u,
            c,
            n,
            n2,
            m,
            ch[0],
            sp[1],
            w,
            w2,
            z,
            ar,
            ar2,
            ls,
            ey,
            mm,
            bm,
            pd,
            pd2,
            g,
            sc,
            ms,
            tr,
            cl,
            std,
            vr,
            pr,
            e,
            rp,
            fl,
            ro,
            q,
            q2,
            q3,
            q4,
            q5,
            q6,
            lse,
            nz,
            sm,
            fft,
            st2,
            sq,
            mesh[0],
            tt,
            inv,
            svd,
            nrm,
            bc,
            un,
            per,
            mean,
            am,
            cd,
            bt,
            flo,
            rem,
            po,
            pw,
            rs,
            rd,
            fd,
            gl,
            nrmz,
            up,
            uf,
            ps,
            grid,
            aff,
            lp,
            sdpa,
            rnd,
            rl,
            dr,
            ap,
            mp,
            avp,
        ], (close, eq, iss, iv)


save("misc", Misc(), x)


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

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name, (data, recorded) in CASES.items():
        archive.writestr(zipfile.ZipInfo(f"{name}.pt"), data, zipfile.ZIP_DEFLATED, 9)
        archive.writestr(zipfile.ZipInfo(f"{name}.ref"), recorded, zipfile.ZIP_DEFLATED, 9)
print(f"{len(CASES)} archives")
