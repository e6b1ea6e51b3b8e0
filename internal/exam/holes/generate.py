"""Writes cases in which something true excuses what it must not: runs that once passed, or were accused wrongly. See README.md."""

import argparse
import copy
import json
import pathlib
import shutil
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine" / "runner"))
from goparity import program  # noqa: E402
from goparity.torchhooks import Recorder  # noqa: E402

WIDTH, HEADS, EXPERTS, BLOCKS, VOCABULARY = 48, 4, 6, 4, 96


class Attention(nn.Module):
    """Causal, with a cache: [keys, values], each [1, heads, tokens, width]."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x, cache):
        q, k, v = (p(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        if cache:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        cache[:] = [k, v]
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        n, past = q.shape[2], k.shape[2] - q.shape[2]
        scores = scores.masked_fill(~torch.ones(n, past + n, dtype=torch.bool).tril(past), float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), k.transpose(1, 2), v.transpose(1, 2)


class Experts(nn.Module):
    """The best expert of each token."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, 2 * WIDTH) / WIDTH**0.5)
        self.down = nn.Parameter(torch.randn(EXPERTS, 2 * WIDTH, WIDTH) / WIDTH**0.5)

    def forward(self, x):
        scores, chosen = self.gate(x).softmax(-1).topk(1)
        every = torch.einsum("bse,nef->bsnf", x, self.up).relu()
        every = torch.einsum("bsnf,nfe->bsne", every, self.down)
        return every.gather(2, chosen[..., None].expand(-1, -1, -1, WIDTH))[:, :, 0] * scores


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.moe = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH), Experts()

    def forward(self, x, cache):
        a, k, v = self.attn(self.norm1(x), cache)
        x = x + a
        return x + self.moe(self.norm2(x)), k, v


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.layers, self.lm_head = nn.ModuleList(Block() for _ in range(BLOCKS)), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, input_ids, caches):
        x = self.embed_tokens(input_ids)
        for block, cache in zip(self.layers, caches):
            x = block(x, cache)[0]
        return self.lm_head(self.norm(x))


class Flat(nn.Module):
    """Layers without a dot in their names, and code between them."""

    def __init__(self):
        super().__init__()
        self.embed_tokens, self.lm_head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        for i in range(4):
            self.add_module(f"L{i}_mlp", nn.Linear(WIDTH, WIDTH))
        self.scale = 2.0

    def forward(self, input_ids, caches):
        x = self.embed_tokens(input_ids)
        for i in range(4):
            x = torch.tanh(self.get_submodule(f"L{i}_mlp")(x * self.scale if i == 2 else x))
        return self.lm_head(x * self.scale)


def run(model, steps, plant=lambda step, caches: None, change=lambda step, label, t: t):
    """The records of each step. plant changes the caches before a step, change what is recorded."""
    recorder, out, caches = Recorder(model), [], [[] for _ in range(BLOCKS)]
    for i, ids in enumerate(steps):
        plant(i, caches)
        model(ids, caches)
        out.append([(layer, port, change(i, f"{layer}-{port}", t)) for layer, port, t in recorder.take()])
    recorder.remove()
    return out


def write(folder, case, steps, encoding="float32"):
    folder.mkdir(parents=True)
    order = []
    for i, records in enumerate(steps):
        save_file({f"{layer}-{port}": t.clone().contiguous() for layer, port, t in records}, folder / f"{i}.safetensors")
        order += [[str(i), layer, port, f"{i}.safetensors"] for layer, port, _ in records]
    schema = 2 if isinstance(encoding, dict) else 1
    about = {"schema": schema, "engine": "torch", "mode": "standard", "case": case, "encoding": encoding, "order": order}
    (folder / "run.json").write_text(json.dumps({"schema": schema, "cases": [about]}))


