"""The GPU device against the CPU: results and gradients of a function on both, and how far they may be apart."""

from support import target

torch = target.torch


def both(f, tensors, dtype=None):
    """Results of `f` on the CPU and on the GPU, and gradients by floating tensors, for one gradient of the (first) output, if it has any."""
    found = []
    for device in ("cpu", "gpu"):
        on = [t.to(device, dtype).detach() for t in tensors]
        leaves = [t.requires_grad_() for t in on if t.is_floating_point()]
        out = f(*on)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if outs[0].requires_grad:
            grad = torch.linspace(-1, 1, outs[0].numel()).reshape(outs[0].shape).to(outs[0].dtype).to(device)
            outs += torch.autograd.grad(outs[0], leaves, grad)
        found.append([t.detach().cpu() for t in outs])
    return found


def close(pairs, tolerance):
    """Asserts that the sides of `both` agree, to a tolerance times what is largest."""
    for i, (a, b) in enumerate(zip(*pairs, strict=True)):
        scale = a.double().nan_to_num(0, 0, 0).abs().max().item() if a.numel() else 0
        torch.testing.assert_close(
            b, a, rtol=0, atol=tolerance * (1 + scale), equal_nan=True, msg=lambda m, i=i: f"{i}: {m}"
        )
