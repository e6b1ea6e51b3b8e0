"""The weight audit: what a checkpoint has beside what the model asks for."""

import os
import re

from . import config, safetensors
from .errors import ModelError

_BLOCK = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")

# Buffers that old checkpoints carry and no model loads: they are computed from the configuration.
_COMPUTED = ("rope_freqs.weight", "rotary_emb.inv_freq", "position_ids", "attention.bias", "attn.bias", "masked_bias")


def audit(job, missing, unused, engine):
    """Fails by name if the checkpoint lacks weights, or has some that nothing asks for.

    What is found, and what of it is allowed, is kept for run.json.
    """
    fine = {n for n in missing if job.may_miss(n)}
    fine |= {n for n in unused if job.may_miss(n) or _cut_off(n, job) or ("." + n).endswith(tuple("." + c for c in _COMPUTED))}
    missing, unused = sorted(set(missing) - fine), sorted(set(unused) - fine)
    for key, names in (("missing", missing), ("unused", unused), ("allowed", fine)):
        job.load_audit[key] = sorted({*job.load_audit[key], *names})
    said = []
    if missing:
        said.append(f"the checkpoint lacks {_list(missing)}, which the model asks for")
    if unused:
        said.append(f"the model asks for none of {_list(unused)}, which the checkpoint has")
    if said:
        what = "zeros" if engine == "max" else "random values"
        names = missing + unused
        allow = f"[{', '.join(names)}]" if len(names) <= 4 else "[…] (* is a part of one name between dots, ** several)"
        raise ModelError("weights: " + "; ".join(said),
                         f"{engine} would run with {what} in place of missing weights; if that is meant, write allow_missing: {allow}")  # fmt: skip


def _cut_off(name, job):
    """Whether a weight belongs to a block that max_layers leaves out."""
    if not job.max_layers:
        return False
    m = _BLOCK.search(name)
    return m is not None and int(m[1]) >= job.max_layers


def audit_kinds(job, floats):
    """Fails by name if a local checkpoint has integers for weights that the model has as floats.

    Transformers casts them without a word. Quantised checkpoints have them on purpose, and say so in
    config.json.
    """
    if not job.local or "quantization_config" in config.load(job.model):
        return
    wrong = []
    for file in sorted(os.listdir(job.model)):
        if file.endswith(".safetensors"):
            with open(os.path.join(job.model, file), "rb") as f:
                tensors = safetensors.header(f)
            wrong += [f"{n} ({t['dtype']})" for n, t in tensors.items() if n in floats and t["dtype"][0] in "IUB" and t["dtype"] != "BF16"]
    if wrong:
        raise ModelError("weights of the wrong dtype: " + _list(wrong) + ": the model wants floats", "config.json and the checkpoint are of different models")


def _list(names, most=8):
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