def tie(model, ids, layer, token, gap=2e-6):
    """Makes the second best expert of a token as good as the best, but for a gap; returns what makes it the best."""
    moe, seen = model.layers[layer].moe, []
    handle = moe.register_forward_pre_hook(lambda m, a: seen.append(a[0]))
    model(ids, [[] for _ in range(BLOCKS)])
    handle.remove()
    x = seen[0][0, token]
    best, second = moe.gate(x).topk(2).indices.tolist()
    moe.gate.weight[second] += x * ((moe.gate.weight[best] - moe.gate.weight[second]) @ x - gap) / (x @ x)

    def other(candidate):
        candidate.layers[layer].moe.gate.weight[second] += x * 2 * gap / (x @ x)

    return other


def noise(layer):
    """A module that returns noise."""

    def plant(candidate):
        g = torch.Generator().manual_seed(1)
        candidate.get_submodule(layer).register_forward_hook(lambda m, a, o: torch.randn(o.shape, generator=g).to(o.dtype))

    return plant


def later(layer):
    """A module that returns too much from the fourth token on."""

    def plant(candidate):
        candidate.get_submodule(layer).register_forward_hook(lambda m, a, o: torch.cat([o[:, :3], 1.5 * o[:, 3:]], 1))

    return plant


def lost(step, caches):
    """Every later step has keys of other tokens."""
    if step:
        for c in caches[1:]:
            c[0] = c[0].roll(1, 2)


def cache(how, cause):
    """The keys of the last step, of which nobody reads more: changed in the record alone."""

    def change(step, label, t):
        return how(t) if step == 2 and label == "model.layers.1.attn-output_1" else t

    return {"change": change, "at": "model.layers.1.attn", "kind": "between", "also_kind": ["local", "capture"], "cause": cause}


def narrow(model):
    """Keys and values of 8 bits."""
    for block in model.layers:
        for p in (block.attn.k, block.attn.v):
            p.register_forward_hook(lambda m, a, o: o.to(torch.float8_e4m3fn).to(o.dtype))


def larger(layer, by):
    """A module that returns too much."""

    def plant(candidate):
        narrow(candidate)
        candidate.get_submodule(layer).register_forward_hook(lambda m, a, o: o * by)

    return plant


KV8 = {"compute": "float32", "kv_cache": "float8_e4m3fn"}


def scaled_between(candidate):
    candidate.scale = 1.7


# Name → what is wrong (run's arguments, plants), and where: layer, as right, kinds.
CASES = {
    "tie": {"tie": (0, 0)},
    "tie_hides_all": {"tie": (0, 0), "plant": noise("layers.1.moe"), "at": "model.layers.1.moe", "kind": "local", "also_kind": ["between"]},
    "tie_hides_decode": {"tie": (2, 8), "caches": lost, "at": "model.layers.1.attn", "kind": "between", "also_kind": ["local", "input"],
                         "also": ["model.layers.1", "model"], "cause": "layout/shifted"},  # it takes the caches
    "tie_decode": {"tie": (2, 8)},
    "tie16": {"tie": (0, 0, 2e-3), "encoding": "bfloat16"},
    "tie16_hides_all": {"tie": (0, 0, 2e-3), "encoding": "bfloat16", "plant": noise("layers.1.moe"), "at": "model.layers.1.moe", "kind": "local",
                        "also_kind": ["between"]},
    "tie16_hides_later": {"tie": (0, 0, 2e-3), "encoding": "bfloat16", "plant": later("layers.2.attn.o"), "at": "model.layers.2.attn.o", "kind": "local"},
    "tie16_hides_itself": {"tie": (0, 0, 2e-3), "encoding": "bfloat16", "plant": later("layers.0.moe"), "at": "model.layers.0.moe", "kind": "local", "cause": "value/scale",
                           "also_kind": ["between"]},
    "flat": {"model": Flat},
    "flat_names_blame_input": {"model": Flat, "plant": scaled_between, "at": "model.L2_mlp", "kind": "input", "also_kind": ["between", "local"],
                               "also": ["model"], "cause": "value/scale"},
    "cache_rolled": cache(lambda t: t.roll(1, 1), "layout/permuted"),
    "cache_heads": cache(lambda t: t[:, :, [1, 0, 2, 3]], "layout/permuted"),
    "kv8_hides_embedding": {"plant": larger("embed_tokens", 1.05), "encoding": KV8, "at": "model.embed_tokens", "kind": "local", "cause": "value/scale"},
    "cache_negated": cache(lambda t: -t, "value/sign"),
    "cache_scaled": cache(lambda t: 1.02 * t, "value/scale"),
}  # fmt: skip


