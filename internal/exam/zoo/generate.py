"""Writes cases of the zoo: recorded runs of small models with planted bugs, and the answers. See README.md."""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import struct

import torch
from safetensors.torch import save_file

import candidate
import cases
import models
import vary

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
CODES = {
    torch.bool: 1,
    torch.float16: 79,
    torch.bfloat16: 80,
    torch.float32: 81,
    torch.float64: 82,
    torch.int32: 139,
    torch.int64: 141,
}
# The relative L2 above which a row differs for the audit.
FLOORS = {"f32": 3e-5, "bf16": 3e-2, "f16": 4e-3}


def write_max(path, label, x):
    """One tensor as BINARY_MAX_CHECKPOINT writes it."""
    x, name = x.detach().contiguous(), label.encode()
    size = 4 + len(name) + 2 + 4 * x.dim() + 8
    head = bytes.fromhex("93f09f94a52b2b93") + struct.pack("<IIQI", 0, 1, size, len(name)) + name
    head += struct.pack(f"<BB{x.dim()}IQ", CODES[x.dtype], x.dim(), *x.shape, 24 + size)
    data = x.view(torch.int16).numpy() if x.dtype == torch.bfloat16 else x.numpy()
    path.write_bytes(head + data.tobytes())


def split(name):
    return name.rsplit("-", 1)


def is_mask(family, name):
    return family == "bert" and bool(re.search(r"(encoder|layer\.\d+|attention|self)-input_1$", name))


class Names:
    """How the candidate names and shapes its tensors: as the reference does, or as MAX does."""

    def __init__(self, case):
        self.max, self.drop, self.rows = case.names == "max", case.drop, (case.batch, case.seq)
        self.family, self.pack = case.family, case.family == "llama" or case.batch == 1

    def hidden(self, layer, port):
        if any(re.fullmatch(p, f"{layer}-{port}") for p in self.drop):
            return True
        if not self.max:
            return False
        if self.family == "llama":  # the tables come from elsewhere, and the model has no model inside
            return layer in ("model.model", "model.model.rotary_emb") or bool(
                re.search(r"(layers\.\d+|self_attn)-input_[12]$", f"{layer}-{port}")
            )
        return is_mask(self.family, f"{layer}-{port}")

    def name(self, layer):
        if not self.max:
            return layer
        layer = re.sub(r"^model\.model\.", "model.", layer)
        layer = re.sub(r"\b(layers|layer|blocks)\.(\d+)", r"\1.layers.\2", layer)
        return re.sub(r"t_embedder\.mlp\.(\d)", r"t_embedder.mlp.layers.\1", layer).replace("LayerNorm", "layer_norm")

    def shape(self, x):
        if self.max and self.pack and tuple(x.shape[:2]) == self.rows:
            return x.flatten(0, 1)
        return x

    def apply(self, records):
        out = collections.OrderedDict()
        for name, x in records.items():
            layer, port = split(name)
            if not self.hidden(layer, port):
                out[f"{self.name(layer)}-{port}"] = self.shape(x)
        return out


def write_dump(folder, records):
    folder.mkdir()
    for name, x in records.items():
        write_max(folder / f"{name}.max", name, x)
    (folder / "tensor_names.txt").write_text("".join(f"{n}\n" for n in records))


def row_error(a, g, keep):
    """The relative L2 of the tensor and of its worst row; 1 for other shapes.

    A row's denominator is at least 0.1 of the RMS row norm.
    """
    if a.shape != g.shape:
        return 1.0, 1.0
    if not g.dtype.is_floating_point:
        return (0.0, 0.0) if torch.equal(a, g) else (1.0, 1.0)
    a, g = a.double(), g.double()
    if keep is not None and a.shape[:2] == keep.shape:
        a, g = a[keep], g[keep]
    a, g = (x.reshape(-1, x.shape[-1] if x.dim() > 1 else x.numel()) for x in (a, g))
    if torch.equal(a, g):
        return 0.0, 0.0
    norms = g.norm(dim=-1)
    rms = norms.square().mean().sqrt()
    d = (a - g).norm(dim=-1)
    whole, worst = d.norm() / norms.norm(), (d / norms.clamp_min(0.1 * rms)).max()
    return tuple(1e30 if not torch.isfinite(x) else float(x) for x in (whole, worst))


