"""Losses and layers around the ops: ctc by enumeration, chunks, bags, adaptive softmax, random layers, bad input."""

import itertools
import math

import numpy as np
import pytest


def alignments(labels, steps, blank):
    """Every path of classes that reads as `labels` once repetitions and then blanks are removed."""
    classes = sorted({blank, *labels})
    for path in itertools.product(classes, repeat=steps):
        if [c for c, _ in itertools.groupby(path) if c != blank] == labels:
            yield path


@pytest.mark.parametrize(
    "labels, steps, blank", [([1, 2], 4, 0), ([1, 1], 4, 0), ([2], 3, 1), ([], 3, 0), ([1, 1], 2, 0)]
)
def test_ctc_is_the_sum_over_alignments(torch, labels, steps, blank):
    torch.manual_seed(1)
    logits = torch.randn(steps, 1, 4, dtype=torch.float64, requires_grad=True)
    log_probs = logits.log_softmax(2)
    p = log_probs.detach().exp().numpy()[:, 0]
    likelihood = sum(math.prod(p[t, c] for t, c in enumerate(path)) for path in alignments(labels, steps, blank))
    targets = torch.tensor([labels], dtype=torch.int64).reshape(1, len(labels))
    loss = torch.nn.functional.ctc_loss(log_probs, targets, [steps], [len(labels)], blank=blank, reduction="none")
    assert loss.item() == pytest.approx(-math.log(likelihood) if likelihood else math.inf)
    if likelihood:
        loss.sum().backward()
        step = 1e-6
        for t, c in itertools.product(range(steps), range(4)):
            ends = []
            for d in (step, -step):
                moved = logits.detach().clone()
                moved[t, 0, c] += d
                moved = moved.log_softmax(2)
                ends.append(torch.ctc_loss(moved, targets, [steps], [len(labels)], blank).item())
            assert logits.grad[t, 0, c].item() == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-7)


def test_ctc_pads_and_zeroes(torch):
    log_probs = torch.randn(5, 2, 3, dtype=torch.float64).log_softmax(2).requires_grad_()
    targets = torch.tensor([[1, 2], [1, 1]])
    loss = torch.nn.CTCLoss(reduction="none", zero_infinity=True)(log_probs, targets, (3, 2), (1, 2))
    loss.sum().backward()
    assert loss[1].item() == 0 and log_probs.grad[:, 1].abs().sum().item() == 0
    assert log_probs.grad[3:].abs().sum().item() == 0 and log_probs.grad[:3, 0].abs().sum().item() > 0
    together = torch.nn.functional.ctc_loss(log_probs, torch.tensor([1, 1, 1]), (3, 5), (1, 2), reduction="none")
    apart = torch.nn.functional.ctc_loss(log_probs, targets, (3, 5), (1, 2), reduction="none")
    assert together.tolist() == apart.tolist()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", ["classes", "weighted", "probabilities", "one row"])
def test_linear_cross_entropy_in_chunks(torch, reduction, kind):
    torch.manual_seed(0)
    x, w, b = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((7, 3), (5, 3), (5,)))
    target, options = torch.tensor([0, 4, 2, 2, -100, 1, 3]), {"weight": None}
    if kind == "weighted":
        options["weight"] = torch.tensor([1.0, 2, 3, 4, 5], dtype=torch.float64)
    elif kind == "probabilities":
        target = torch.rand(7, 5, dtype=torch.float64)
    elif kind == "one row":
        x, target = x.detach()[0].requires_grad_(), target[1]
    function, found = torch.nn.functional.linear_cross_entropy, []
    for chunked in (None, torch.nn.LinearCrossEntropyOptions(batch_chunk_size=3), torch.nn.LinearCrossEntropyOptions()):
        loss = function(x, w, target, linear_bias=b, reduction=reduction, options=chunked, **options)
        grads = torch.autograd.grad((loss * torch.arange(1.0, loss.numel() + 1).reshape(loss.shape)).sum(), (x, w, b))
        found.append([loss.detach().numpy(), *(g.numpy() for g in grads)])
    for other in found[1:]:
        for got, want in zip(other, found[0], strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-10)


