"""Which layer of a candidate is which of the reference, by the names that both still share."""

import re

import numpy as np

import dumps

FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def form(label):
    """What the names of torch and of MAX have in common."""
    label = re.sub(r"^(model\.)+(?=.)", "", label)
    label = re.sub(r"\b(layers|layer|blocks|mlp|experts)\.layers\.(?=\d)", r"\1.", label)
    return label.lower().replace("_", "")


def joins(golden, cand):
    """Candidate's layer → layers of the reference, where both recorded an output."""
    with_output = [{dumps.name(e.layer): 1 for e in d.entries if e.port.startswith("output")} for d in (golden, cand)]
    forms = {}
    for label in with_output[0]:
        forms.setdefault(form(label), []).append(label)
    forms = {f: labels[0] for f, labels in forms.items() if len(labels) == 1}
    out = {}
    for label in with_output[1]:
        parent, _, last = label.rpartition(".")
        parts = [forms.get(form(f"{parent}.{part}")) for part in FUSED.get(last, ())]
        if label in with_output[0]:
            out[label] = [label]
        elif found := forms.get(form(label)):
            out[label] = [found]
        elif parts and all(parts):
            out[label] = parts
    once = [g for found in out.values() for g in found]
    return {label: found for label, found in out.items() if all(once.count(g) == 1 for g in found)}


def twins(golden, cand, names):
    """Candidate's layer → more layers of the reference that are as right: what the candidate recorded of it is there
    the same, first to last. A block's MLP returns what its last product returns, and outputs alone do not tell which."""
    ports = {}
    for e in cand.entries:
        ports.setdefault(dumps.name(e.layer), set()).add(e.port)
    all_of = {label: values(golden.of(label)) for label in golden.layers}
    out = {}
    for label, found in names.items():
        if len(found) > 1:
            continue
        asked = values(e for e in golden.of(found[0]) if e.port in ports[label])
        also = [g for g, have in all_of.items() if g != found[0] and all(have.get(k, [])[: len(v)] == v for k, v in asked.items())]
        if also:
            out[label] = also
    return out


def values(entries):
    """What was recorded of a layer: step, call, inputs or outputs → hashes in order."""
    out = {}
    for e in entries:
        value = hash((e.dtype, e.data.shape, e.data.tobytes()))
        out.setdefault((e.step, dumps.call(e.layer), e.port[:3]), []).append(value)
    return out


# The least correlation of a layer's outputs that shows that two runs are of one model. In all other cases of the zoo
# and the architectures some layer has 0.77 or more; what is left has 0.37 or less.
ALIKE = 0.5


def unlike(golden, cand, names):
    """Whether no layer of the candidate returns anything like what it should: an index off by one changes all there is.
    Nobody can know then that the two are one model, and not two that were given the same tokens."""
    first = {}
    for e in golden.entries:
        if e.port.startswith("output"):
            first.setdefault((e.step, e.layer), e)
    for e in cand.entries:
        found = names.get(e.layer, [])
        if not e.port.startswith("output") or len(found) != 1 or re.search("rotary|position", found[0]):
            continue
        g, a = (x.numbers if x else None for x in (first.get((e.step, found[0])), e))
        if g is not None and a is not None and g.size == a.size and correlation(g, a) > ALIKE:
            return False
    return True


def correlation(a, b):
    keep = np.isfinite(a) & np.isfinite(b)
    a, b = a[keep], b[keep]
    if a.size < 2 or not a.std() or not b.std():
        return 0
    return np.corrcoef(a, b)[0, 1]
