"""Modules that call many ops, whose archives are recorded."""

# ruff: noqa: B007, UP031, E702

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchscript_cases import save
from torchscript_modules import x


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
        return [
            y, idx, v, i2, a, st, u, c, n, n2, m, ch[0], sp[1], w, w2, z, ar, ar2, ls, ey, mm, bm, pd, pd2, g,
            sc, ms, tr, cl, std, vr, pr, e, rp, fl, ro, q, q2, q3, q4, q5, q6, lse, nz, sm, fft, st2, sq,
            mesh[0], tt, inv, svd, nrm, bc,
        ]  # fmt: skip


save("misc", Misc(), x)


class MoreMisc(nn.Module):
    def forward(self, x: Tensor):
        idx = x.argmax(1)
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
            un, per, mean, am, cd, bt, flo, rem, po, pw, rs, rd, fd, gl, nrmz, up, uf, ps, grid, aff, lp, sdpa,
            rnd, rl, dr, ap, mp, avp,
        ], (close, eq, iss, iv)  # fmt: skip


save("misc2", MoreMisc(), x)
