"""Writes one large case: 10,000 tensors a side, foreign names, a bug in the middle. See README.md."""

import argparse
import json
import pathlib

import numpy as np

import dumps
import words

# A block of 32 layers, in the order in which they are computed. The last one of a container is what it returns.
BLOCK = (
    "input_layernorm", "self_attn.q_proj", "self_attn.q_norm", "self_attn.k_proj", "self_attn.k_norm", "self_attn.v_proj",
    "self_attn.rotary_emb", "self_attn.sinks", "self_attn.o_proj", "self_attn", "residual_dropout", "post_attention_layernorm",
    "mlp.router", "mlp.shared.gate_proj", "mlp.shared.act_fn", "mlp.shared.up_proj", "mlp.shared.down_proj", "mlp.shared",
    *(f"mlp.experts.{e}.{x}" for e in range(2) for x in ("gate_proj", "act_fn", "up_proj", "down_proj")),
    "mlp.experts.0", "mlp.experts.1", "mlp.experts", "mlp", "post_feedforward_layernorm", "",
)  # fmt: skip
SHAPE = (1, 16, 32)


def runs(blocks, bug):
    """The labels and both sides' values, which are no longer equal from the block of the bug on."""
    r = np.random.default_rng(0)
    labels = ["model.model.embed_tokens"]
    labels += [f"model.model.layers.{b}.{x}".rstrip(".") for b in range(blocks) for x in BLOCK]
    labels += ["model.model.norm", "model.model", "model.lm_head", "model"]
    golden, cand, wrong, last = [], [], False, None
    for label in labels:
        wrong = wrong or label == f"model.model.layers.{bug}.mlp.shared.up_proj"
        if last and last.startswith(label + "."):  # a container
            golden.append(golden[-1])
            cand.append(cand[-1])
        else:
            golden.append(r.standard_normal(SHAPE, np.float32))
            cand.append(golden[-1] + (0.7 if wrong else 1e-6) * r.standard_normal(SHAPE, np.float32))
        last = label
    return labels, golden, cand


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", type=pathlib.Path, help="where to write the case")
    p.add_argument("--blocks", type=int, default=312)
    p.add_argument("--opaque", action="store_true", help="t0, t1, …: names that say nothing")
    args = p.parse_args()
    labels, golden, cand = runs(args.blocks, args.blocks // 2)
    said = words.rename(labels, lambda label: words.say(words.HOME, label))
    if args.opaque:
        said = {label: f"t{i}" for i, label in enumerate(labels)}
    for name, values, called in (("ref", golden, {x: x for x in labels}), ("cand", cand, said)):
        entries = [dumps.Entry("0", called[x], "output", "F32", v.view(np.uint32)) for x, v in zip(labels, values)]
        dumps.write(args.folder / name, dumps.Dump(entries, None))
    bug = f"model.model.layers.{args.blocks // 2}.mlp.shared.up_proj"
    alike = {}
    for x, v in zip(labels, golden):
        alike.setdefault(id(v), []).append(x)
    also = {said[x]: [y for y in alike[id(v)] if y != x] for x, v in zip(labels, golden) if len(alike[id(v)]) > 1}
    answer = {"verdict": "fail", "kind": "local", "first_bad_layer": bug, "names": {said[x]: x for x in labels}, "also_names": also}
    (args.folder / "case.json").write_text("{}")
    (args.folder / "truth.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