def test_linear_cross_entropy_refuses(torch):
    function, x, w = torch.nn.functional.linear_cross_entropy, torch.ones(2, 3), torch.ones(4, 3)
    with pytest.raises(RuntimeError, match="got 3 and 5"):
        function(x, torch.ones(4, 5), torch.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="ignore_index cannot be specified"):
        function(x, w, torch.ones(2, 4), ignore_index=1)
    with pytest.warns(UserWarning, match="options.* ignored"):
        function(x, w, torch.tensor([0, 1]), label_smoothing=0.1, options=torch.nn.LinearCrossEntropyOptions())
    with pytest.raises(ValueError, match="batch_chunk_size must be positive"):
        torch.nn.LinearCrossEntropyOptions(batch_chunk_size=0)
    with pytest.raises(ValueError, match="invalid chunking_method"):
        torch.nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:0")


def test_adaptive_log_softmax(torch):
    torch.manual_seed(0)
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)
    x, target = torch.randn(5, 8), torch.tensor([0, 3, 6, 11, 2])
    every = layer.log_prob(x)
    assert every.shape == (5, 12) and every.exp().sum(1).tolist() == pytest.approx([1.0] * 5, rel=1e-5)
    output, loss = layer(x, target)
    assert output.tolist() == pytest.approx(every.gather(1, target[:, None])[:, 0].tolist(), rel=1e-5)
    assert loss.item() == pytest.approx(-output.mean().item())
    loss.backward()
    assert all(p.grad is not None for p in layer.parameters())
    assert layer.predict(x).tolist() == every.argmax(1).tolist()
    assert layer(x[0], target[0]).output.item() == pytest.approx(output[0].item(), rel=1e-5)
    with pytest.raises(RuntimeError, match=r"should be in \[0, 11\], but values in range \[0, 12\]"):
        layer(x, torch.tensor([0, 1, 2, 3, 12]))
    with pytest.raises(ValueError, match="cutoffs should be a sequence of unique"):
        torch.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [7, 3])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_is_embedding_and_a_reduction(torch, mode):
    torch.manual_seed(0)
    bag = torch.nn.EmbeddingBag(6, 3, mode=mode, padding_idx=-1)
    assert bag.padding_idx == 5 and bag.weight[5].tolist() == [0, 0, 0]
    index, offsets = torch.tensor([0, 5, 2, 2, 1, 4]), torch.tensor([0, 3, 3])
    out = bag(index, offsets)
    rows = [[0, 2], [], [2, 1, 4]]
    for got, kept in zip(out, rows, strict=True):
        chosen = bag.weight[kept]
        want = torch.zeros(3) if not kept else chosen.amax(0) if mode == "max" else getattr(chosen, mode)(0)
        assert got.tolist() == pytest.approx(want.tolist(), rel=1e-6)
    out.sum().backward()
    assert bag.weight.grad[5].tolist() == [0, 0, 0] and bag.weight.grad[0].abs().sum() > 0
    assert repr(bag) == f"EmbeddingBag(6, 3, mode={mode!r}, padding_idx=5)"


def test_embedding_bag_renormalises_and_weighs(torch):
    weight = torch.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    index = torch.tensor([[0, 1]])
    by = torch.tensor([[2.0, 3.0]], requires_grad=True)
    out = torch.nn.functional.embedding_bag(index, weight, max_norm=1.0, mode="sum", per_sample_weights=by)
    assert weight[0].tolist() == pytest.approx([0.6, 0.8], rel=1e-5)
    assert out.tolist()[0] == pytest.approx([2.1, 2.8], rel=1e-5)
    out.sum().backward()
    assert by.grad.tolist()[0] == pytest.approx([1.4, 0.7], rel=1e-5)
    assert weight.grad.tolist() == [[2, 2], [3, 3]]
    with pytest.raises(RuntimeError, match="offsets must not decrease"):
        torch.nn.functional.embedding_bag(torch.tensor([0, 1]), weight, torch.tensor([0, 2, 1]))
    with pytest.raises(RuntimeError, match="num_embeddings .2. but found idx to be -1"):
        torch.nn.functional.embedding_bag(torch.tensor([0, -1]), weight, torch.tensor([0]))


