"""Another zoo from the same table: each case with other weights, lengths, types, names, missing layers."""

import dataclasses
import math
import random
import re

import torch

from cases import NO_ACT, mask_form

# Layers that a candidate may not record, by family.
MISSING = {
    "bert": [
        NO_ACT,
        (r".*\.(query|key|value)-.*",),
        (r".*\.dense-.*",),
        (r".*\.LayerNorm-.*",),
        (r".*\.(attention|intermediate)-.*",),
        (r"model\.pooler.*",),
        (r"model\.encoder-.*",),
        (r".*\.layer\.1\..*",),
    ],
    "llama": [
        NO_ACT,
        (r".*\.[qkv]_proj-.*",),
        (r".*(layernorm|norm)-.*",),
        (r".*\.(gate_proj|up_proj)-.*",),
        (r".*\.mlp-.*",),
        (r".*\.rotary_emb-.*",),
        (r".*\.layers\.1\..*",),
        (r"model\.lm_head-.*",),
    ],
    "dit": [
        NO_ACT,
        (r".*\.norm[12]-.*",),
        (r".*\.adaLN_modulation.*",),
        (r".*\.t_embedder\..*",),
        (r".*\.(qkv|fc1)-.*",),
        (r".*\.blocks\.0\..*",),
    ],
}
MASKS = [
    lambda allow: torch.zeros(allow.shape).masked_fill(allow == 0, -math.inf),
    lambda allow: (1 - allow) * -1e4,
    lambda allow: allow.bool(),
]
# What containers hold: a record that is left out must be neither the place nor inside it.
CHILDREN = (
    "query",
    "key",
    "value",
    "dense",
    "LayerNorm",
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
    "act_fn",
    "norm1",
    "norm2",
    "input_layernorm",
    "post_attention_layernorm",
    "qkv",
    "proj",
    "fc1",
    "fc2",
    "act",
    "intermediate_act_fn",
    "adaLN_modulation",
    "attn",
    "mlp",
    "self_attn",
    "attention",
    "intermediate",
    "output",
    "rotary_emb",
    "mlp.0",
    "norm",
    "lm_head",
)


def touches(pattern, places):
    """Whether a pattern leaves out a record of one of the places or of a child."""
    labels = [x for p in places for x in (p, *(f"{p}.{c}" for c in CHILDREN))]
    return any(re.fullmatch(pattern, f"{x}-{port}") for x in labels for port in ("input_0", "output"))


def vary(case, n):
    """Variant n of the case. Nothing that the answer needs is left out; the audit says if the bug still shows."""
    r = random.Random(f"{n} {case.name}")
    bug = case.bug
    changes = {"name": f"{case.name}_v{n}", "seed": case.seed + 1000 * n}
    plain = not case.style and case.dtype == "f32"
    if case.family != "dit" and plain:
        changes["seq"] = min(case.seq + r.choice((0, 1, 3, 6, 17)), 40)  # BERT has 40 positions
    if r.random() < 0.5 and not (bug and {"model.model", "model.model.rotary_emb"} & {bug.layer, *bug.also}):
        changes["names"] = "torch" if case.names == "max" else "max"
    if plain and r.random() < 0.3:
        changes["dtype"] = r.choice(("f16", "bf16"))
    if case.family == "bert" and not case.style and case.pad and "mask" not in case.name and r.random() < 0.5:
        changes["style"] = (mask_form(r.choice(MASKS)),)
    quiet = bug is None or bug.kind in ("local", "between")
    if quiet and not case.drop and not case.drop_reference and r.random() < 0.5:
        places = ([bug.layer, *bug.also, *bug.also_bad] if bug else []) + ([case.second] if case.second else [])
        free = [d for d in MISSING[case.family] if not any(touches(p, places) for p in d)]
        if free:
            changes["drop" if r.random() < 0.7 else "drop_reference"] = r.choice(free)
    return dataclasses.replace(case, **changes)
