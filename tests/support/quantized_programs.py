"""Programs that quantise models as PyTorch's tutorials do: static, in training, dynamic, by graphs. See `support/quantized.py`."""

import re

from .quantized import numbers


def filled(torch, model):
    """A model whose parameters and statistics are spread numbers."""
    state = model.state_dict()
    for at, (name, value) in enumerate(state.items()):
        if value.dtype == torch.float32 and value.dim():
            made = numbers(torch, *value.shape, scale=0.0625, start=17 * at)
            positive = "running_var" in name or (name.endswith("weight") and value.dim() == 1)
            state[name] = made.abs() + 0.5 if positive else made
    model.load_state_dict(state)
    return model


def rounded(text):
    """Text whose long fractions have five digits."""
    return re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found.group()):.5g}", text)


def network(torch):
    """A convolutional network with a residual sum."""
    nn, quantization = torch.nn, torch.ao.quantization

    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn, self.relu = nn.BatchNorm2d(channels), nn.ReLU()
            self.add = torch.ao.nn.quantized.FloatFunctional()

        def forward(self, x):
            return self.add.add(x, self.relu(self.bn(self.conv(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
            self.conv1, self.bn1, self.relu1 = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU()
            self.block, self.pool, self.avg = Block(4), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1)
            self.fc1, self.relu2, self.fc2 = nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)

        def forward(self, x):
            x = self.pool(self.block(self.relu1(self.bn1(self.conv1(self.quant(x))))))
            return self.dequant(self.fc2(self.relu2(self.fc1(torch.flatten(self.avg(x), 1)))))

    return filled(torch, Net())


FUSED = [["conv1", "bn1", "relu1"], ["block.conv", "block.bn", "block.relu"], ["fc1", "relu2"]]


def static(torch, backend):
    """Static quantisation; the printed model, the keys of its state, results."""
    quantization = torch.ao.quantization
    torch.backends.quantized.engine = backend
    model = quantization.fuse_modules(network(torch).eval(), FUSED)
    model.qconfig = quantization.get_default_qconfig(backend)
    prepared = quantization.prepare(model)
    for step in range(3):
        prepared(numbers(torch, 2, 3, 8, 8, scale=0.25, start=29 * step))
    converted = quantization.convert(prepared)
    return [rounded(str(converted)), list(converted.state_dict()), converted(numbers(torch, 2, 3, 8, 8, scale=0.25))]


def training(torch):
    """Training with quantisation; losses, keys, the printed quantised model, its results."""
    quantization = torch.ao.quantization
    model = network(torch).train()
    model.qconfig = quantization.get_default_qat_qconfig("x86")
    model = quantization.prepare_qat(quantization.fuse_modules_qat(model, FUSED))
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.01), []
    for step in range(4):
        out = model(numbers(torch, 4, 3, 8, 8, scale=0.25, start=29 * step))
        loss = torch.nn.functional.cross_entropy(out, torch.tensor([0, 1, 2, 1]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 1:
            model.apply(quantization.disable_observer)
        if step == 2:
            model.apply(torch.ao.nn.intrinsic.qat.freeze_bn_stats)
    keys = list(model.state_dict())
    converted = quantization.convert(model.eval())
    return [losses, keys, rounded(str(converted)), converted(numbers(torch, 2, 3, 8, 8, scale=0.25))]


def dynamic(torch):
    """Dynamic quantisation of recurrent layers, linear layers and embeddings: printed models and results."""
    nn, quantization = torch.nn, torch.ao.quantization

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.rnn, self.decoder = nn.Embedding(20, 6), nn.LSTM(6, 8, 2, dropout=0.5), nn.Linear(8, 20)

        def forward(self, x):
            made, hidden = self.rnn(self.encoder(x))
            return self.decoder(made), hidden

    words = torch.tensor([[1, 5, 7], [2, 0, 19], [3, 3, 4]])
    model = filled(torch, LanguageModel()).eval()
    with torch.no_grad():
        for dtype in (torch.qint8, torch.float16):
            made = quantization.quantize_dynamic(model, {nn.LSTM, nn.Linear}, dtype=dtype)
            out, (h, c) = made(words)
            yield [str(made), out, h, c]
        for layer in (nn.LSTM(5, 4, 2, bidirectional=True), nn.GRU(5, 4, batch_first=True)):
            made = quantization.quantize_dynamic(nn.Sequential(filled(torch, layer)))
            out, hidden = made(numbers(torch, 4, 3, 5))
            yield [str(made), out, *(hidden if isinstance(hidden, tuple) else (hidden,))]
            if not layer.batch_first:
                x = numbers(torch, 4, 3, 5)
                packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 4, 3]), enforce_sorted=False)
                out, hidden = made[0](packed)
                yield [out.data, *hidden]
        for cell in (nn.LSTMCell(5, 4), nn.GRUCell(5, 4), nn.RNNCell(5, 4)):
            made = quantization.quantize_dynamic(nn.Sequential(filled(torch, cell)))
            out = made(numbers(torch, 3, 5))
            yield [str(made), *(out if isinstance(out, tuple) else (out,))]
        bag = quantization.quantize_dynamic(
            nn.Sequential(filled(torch, nn.EmbeddingBag(9, 8, mode="sum"))), dtype=torch.quint8
        )
        yield [str(bag), bag(torch.tensor([[1, 2], [3, 8]])), bag[0](torch.tensor([1, 2, 4]), torch.tensor([0, 2]))]