def test_dropout_of_channels(torch):
    torch.manual_seed(0)
    x = torch.ones(64, 8, 5)
    for layer, shape in (
        (torch.nn.Dropout1d(0.25), (64, 8, 5)),
        (torch.nn.Dropout2d(0.25), (64, 8, 5, 1)),
        (torch.nn.Dropout3d(0.25), (64, 8, 5, 1, 1)),
    ):
        out = layer(x.reshape(shape)).reshape(64, 8, 5)
        assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
        assert (out == out[:, :, :1]).all() and 0.6 < (out[:, :, 0] != 0).float().mean().item() < 0.9
        layer.eval()
        assert layer(x.reshape(shape)).equal(x.reshape(shape))
    with pytest.warns(UserWarning, match="assuming that channel-wise 1D dropout"):
        torch.nn.functional.dropout2d(x)
    y = torch.ones(8, 5)
    assert torch.nn.functional.dropout1d(y, 0.5, inplace=True) is not None and set(y.unique().tolist()) <= {0.0, 2.0}


def test_alpha_dropout_keeps_mean_and_variance(torch):
    torch.manual_seed(0)
    x = torch.randn(200, 200)
    for layer in (torch.nn.AlphaDropout(0.3), torch.nn.FeatureAlphaDropout(0.3)):
        out = layer(x)
        assert abs(out.mean().item()) < 0.02 and abs(out.var().item() - 1) < 0.05
        layer.eval()
        assert layer(x).equal(x)
    y = x.clone()
    assert torch.alpha_dropout_(y, 0.3, True) is y and not y.equal(x)


def test_native_dropout_gives_its_mask(torch):
    torch.manual_seed(0)
    x = torch.randn(30, 30, requires_grad=True)
    out, mask = torch.native_dropout(x, 0.5, True)
    assert mask.dtype == torch.bool and out.equal(x * mask * 2)
    out.sum().backward()
    assert x.grad.equal(mask * 2.0)


