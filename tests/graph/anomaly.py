"""Anomaly detection: its warnings and errors, and the metadata of nodes."""


def told(torch, run):
    """The exception of a run in anomaly mode; the warnings are part of the outcome."""
    try:
        run()
    except RuntimeError as error:
        return str(error)
    return "nothing"


def nan(torch):
    x = torch.tensor([-1.0]).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        y = x.sqrt()
        return [told(torch, lambda: y.sum().backward()), "y = x.sqrt()" in "".join(y.grad_fn.metadata["traceback_"])]


def nan_without_forward(torch):
    y = torch.tensor([-1.0]).requires_grad_().sqrt()
    with torch.autograd.set_detect_anomaly(True):
        return told(torch, lambda: y.sum().backward())


def nan_unchecked(torch):
    x = torch.tensor([-1.0]).requires_grad_()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        x.sqrt().sum().backward()
        return [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled(), x.grad]


def nested(torch):
    x = torch.tensor([0.0]).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        y = x.clone().pow(1.5)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (g2,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        return told(torch, lambda: torch.autograd.grad(g2.sum() * 0, x))


def announced(torch):
    with torch.autograd.detect_anomaly():
        return [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]


def switched(torch):
    switch = torch.autograd.set_detect_anomaly(True)
    inside = torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)
    outside = torch.is_anomaly_enabled()
    switch.__exit__(None, None, None)
    return [inside, outside, torch.is_anomaly_enabled()]


def own_error(torch):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("own words")

    x = torch.tensor([-1.0]).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        Fails.apply(x).sum().backward()


def changed(torch):
    x = torch.tensor([1.0]).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        y = x * x
        with torch.no_grad():
            x.add_(1)
        return told(torch, lambda: y.sum().backward()).split(" It was changed")[0]


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
del CASES["told"]