def audit(case, reference, double, standard, alone, keep):
    """What a plain comparison of the complete records says about the answer, for readers who doubt it."""

    def differs(name, x):
        if is_mask(case.family, name):  # compared by what it allows
            allow = [t if t.dtype == torch.bool else t > -1 for t in (x, reference[name])]
            return not torch.equal(*torch.broadcast_tensors(*allow))
        # The reference's own distance from float64.
        own = row_error(reference[name].double(), double[name].double(), keep)[1]
        return row_error(x, reference[name], keep)[1] > max(FLOORS[case.dtype], 3 * own)

    bad = {n for n, x in standard.items() if n in reference and differs(n, x)}
    injected = [split(n)[0] for n, x in alone.items() if n in reference and differs(n, x)]
    order = [n for n in reference if n in bad]
    outs = [split(n)[0] for n in order if "-output" in n]
    final = row_error(standard["model-output"], reference["model-output"], keep)
    exact = [
        row_error(x["model-output"].double(), double["model-output"].double(), keep)[0] for x in (reference, standard)
    ]
    clean = sorted(
        row_error(x, reference[n], keep)[0] for n, x in alone.items() if n in reference and split(n)[0] not in injected
    )
    return {
        "first_bad_output_standard": outs[0] if outs else None,
        "first_bad_tensor_standard": order[0] if order else None,
        "bad_injected": injected[:12],
        "model_output_bad": "model-output" in bad,
        "model_output_rel_l2": final[0],
        "model_output_from_float64": {"reference": exact[0], "candidate": exact[1]},
        "injected_median": clean[len(clean) // 2] if clean else None,
    }


def doubts(case, truth, m):
    """Lines that say where the answer and the audit disagree."""
    out, bug = [], case.bug
    if bug is None:
        at = m["first_bad_tensor_standard"]
        return ["clean, but differs at " + at] if at and not case.benign else []
    right = [truth["first_bad_layer"], *truth["also_right"]]
    if bug.kind in ("local", "between") and truth["first_bad_layer"] not in m["bad_injected"]:
        out.append("right when alone")
    if bug.kind in ("interaction", "input") and m["bad_injected"]:
        out.append(f"wrong alone: {m['bad_injected'][0]}")
    first = m["first_bad_tensor_standard"]
    if first is None:
        out.append("nothing differs")
    elif bug.kind != "drift" and not any(split(first)[0] == r or split(first)[0].startswith(r + ".") for r in right):
        out.append(f"differs first at {first}")
    if (
        bug.kind != "capture"
        and not m["model_output_rel_l2"] > 3 * {"f32": 1e-4, "bf16": 3e-2, "f16": 4e-3}[case.dtype]
    ):
        out.append(f"the output hardly differs: {m['model_output_rel_l2']:.2g}")
    return out


def inputs_of(case, c):
    g = torch.Generator().manual_seed(1000 + case.seed)
    if case.family == "dit":
        size = c["sample_size"]
        return torch.randn(case.batch, c["in_channels"], size, size, generator=g).to(DTYPES[case.dtype]), torch.randint(
            1, 1000, (case.batch,), generator=g
        ).to(DTYPES[case.dtype])
    ids = torch.randint(2, c["vocab_size"], (case.batch, case.seq), generator=g)
    if case.family == "llama":
        ids[:, 0] = 1
        return (ids,)
    mask = torch.ones(case.batch, case.seq)
    for row, n in enumerate(case.pad):
        mask[row, case.seq - n :] = 0
    types = (torch.arange(case.seq) >= case.seq // 2).long().expand(case.batch, -1)
    return ids * mask.long(), mask, types.contiguous()


def write(case, root):
    """Writes a case to a folder and its weights to one next to it; returns the doubts and the audit."""
    c = models.config(case.family, case.layers, **case.config)
    if case.family == "dit":
        case.seq = (c["sample_size"] // c["patch_size"]) ** 2
    model = models.build(case.family, c, case.seed)
    if case.prepare:
        with torch.no_grad():
            case.prepare(model, c)
    dtype, x = DTYPES[case.dtype], inputs_of(case, c)
    model = model.to(dtype)
    reference = models.record(model, x)
    weights = {k: v.detach().clone() for k, v in model.state_dict().items()}
    if c.get("tie_word_embeddings"):
        del weights["lm_head.weight"]

    cand = candidate.FAMILIES[case.family](weights, c, dtype)
    for plant in case.style:
        plant(cand)
    if case.bug:
        case.bug.plant(cand)
    standard = cand.standard(x)
    alone = cand.alone(reference, standard)
    folder = root / case.name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "ref").mkdir(parents=True)
    models.write_program(folder / "ref", model, x)
    double = models.record(model.double(), [t.double() if t.dtype == dtype else t for t in x])

    hidden = [n for n in reference if any(re.fullmatch(p, n) for p in case.drop_reference)]
    keep = torch.tensor(pad_mask(case)).bool() if case.pad else None
    measured = audit(case, reference, double, standard, alone, keep)
    for n in hidden:
        reference.pop(n), double.pop(n)
    for n, t in reference.items():
        torch.save(t.clone(), folder / "ref" / f"{n}.pt")
    (folder / "ref" / "tensor_names.txt").write_text("".join(f"{n}\n" for n in reference))
    save_file({n: t.contiguous() for n, t in double.items() if "-output" in n}, folder / "ref64.safetensors")
    names = Names(case)
    write_dump(folder / "cand", names.apply(standard))
    write_dump(folder / "cand_injected", names.apply(alone))
    (root / "weights").mkdir(exist_ok=True)
    save_file({k: v.contiguous() for k, v in weights.items()}, root / "weights" / f"{case.name}.safetensors")

    b = case.bug
    truth = {
        "case": case.name,
        "family": case.family,
        "engine": "torch",
        "verdict": "fail" if b else "pass",
        "kind": b.kind if b else None,
        "first_bad_layer": b.layer if b and b.kind != "drift" else None,
        "also_right": list(b.also) if b else [],
        "also_bad": list(b.also_bad) if b else [],
        "second_bad_layer": case.second,
        "cause_id": b.cause if b else None,
        "also_cause": list(b.also_cause) if b else [],
        "second_cause_id": case.second_cause,
        "cause": b.text if b else "none",
        "where": b.where if b else "all",
        "seen_in": b.seen if b else "both",
        "note": case.note or (b.note if b else None),
        "measured": measured,
    }
    found = doubts(case, truth, measured)
    truth["measured"]["doubts"] = found
    about = {
        "case": case.name,
        "family": case.family,
        "reference_dtype": case.dtype,
        "candidate_dtype": case.dtype,
        "batch": case.batch,
        "seq": case.seq,
        "candidate_framework": "torch",
        "pad_mask": pad_mask(case) if case.pad else None,
        "reference_weights": f"../weights/{case.name}.safetensors",
    }
    if case.pad:
        (folder / "pad_mask.json").write_text(json.dumps(pad_mask(case)))
    (folder / "config.json").write_text(json.dumps({**c, **case.said}, indent=1))
    (folder / "case.json").write_text(json.dumps(about, indent=1))
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))  # last: it completes a case
    return found, measured