def test_rrelu_and_gumbel_softmax(torch):
    torch.manual_seed(0)
    x = torch.linspace(-2, 2, 400, requires_grad=True)
    layer = torch.nn.RReLU(0.1, 0.5)
    out = layer(x)
    slopes = (out / x).detach()[x.detach() < 0]
    assert out[x > 0].equal(x[x > 0]) and 0.1 <= slopes.min() and slopes.max() <= 0.5 and slopes.std() > 0.05
    out.sum().backward()
    assert x.grad[x.detach() < 0].tolist() == pytest.approx(slopes.tolist(), rel=1e-5)
    assert layer.eval()(torch.tensor([-1.0])).item() == pytest.approx(-0.3)
    assert repr(layer) == "RReLU(lower=0.1, upper=0.5)"

    logits = torch.tensor([2.0, 0.0, 1.0]).expand(4000, 3).clone().requires_grad_()
    hard = torch.nn.functional.gumbel_softmax(logits, tau=0.5, hard=True)
    assert hard.detach().sum(1).tolist() == pytest.approx([1.0] * 4000)
    share = hard.detach().mean(0).tolist()
    assert share == pytest.approx(logits[0].softmax(0).tolist(), abs=0.03)
    (hard * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().sum() > 0
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated"):
        torch.nn.functional.gumbel_softmax(logits, eps=1e-5)


def test_modules_are_their_functions(torch):
    torch.manual_seed(0)
    F, nn = torch.nn.functional, torch.nn
    a, b, c = torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)
    sign, labels = torch.tensor([1.0, -1.0, 1.0]), torch.tensor([0, 3, 1])
    listed = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 0, 0]])
    pairs = [
        (nn.PairwiseDistance(p=1, keepdim=True)(a, b), F.pairwise_distance(a, b, 1, keepdim=True)),
        (nn.CosineSimilarity(dim=0)(a, b), F.cosine_similarity(a, b, dim=0)),
        (nn.CosineEmbeddingLoss(0.1)(a, b, sign), F.cosine_embedding_loss(a, b, sign, margin=0.1)),
        (nn.TripletMarginLoss(swap=True)(a, b, c), F.triplet_margin_loss(a, b, c, swap=True)),
        (nn.TripletMarginWithDistanceLoss()(a, b, c), F.triplet_margin_loss(a, b, c)),
        (nn.GaussianNLLLoss(full=True)(a, b, c.abs()), F.gaussian_nll_loss(a, b, c.abs(), full=True)),
        (nn.MultiMarginLoss(p=2)(a, labels), F.multi_margin_loss(a, labels, p=2)),
        (nn.MultiLabelMarginLoss()(a, listed), F.multilabel_margin_loss(a, listed)),
        (nn.MultiLabelSoftMarginLoss()(a, (b > 0).float()), F.multilabel_soft_margin_loss(a, (b > 0).float())),
    ]
    for got, want in pairs:
        assert got.tolist() == want.tolist()
    swapped = F.triplet_margin_with_distance_loss(
        a, b, c, swap=True, distance_function=lambda x, y: (x - y).norm(dim=1)
    )
    assert swapped.item() == pytest.approx(F.triplet_margin_loss(a, b, c, swap=True).item(), rel=1e-4)
    layer = nn.LinearCrossEntropyLoss(4, 6, out_features=(2,), bias=True)
    logits = layer.linear(a).reshape(3, 6, 2)
    target = torch.tensor([[0, 5], [1, 2], [3, 3]])
    assert layer(a, target).item() == pytest.approx(F.cross_entropy(logits, target).item())
    with pytest.warns(FutureWarning, match="NLLLoss2d has been deprecated"):
        nn.NLLLoss2d()


def test_margin_losses_refuse(torch):
    F, x = torch.nn.functional, torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="expected 0 <= target < 3"):
        F.multi_margin_loss(x, torch.tensor([0, 3]))
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Int"):
        F.multi_margin_loss(x, torch.tensor([0, 1], dtype=torch.int32))
    with pytest.raises(RuntimeError, match=r"expected -1 <= target < 3, got -2"):
        F.multilabel_margin_loss(x, torch.tensor([[0, -2, 1], [0, 1, 2]]))
    with pytest.raises(IndexError, match="0 <= target < 3, got 3"):
        F.ctc_loss(torch.ones(4, 1, 3), torch.tensor([[3]]), [4], [1])
    with pytest.raises(ValueError, match="margin must be greater than 0"):
        F.triplet_margin_with_distance_loss(x, x, x, margin=0)
    with pytest.raises(ValueError, match="TripletMarginLoss: expected margin to be greater than 0, got 0 instead"):
        torch.nn.TripletMarginLoss(margin=0)
    with pytest.raises(ValueError, match="MultiMarginLoss: expected weight to be None or 1D tensor, got 2D"):
        torch.nn.MultiMarginLoss(weight=x)


def test_cosine_similarity_computes_in_the_common_dtype(torch):
    f = torch.nn.functional.cosine_similarity
    assert f(torch.tensor(12, dtype=torch.int8), torch.tensor(12.0), dim=-1).item() == 1
    a, b = torch.tensor([[1, 2], [3, -4]]), torch.tensor([[2.0, 4.0], [4.0, 3.0]], dtype=torch.float64)
    torch.testing.assert_close(f(a, b), torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert f(a.half(), a.bfloat16()).dtype is torch.float32
