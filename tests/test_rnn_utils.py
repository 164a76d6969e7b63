"""`nn.utils.rnn`: padding and packing sequences of several lengths."""

import pytest


def rnn(torch):
    return torch.nn.utils.rnn


def sequences(torch, *lengths, width=2):
    start, found = 0, []
    for n in lengths:
        found.append(torch.arange(float(start), start + n * width).reshape(n, width))
        start += n * width
    return found


def test_pad(torch, device):
    short, long = (s.to(device).requires_grad_() for s in sequences(torch, 1, 3))
    padded = rnn(torch).pad_sequence(iter([short, long]), batch_first=True, padding_value=-1.0)
    assert padded.tolist() == [[[0.0, 1.0], [-1.0, -1.0], [-1.0, -1.0]], [[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]]
    (padded * 2).sum().backward()
    assert short.grad.tolist() == [[2.0, 2.0]] and long.grad.tolist() == [[2.0, 2.0]] * 3
    left = rnn(torch).pad_sequence([short, long], padding_side="left")
    assert left.shape == (3, 2, 2) and left[:, 0].tolist() == [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    back = rnn(torch).unpad_sequence(padded.detach(), torch.tensor([1, 3]), batch_first=True)
    assert [b.tolist() for b in back] == [short.tolist(), long.tolist()]


@pytest.mark.parametrize("batch_first", [False, True])
def test_pack_and_back(torch, device, batch_first):
    found = [s.to(device) for s in sequences(torch, 2, 4, 1)]
    padded = rnn(torch).pad_sequence(found, batch_first=batch_first).requires_grad_()
    packed = rnn(torch).pack_padded_sequence(padded, [2, 4, 1], batch_first=batch_first, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.batch_sizes.device.type == "cpu"
    assert packed.sorted_indices.tolist() == [1, 0, 2] and packed.unsorted_indices.tolist() == [1, 0, 2]
    steps = [found[1][0], found[0][0], found[2][0], found[1][1], found[0][1], found[1][2], found[1][3]]
    assert packed.data.tolist() == [s.tolist() for s in steps]
    again, lengths = rnn(torch).pad_packed_sequence(packed, batch_first=batch_first)
    assert again.tolist() == padded.tolist() and lengths.tolist() == [2, 4, 1]
    again.sum().backward()
    assert padded.grad.sum().item() == 14.0
    assert [s.tolist() for s in rnn(torch).unpack_sequence(packed)] == [s.tolist() for s in found]
    long, _ = rnn(torch).pad_packed_sequence(packed, padding_value=9.0, total_length=6)
    assert long.shape == (6, 3, 2) and long[4:].unique().tolist() == [9.0]


def test_packed_sequence(torch):
    packed = rnn(torch).pack_sequence(sequences(torch, 3, 1))
    assert packed.sorted_indices is None and packed.to(torch.float64).data.dtype == torch.float64
    assert packed.cpu() is packed and packed.half().data.dtype == torch.float16 and not packed.is_cuda
    assert isinstance(packed, tuple) and type(packed.long()) is type(packed)
    assert repr(packed).startswith("PackedSequence(data=tensor([[0., 1.],")
    assert rnn(torch).invert_permutation(torch.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    assert rnn(torch).invert_permutation(None) is None
    made = rnn(torch).PackedSequence(torch.ones(2), torch.tensor([2]), torch.tensor([1, 0]))
    assert made.unsorted_indices.tolist() == [1, 0]


def test_refused(torch):
    m, x = rnn(torch), torch.ones(3, 2, 1)
    for lengths, options, message in [
        ([2, 3], {}, "must be sorted in decreasing order when `enforce_sorted` is True"),
        ([0, 3], {"enforce_sorted": False}, "Length of all samples has to be greater than 0"),
        ([3], {}, r"Expected `len\(lengths\)` to be equal to batch_size, but got 1 \(batch_size=2\)"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            m.pack_padded_sequence(x, lengths, **options)
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        m.pack_padded_sequence(torch.ones(0, 2, 1), [1, 1])
    with pytest.raises(ValueError, match="Expected total_length to be at least the length of the longest sequence"):
        m.pad_packed_sequence(m.pack_sequence([torch.ones(3)]), total_length=2)
    with pytest.raises(RuntimeError, match="Expected iterable for input sequences"):
        m.pad_sequence(3)


def test_pinned_sequences_are_the_same(torch):
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2)])
    assert packed.pin_memory().data is packed.data