def pad_mask(case):
    return [[1] * (case.seq - n) + [0] * n for n in case.pad]


def generate(name, root, variant):
    """Writes the case of this name to the folder root; returns its line of the list."""
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    case = next(c for c in cases.cases() if c.name == name)
    if variant:
        case = vary.vary(case, variant)
    found, m = write(case, root)
    if found and variant:  # not fair: the bug does not show in this type, or rounding shows first
        shutil.rmtree(root / case.name)
        (root / "weights" / f"{case.name}.safetensors").unlink()
    doubt = "  DOUBT: " + "; ".join(found) if found else ""
    head = f"{case.name:32} {case.dtype:4} {case.names:5} {m['model_output_rel_l2']:8.1e}"
    return f"{head} {m['first_bad_tensor_standard']}{doubt}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--match", default="", help="only the cases whose name matches this pattern")
    p.add_argument(
        "--vary",
        type=int,
        default=0,
        metavar="N",
        help="variant N of the table: other weights, lengths, types, names, missing layers",
    )
    p.add_argument("--list", action="store_true", help="only print names, causes and places")
    args = p.parse_args()
    chosen = [c for c in cases.cases() if re.search(args.match, c.name)]
    if args.list:
        for c in chosen:
            print(c.name, *([c.bug.cause, c.bug.kind, c.bug.layer] if c.bug else ["clean"]))
        return
    with concurrent.futures.ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # torch takes 500 MB a process
        lines = pool.map(generate, [c.name for c in chosen], itertools.repeat(args.folder), itertools.repeat(args.vary))
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