def generate(root, name, about):
    torch.manual_seed(5)
    model = about.get("model", Model)().eval()
    g = torch.Generator().manual_seed(3)
    steps = [torch.randint(1, VOCABULARY, (1, n), generator=g) for n in (9, 1, 1)]
    other = tie(model, steps[0], *about["tie"]) if "tie" in about else lambda candidate: None
    candidate = copy.deepcopy(model)
    other(candidate)
    about.get("plant", lambda candidate: None)(candidate)
    if about.get("encoding") == "bfloat16":
        candidate = candidate.bfloat16()

    folder = root / name
    shutil.rmtree(folder, ignore_errors=True)
    write(folder / "ref", name, run(model, steps))
    write(folder / "cand", name, run(candidate, steps, about.get("caches", lambda step, caches: None), about.get("change", lambda step, label, t: t)),
          about.get("encoding", "float32"))
    with program.Recorder(model, name) as p:
        caches = [[] for _ in range(BLOCKS)]
        for ids in steps:
            model(ids, caches)
    p.save(folder / "ref")
    save_file({k: v.clone() for k, v in model.state_dict().items()}, folder / "weights.safetensors")
    answer(folder, name, about)


def answer(folder, name, about):
    (folder / "case.json").write_text(json.dumps({"case": name, "reference_weights": "weights.safetensors"}))
    wrong = "at" in about
    truth = {"case": name, "verdict": "fail" if wrong else "pass", "kind": about.get("kind"), "also_kind": about.get("also_kind", []),
             "first_bad_layer": about.get("at"), "also_right": about.get("also", []), "cause_id": about.get("cause")}  # fmt: skip
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))


def rounding(root):
    """Products with inputs of 8 bits, which may round either way, and an activation after that is off."""
    for name, scale in {"int8": 1.0, "int8_hides_9_percent": 1.09}.items():
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        for side, wrong in (("ref", False), ("cand", True)):
            g, own = torch.Generator().manual_seed(0), torch.Generator().manual_seed(1)

            def near(t, wrong=wrong, own=own):
                return t * (1 + 5e-7 * torch.randn(t.shape, generator=own)) if wrong else t

            x, records = torch.randn(1, 16, 256, generator=g), []
            records.append(("model.embed_tokens", "output", near(x)))
            for i in range(3):
                up = f"model.layers.{i}.mlp.up_proj"
                y = F.linear(x, torch.randn(256, 256, generator=g) / 16)
                records += [(up, "input_0", near(x)), (up, "output", near(y)), (f"model.layers.{i}.mlp.act_fn", "input_0", near(y))]
                x = y.tanh() * (scale if wrong and i == 2 else 1)
                records += [(f"model.layers.{i}.mlp.act_fn", "output", near(x)), (f"model.layers.{i}", "output", near(x))]
            write(folder / side, name, [records])
            if not wrong:
                said = json.loads((folder / side / "run.json").read_text())
                said["cases"][0]["activations"] = {"block": 32, "layers": [f"model.layers.{i}.mlp.up_proj" for i in range(3)]}
                (folder / side / "run.json").write_text(json.dumps(said))
        answer(folder, name, {"at": "model.layers.2.mlp.act_fn", "kind": "local", "cause": "value/scale"} if scale != 1 else {})


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", type=pathlib.Path)
    root = p.parse_args().folder
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    torch.set_grad_enabled(False)
    for name, about in CASES.items():
        generate(root, name, about)
    rounding(root)


if __name__ == "__main__":
    main()
