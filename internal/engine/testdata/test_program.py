"""Tests of the recorder of programs: PYTHONPATH=runner python -m unittest testdata/test_program.py, with torch.

Each model is small and does what is hard to record. What its program replays to must be what torchhooks
has recorded, and the model must compute the same, recorded or not.
"""

import gc
import json
import os
import pathlib
import sys
import tempfile
import unittest

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from replay import replay  # noqa: E402

from goparity import parity_tap, program, programcut, programfake, programframes, torchhooks  # noqa: E402


class Of(nn.Module):
    """A model of a function (self, x), with weights and buffers by name."""

    def __init__(self, f, weights=(), buffers=(), hidden=(), **modules):
        super().__init__()
        self.f = f
        for name, t in dict(weights).items():
            setattr(self, name, nn.Parameter(t))
        for name, t in dict(buffers).items():
            self.register_buffer(name, t)
        for name, t in dict(hidden).items():
            self.register_buffer(name, t, persistent=False)
        for name, m in modules.items():
            setattr(self, name, m)

    def forward(self, x):
        return self.f(self, x)


def rand(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def part(m, x):
    y = x.clone()
    before, row = y[:, 1:3] * 2, y[0]
    y[:, 1:3] += 10
    return before, row, y


def parts(m, x):
    y = x * 1
    a, b = y.chunk(2, -1)
    a.mul_(2)
    b.copy_(a)
    u = y.unbind(0)[0]
    u[1] = 7
    y.transpose(0, 1)[2].zero_()
    y.view(-1)[3:5].fill_(3.5)
    torch.diagonal(y[:, :3]).neg_()
    y[2:] //= torch.tensor(0.5)
    return y, a, b, u


def indexed(m, x):
    y = x.clone().t()
    y[torch.tensor([0, 2])] = y[torch.tensor([1, 3])]
    y[y > 1] = 0.0
    y.index_add_(0, torch.tensor([1, 1]), torch.ones(2, 3))
    y.scatter_(1, torch.tensor([[0, 1, 2]]), 4.0)
    return y.masked_fill_(y < -1, float("-inf")), y.contiguous()


def cached(m, x):
    m.cache[:, m.n : m.n + x.shape[1]] = x
    m.n += x.shape[1]
    return m.cache.sum(1), m.cache


def static_cache(m, x):
    m.cache.index_copy_(1, torch.arange(x.shape[1]) + m.n, x)
    m.n += x.shape[1]
    return m.cache[:, : m.n] * 2


def rotated(m, x):
    angle = torch.outer(torch.arange(3.0), m.inv_freq)
    turn = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(torch.view_as_complex(x.reshape(3, 2, 2)) * turn).flatten(1)


def swapped(m, x):
    y = x.clone()
    y.data = x * 3
    z = torch.empty(3, 4)
    torch.mul(y, 2, out=z)
    z.t_()
    return y, z, z.unsqueeze_(0)


def attended(m, x):
    q = x.reshape(1, 4, 3, 1).expand(1, 4, 3, 8).contiguous()
    k = q[:, :2].cos()
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    return (F.scaled_dot_product_attention(q, k, k * 2, is_causal=True, enable_gqa=True),
            F.scaled_dot_product_attention(q, q, q, attn_mask=mask, scale=0.3))  # fmt: skip


PIXELS, PATCHES = rand(1, 4, 2, 2), rand(1, 1, 4, 4)


def tail(m, x):
    y = x.unsqueeze(0)
    return (F.celu(x), F.softsign(x), torch.addcmul(x, x, x, value=0.3), F.glu(x), F.pixel_shuffle(PIXELS, 2), torch.einsum("ab,cb->ac", x, x),
            F.interpolate(y, scale_factor=2, mode="linear"), x.index_fill(0, torch.tensor([1]), 2.0), torch.isin(x, x[0]), F.rms_norm(x, (4,)),
            F.instance_norm(y), F.unfold(PATCHES, 2), torch.cumprod(x, 1), x.std(1), torch.lerp(x, x + 1, 0.3), F.normalize(x))  # fmt: skip


def bags(m, x):
    ids, starts, some = torch.tensor([1, 2, 0, 3, 3, 2]), torch.tensor([0, 2, 2]), torch.tensor([0, 3, 6])
    return [F.embedding_bag(ids, m.w, starts, mode=mode, padding_idx=pad) for mode in ("sum", "mean", "max") for pad in (None, 3)] + [
        F.embedding_bag(ids, m.w, starts, mode="sum", per_sample_weights=x.flatten()[:6]), m.bag(ids, some)]  # fmt: skip


def pictures(m, x):
    """What is taken apart: pools, sizes of pictures, windows, metrics of a batch, ranks."""
    y = m.conv(x.view(1, 1, 3, 4).repeat(2, 1, 2, 2))
    small = F.interpolate(y, (4, 5), mode="bicubic", antialias=True)
    return [F.max_pool2d(y, 3, 2, 1, ceil_mode=True), F.avg_pool2d(y, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.interpolate(y, (7, 5), mode="bilinear"), small, F.adaptive_avg_pool2d(y, (4, 3)), F.unfold(y, (2, 3), padding=(1, 0)),
            F.instance_norm(y), y.flatten(2).median(-1)[0], y.kthvalue(2)[0], torch.cdist(small[0], small[1]), F.pad(y, (1, 2, 0, 1), "reflect")]  # fmt: skip


def strided(m, x):
    y = x.t().exp()  # in the order of x's memory
    y[1:].as_strided((2, 2), (1, 4)).add_(1)
    return y, torch.as_strided(y, (2, 3), (2, 1), 1)


def temporaries(m, x):
    for i in range(40):  # tensors that die, whose ids others get
        x = (x + i).sin() * torch.tensor([1.0, 2.0, 3.0, 4.0 + i])
    return x


def tapped(m, x):
    return parity_tap(m.lin(parity_tap(x * 2, "twice")), "out")


def drawn(m, x):
    y = torch.rand(3, 4) + x
    return F.dropout(y, 0.5, training=True), torch.empty(3, 4).normal_() * x


def typed(m, x):
    y = torch.zeros(3, 4, dtype=torch.bfloat16)
    y += x
    y[0] = x[1]
    n = torch.arange(4)
    n += 2
    return y, n, y.view(torch.int16), torch.full_like(n, 3), n.float().masked_fill(n > 3, float("inf"))


def fused(m, x):
    q, k = m.w[:4], m.w[4:]
    return x @ q.t() + x @ k.t(), m.w.t()[1], m.lin(x)


def tied():
    m = Of(lambda m, x: m.b(m.a(x)), a=nn.Linear(4, 4, bias=False), b=nn.Linear(4, 4, bias=False))
    m.b.weight = m.a.weight
    return m


def view_kept():
    m = Of(fused, {"w": rand(8, 4)}, lin=nn.Linear(4, 4, bias=False))
    m.lin.weight = nn.Parameter(m.w[2:6])  # a view of another weight
    return m


class Counted(Of):
    n = 0


X = rand(3, 4, seed=9)
MODELS = {
    "part": (lambda: Of(part), [X]),
    "parts": (lambda: Of(parts), [X]),
    "indexed": (lambda: Of(indexed), [X]),
    "cache in slices": (lambda: Counted(cached, buffers={"cache": torch.zeros(3, 8)}), [X, rand(3, 2), rand(3, 2, seed=3)]),
    "cache by index": (lambda: Counted(static_cache, hidden={"cache": torch.zeros(3, 8)}), [X, rand(3, 2)]),
    "complex": (lambda: Of(rotated, hidden={"inv_freq": torch.tensor([1.0, 0.1])}), [X]),
    "swapped": (lambda: Of(swapped), [X]),
    "attention": (lambda: Of(attended), [X]),
    "tail": (lambda: Of(tail), [X]),
    "strided": (lambda: Of(strided), [X]),
    "bags": (lambda: Of(bags, {"w": rand(4, 5)}, bag=nn.EmbeddingBag(4, 2, include_last_offset=True)), [X]),
    "pictures": (lambda: Of(pictures, conv=nn.Conv2d(1, 2, 2)), [X]),
    "temporaries": (lambda: Of(temporaries), [X]),
    "taps": (lambda: Of(tapped, lin=nn.Linear(4, 2)), [X]),
    "types": (lambda: Of(typed), [X]),
    "tied": (tied, [X]),
    "views of weights": (view_kept, [X]),
    "batch norm": (lambda: Of(lambda m, x: m.bn(x), bn=nn.BatchNorm1d(4)), [X]),
    "gru": (lambda: Of(lambda m, x: m.rnn(x)[0], rnn=nn.GRU(4, 3, bias=True)), [X]),
    "lstm": (lambda: Of(lambda m, x: m.rnn(x[:, None])[0], rnn=nn.LSTM(4, 3, bidirectional=True, num_layers=2)), [X]),
    "called twice": (lambda: Of(lambda m, x: m.lin(m.lin(x)), lin=nn.Linear(4, 4)), [X, X]),
    "experts": (lambda: Of(lambda m, x: x[(x.sum(-1) > 0).nonzero()[:, 0]] * 2), [X]),
}


class TestPrograms(unittest.TestCase):
    maxDiff = None

    def test_replay(self):
        for name, (make, inputs) in MODELS.items():
            for context in (torch.no_grad, torch.inference_mode, torch.enable_grad):
                if context is torch.enable_grad and name not in ("complex", "attention", "tied", "taps"):
                    continue  # a leaf that is written, or numbers without a gradient
                with self.subTest(name, mode=context.__name__):
                    self._same(make, inputs, context)

    def _same(self, make, inputs, context):
        runs = []
        for kind in ("plain", "tensors", "program"):
            torch.manual_seed(1)
            model = make().eval()
            with context():
                if kind == "plain":
                    runs.append([model(x.clone()) for x in inputs])
                elif kind == "tensors":
                    hooks, want = torchhooks.Recorder(model), {}
                    for step, x in enumerate(inputs):
                        model(x.clone())
                        want.update({(str(step), f"{layer}-{port}"): t for layer, port, t in hooks.take()})
                    hooks.remove()
                else:
                    weights = {n: t.detach().clone() for n, t in model.state_dict(keep_vars=True).items()}
                    with program.Recorder(model, "case") as p:
                        runs.append([model(x.clone()) for x in inputs])
        self.assertIsNone(p.error)
        for a, b in zip(*runs):
            for t, u in zip(torchhooks.returned(a), torchhooks.returned(b)):
                self.assertEqual(t, u, "recording changes the result")
        with tempfile.TemporaryDirectory() as folder:
            p.save(folder)
            got, env = replay(folder, weights)
        have = {(q["step"], label): value for q in got["passes"] for label, (value, *_) in q["ports"].items()}
        self.assertEqual(set(want), set(have))
        for key, t in want.items():
            value = env[int(have[key][1:])]
            self.assertEqual((t.shape, t.dtype), (value.shape, value.dtype), key)
            torch.testing.assert_close(value, t, equal_nan=True, rtol=1e-6, atol=1e-6, msg=lambda m, key=key: f"{key}: {m}")

    def test_weights(self):
        with torch.no_grad(), program.Recorder(tied()) as p:
            p.model(X)
        self.assertEqual({"b.weight": "a.weight"}, p.graph.aliases)
        self.assertEqual(["a.weight"], [v["from"]["weight"] for v in p.program()["values"] if "weight" in v["from"]])
        with torch.no_grad(), program.Recorder(view_kept()) as p:
            p.model(X)
        self.assertEqual(["input:0:0"], sorted(p.graph.constants), "no bytes of a weight are kept")
        norm = nn.BatchNorm1d(4).eval()
        with torch.no_grad(), program.Recorder(norm) as p:
            norm(X)
        kept = [v["from"]["buffer"] for v in p.program()["values"] if "buffer" in v["from"]]
        self.assertEqual(["buffer:running_mean", "buffer:running_var"], sorted(kept), "a checkpoint may have parameters alone")
        self.assertLessEqual(set(kept), set(programcut.constants(p.program()["values"])) & set(p.graph.constants))

    def test_checkpoint_names(self):
        """Weights have the names that a checkpoint of transformers has for them, too; a part of a weight has none."""
        import transformers

        tiny = dict(hidden_size=16, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, vocab_size=9)
        mixtral = transformers.MixtralForCausalLM(transformers.MixtralConfig(num_key_value_heads=1, num_local_experts=2, **tiny)).eval()
        bert = transformers.BertModel(transformers.BertConfig(**tiny)).eval()
        for model, want in (
            (mixtral, {f"model.layers.0.block_sparse_moe.{k}": f"model.layers.0.mlp.{k}"
                       for k in ("experts.gate_up_proj", "experts.down_proj", "gate.weight")}),
            (bert, {f"{k}.LayerNorm.{old}": f"{k}.LayerNorm.{new}" for old, new in (("gamma", "weight"), ("beta", "bias"))
                    for k in ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output")}),
        ):  # fmt: skip
            with torch.no_grad(), program.Recorder(model) as p:
                model(input_ids=torch.tensor([[1, 2, 3]]))
            self.assertEqual(want, p.graph.aliases)
        nomic = transformers.NomicBertModel(transformers.NomicBertConfig(**tiny)).eval()
        with torch.no_grad(), program.Recorder(nomic) as p:
            nomic(input_ids=torch.tensor([[1, 2, 3]]))
        self.assertEqual("layers.0.mlp.up_proj.weight", p.graph.aliases["encoder.layers.0.mlp.fc11.weight"])
        self.assertFalse([k for k in p.graph.aliases if "Wqkv" in k])

    def test_nothing_kept(self):
        """No tensor lives longer, and what is recorded of one is not taken for another's."""
        model = Of(temporaries).eval()
        with torch.no_grad(), program.Recorder(model) as p:
            model(X)
            gc.collect()
            self.assertLess(len(p.graph._held), 8)

    def test_ports(self):
        model = Of(lambda m, x: m.lin(m.lin(x * 2)), lin=nn.Linear(4, 4))
        with torch.no_grad(), program.Recorder(model) as p:
            model(X)
        got = p.program()
        self.assertEqual({"model.lin-input_0": 1, "model.lin(2)-input_0": len(got["ops"]) // 2 + 1},
                         {k: at for k, (_, at, _) in got["passes"][0]["ports"].items() if k.startswith("model.lin") and "input" in k})  # fmt: skip
        for label, (_, at, until) in got["passes"][0]["ports"].items():
            self.assertTrue(at < until if "input" in label else at == until, label)
        self.assertEqual(["0", [0, len(got["ops"])]], [got["passes"][0]["step"], got["passes"][0]["ops"]])
        self.assertEqual([("model", 1), ("model.lin", 1), ("model.lin", 2)], sorted({(o["layer"], o["call"]) for o in got["ops"]}))
        self.assertEqual(["Of", "test_program.py"], got["modules"]["model"][:2])

    def test_random(self):
        """Random numbers are made by operators that say so; their bytes are not kept."""
        model = Of(drawn)
        with torch.no_grad(), program.Recorder(model) as p:
            model(X)
        got = p.program()
        self.assertEqual([("aten.rand.default", True), ("aten.add.Tensor", None), ("aten.full.default", None), ("aten.bernoulli_.float", True),
                          ("aten.div.Scalar", None), ("aten.mul.Tensor", None), ("aten.full.default", None), ("aten.normal_.default", True),
                          ("aten.mul.Tensor", None)], [(o["op"], o.get("random")) for o in got["ops"]])  # fmt: skip
        self.assertFalse(any("constant" in v["from"] or "data" in v["from"] for v in got["values"]))
        with torch.no_grad(), program.Recorder(Of(lambda m, x: F.dropout(x, 0.0, training=True) * 2)) as p:
            p.model(X)
        self.assertFalse(any("random" in o for o in p.program()["ops"]), "dropout of nothing")

    def test_guards(self):
        """What Python is told of numbers holds until the module ends, and around it where it returns numbers."""
        inner = Of(lambda m, x: (x * 2, (x.sum(-1) > 9).sum().item() + 1))
        outer = Of(lambda m, x: x.sin() if x.amax().item() > 99 else x[: m.inner(x)[1]].cos() + 1, inner=inner)
        model = Of(lambda m, x: m.outer(x).exp(), outer=outer)
        with torch.no_grad(), program.Recorder(model) as p:
            model(X)
        self.assertTrue(p.depends)
        got = p.program()
        names = [o["op"].split(".")[1] for o in got["ops"]]
        self.assertEqual(["amax", "mul", "sum", "gt", "sum", "slice", "cos", "add", "exp"], names)
        self.assertEqual([[1, 8], [5, 8]], [g["ops"] for g in got["guards"]], "of one float, and of a count that went to the module around")
        self.assertEqual([round(X.amax().item(), 5)], [round(x, 5) for x in got["guards"][0]["equal"]])
        self.assertEqual([0], got["guards"][1]["equal"])
        self.assertEqual(names.index("amax"), got["values"][int(got["guards"][0]["value"][1:])]["from"]["op"])

    def test_guards_of_lists(self):
        split = lambda x, n: torch.cat(x.flatten()[: sum(n)].split(n))  # noqa: E731
        for f, want, reason in (
            (lambda m, x: split(x, (x > 0).sum(-1).tolist()), [[[int(n) for n in (X > 0).sum(-1)], 2]], "sizes"),
            (lambda m, x: x * float(x.detach().numpy()[0, 0] > 9), [[X.flatten().tolist(), 0]], "numpy"),
            (lambda m, x: x * len(f"{x} {x[0, 0]}"), [], "text"),
            (lambda m, x: x * torch.arange(3).sum().item(), [], "hangs on no data"),
            (lambda m, x: x * x.shape[0], [], "a size that was given"),
        ):  # fmt: skip
            with torch.no_grad(), program.Recorder(Of(f)) as p:
                p.model(X)
            self.assertEqual(want, [[g["equal"], g["ops"][0]] for g in p.program()["guards"]], reason)
        self.assertNotIn("tolist", vars(torch.Tensor), "torch is as it was")

    def test_frames(self):
        def scaled(m, x):
            return helper(x) * 0.5

        def helper(x):
            return x.sin() + 1

        def decorated(f):
            def wrapper(self, x, **kwargs):
                return f(self, x, **kwargs)

            return wrapper

        for frames, want in (("text", "x.sin()"), ("lines", ""), (None, None)):
            model = Of(decorated(scaled))
            with torch.no_grad(), program.Recorder(model, frames=frames) as p:
                model(X)
            got = p.program()
            if frames is None:
                self.assertEqual(([], [], False), (got["frames"], got["stacks"], "stack" in got["ops"][0]))
                continue
            stack = [got["frames"][i] for i in got["stacks"][got["ops"][0]["stack"]]]
            self.assertEqual(["test_program.py"] * 3, [f[0] for f in stack], "the model's own, not this test's")
            self.assertEqual(want, stack[0][4])
            self.assertEqual(set(range(len(got["frames"]))), {i for s in got["stacks"] for i in s}, "each is in a stack")
            self.assertEqual("helper(x)" if want else "", stack[1][4])
        with self.assertRaises(ValueError):
            program.Recorder(model, frames="all")

    def test_secrets(self):
        for text, want in {
            'load(token="hf_abcdefGHIJ1234567890")': 'load(token="[secret]")',
            "key = '0123456789abcdef0123456789abcdef'": "key = '[secret]'",
            "self.post_attention_layernorm(hidden_states)": "self.post_attention_layernorm(hidden_states)",
            "x[:, 1:] * self.scale_2": "x[:, 1:] * self.scale_2",
        }.items():
            self.assertEqual(want, programframes.shown(text))
        self.assertLessEqual(len(programframes.shown("x + " * 100)), 160)

    def test_errors(self):
        """The model's own errors come through; the recorder's do not reach it."""

        def fails(m, x):
            raise RuntimeError("of the model")

        model = Of(fails)
        with self.assertRaisesRegex(RuntimeError, "of the model"), program.Recorder(model):
            model(X)
        self.assertFalse(model._forward_hooks or model._forward_pre_hooks)
        model = Of(lambda m, x: x * 2)
        with torch.no_grad(), program.Recorder(model) as p:
            p.graph.emit = None
            self.assertTrue(torch.equal(model(X), X * 2))
        with self.assertRaisesRegex(Exception, "the program was not recorded: TypeError"):
            p.save("nowhere")

    def test_between_passes(self):
        """What a cache goes through between two passes belongs to the later one; what nobody needs is left out."""
        model = Of(lambda m, x: (x[0] * 2, x[1]) if isinstance(x, tuple) else (x, x + 1))
        with torch.no_grad(), program.Recorder(model) as p:
            _, cache = model(X)
            held = Held(cache.flip(0))
            cache.exp().argmax()
            model.f = lambda m, x: x * held.tensor
            model(X)
        got = p.program()
        self.assertEqual(["aten.add.Tensor", "aten.flip.default", "aten.mul.Tensor"], [o["op"] for o in got["ops"]])
        self.assertEqual([[0, 1], [1, 3]], [q["ops"] for q in got["passes"]])

    def test_fake(self):
        """Without weights in memory, the program is the same."""
        torch.manual_seed(0)

        def make():
            return Of(lambda m, x: m.norm(m.lin(x)) * m.table, hidden={"table": rand(40)}, lin=nn.Linear(4, 40), norm=nn.LayerNorm(40)).eval()

        with programfake.no_weights():
            fake = make()
        self.assertEqual("FakeTensor", type(fake.lin.weight).__name__)
        self.assertFalse(torch.equal(make().lin.weight, make().lin.weight), "torch.nn.init is as it was")
        models = [make(), fake, make()]
        texts = []
        for model in models[:2]:
            with torch.no_grad(), program.Recorder(model) as p:
                model(x=X)
            texts.append(_saved(p))
        before = models[2].lin.weight
        texts.append(_saved(programfake.record_fake(models[2], [{"x": X}])))
        self.assertIs(before, models[2].lin.weight)
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0]["ops"], texts[2]["ops"])

    def test_fake_apart(self):
        """Matrices and counts of operators that are taken apart hang on no weight."""
        model = Of(pictures, conv=nn.Conv2d(1, 2, 2)).eval()
        with torch.no_grad(), program.Recorder(model) as p:
            model(x=X)
        want, got = _saved(p), _saved(programfake.record_fake(model, [{"x": X}]))
        self.assertEqual(want["ops"], got["ops"])
        self.assertEqual(want["values"], got["values"])


class Held:
    """Hides a tensor from the arguments of a model."""

    def __init__(self, tensor):
        self.tensor = tensor


def _saved(p):
    with tempfile.TemporaryDirectory() as folder:
        p.save(folder)
        return json.loads((pathlib.Path(folder) / "program.json").read_text())


if __name__ == "__main__":
    unittest.main()