def graphs(torch):
    """Graph mode: the code of observed and quantised graphs, and results."""
    import importlib

    passes = importlib.import_module(f"{torch.__name__}.ao.quantization.quantize_fx")
    nn, quantization = torch.nn, torch.ao.quantization

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.relu = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
            self.pool, self.conv2 = nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, padding=1)
            self.fc, self.sigmoid = nn.Linear(64, 3), nn.Sigmoid()

        def forward(self, x):
            x = self.pool(self.relu(self.bn(self.conv(x))))
            y = self.conv2(x)
            x = torch.cat([torch.relu(x + y), y], 1)[:, :4]
            return self.sigmoid(self.fc(torch.flatten(x, 1)))

    x = numbers(torch, 2, 3, 8, 8, scale=0.25)
    model = filled(torch, Net())
    yield [passes.fuse_fx(model.eval()).code]
    prepared = passes.prepare_fx(model.eval(), quantization.get_default_qconfig_mapping("x86"), (x,))
    prepared(x)
    converted = passes.convert_fx(prepared)
    yield [prepared.code, converted.code, rounded(str(converted)), list(converted.state_dict()), converted(x)]
    mapping = quantization.QConfigMapping().set_global(quantization.default_dynamic_qconfig)
    prepared = passes.prepare_fx(model.eval(), mapping, (x,))
    converted = passes.convert_fx(prepared)
    yield [prepared.code, rounded(str(converted)), converted(x)]
    mapping = quantization.get_default_qat_qconfig_mapping("x86").set_module_name("fc", None)
    prepared = passes.prepare_qat_fx(model.train(), mapping, (x,))
    prepared(x)
    yield [prepared.code, passes.convert_fx(prepared.eval()).code]


def cases(torch):
    """(name, what the case gives) of each program."""
    for backend in ("qnnpack", "x86"):
        yield f"static {backend}", static(torch, backend)
    yield "training", training(torch)
    yield from ((f"dynamic {at}", made) for at, made in enumerate(dynamic(torch)))
    yield from ((f"graphs {at}", made) for at, made in enumerate(graphs(torch)))
    configs = torch.ao.quantization
    names = ("fbgemm", "x86", "qnnpack", "onednn")
    shown = [configs.get_default_qconfig(n) for n in names] + [configs.get_default_qat_qconfig(n) for n in names]
    yield "configurations", [str(shown).replace("rustgrad.", "torch.")]
