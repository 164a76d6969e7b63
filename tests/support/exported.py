"""Exports a module to ONNX and compares what onnxruntime computes with what the module does."""

from support import target

torch = target.torch


class Of(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def tensors(result):
    """The tensors of a result, in order."""
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def same(module, args, others=(), tolerance=1e-4, **options):
    """Exports, checks the file, and compares the results for `args` and for `others`; the program."""
    import onnx

    module = module if isinstance(module, torch.nn.Module) else Of(module)
    program = torch.onnx.export(module.eval(), args, **options)
    onnx.checker.check_model(program.model, full_check=True)
    for given in (args, *others):
        with torch.no_grad():
            expected = tensors(module(*given))
        got = program(*given)
        assert len(got) == len(expected)
        for a, b in zip(got, expected):
            assert a.shape == b.shape and a.dtype == b.dtype
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return program
