"""Writes runs of tiny models along execution paths, right and wrong, and the answers. See README.md."""

import argparse
import concurrent.futures
import copy
import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "archs"))
import archs  # noqa: E402
import faults as f  # noqa: E402
import weights  # noqa: E402
from machine import Item, Machine  # noqa: E402
from goparity import program  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
ENCODINGS = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
LENGTH = 14
BLOCK = {"gpt2": "model.transformer.h.{}.attn", "bert": "model.encoder.layer.{}.attention.self"}


@dataclasses.dataclass
class Case:
    name: str
    arch: str
    path: str
    dtype: str = "f32"
    layout: str = "ragged"  # or padded, max (no batch axis), last (max, and only the last row of each sequence at the end)
    fault: object = None
    layer: int = 0  # the first that the fault is in
    first: tuple = ()  # pass, sequence, position of the first wrong row
    also: tuple = ()  # layers that are as right
    model: object = None  # a change of the candidate, in one pass too
    kind: str = "path"
    cause: str = ""  # its id, if it is known
    caches: bool = False  # they are recorded
    short: str = ""  # what the run lacks, so that it cannot be judged or is incomplete


def plan(path, causal, tokens, split=False):
    """The sequences and the passes of a path; tokens are two prompts, the second one shorter.

    split feeds each run of repeat in two passes.
    """
    kind, _, n = path.partition(":")
    a, b = tokens
    if kind == "one-pass":
        return [a], [[Item(0, 0, len(a))]]
    if kind == "decode":
        n = int(n or 4)
        return [a], [[Item(0, 0, len(a) - n)]] + [[Item(0, i, i + 1)] for i in range(len(a) - n, len(a))]
    if kind == "chunked":
        n = int(n)
        return [a], [[Item(0, i, min(i + n, len(a)))] for i in range(0, len(a), n)]
    if kind == "batch":
        both = [Item(0, 0, len(a)), Item(1, 0, len(b))]
        if not causal:
            return [a, b], [both, [dataclasses.replace(i, fresh=True) for i in both[::-1]]]
        half = [Item(0, 0, len(a) - 2), Item(1, 0, len(b) - 2)]
        steps = [[Item(0, len(a) - k, len(a) - k + 1), Item(1, len(b) - k, len(b) - k + 1)] for k in (2, 1)]
        return [a, b], [half] + steps
    if kind == "padding":
        if not causal:
            return [a, b], [[Item(0, 0, len(a)), Item(1, 0, len(b))]]
        return [a, b], [[Item(0, 0, len(a) - 1), Item(1, 0, len(b) - 1)], [Item(0, len(a) - 1, len(a)), Item(1, len(b) - 1, len(b))]]
    if kind == "prefix":
        return [a, a[:9]], [[Item(0, 0, len(a))], [Item(1, 8, 9, cached=8)]]
    if kind == "repeat":
        one = [Item(0, 0, len(a))]
        if split:
            return [a, b], [[Item(0, 0, 9)], [Item(0, 9, len(a))], [Item(1, 0, 5)], [Item(1, 5, len(b))], [Item(0, 0, 9, fresh=True)], [Item(0, 9, len(a))]]
        return [a, b], [one, [Item(1, 0, len(b))], [Item(0, 0, len(a), fresh=True)], [Item(0, 0, len(a), fresh=True)]][: 2 * int(n)]
    if kind == "lengths":
        ns = [int(x) for x in n.split(",")]
        return [a], [[Item(0, 0, k, fresh=i > 0)] for i, k in enumerate(ns)]
    raise ValueError(path)


def build(case):
    arch = archs.ARCHS[case.arch]
    torch.manual_seed(3)
    model = weights.randomize(arch.build(3), 3)
    g = torch.Generator().manual_seed(11)
    tokens = [[1] + torch.randint(4, 128, (n - 1,), generator=g).tolist() for n in (LENGTH, 9)]
    return model, tokens, arch.kind == "causal"


def rows(records, n):
    """The axis of tokens of each record of one sequence of n tokens; None where there is none."""
    return {(layer, port): axis(t, n, port) for layer, port, t in records}


def axis(t, n, port):
    if "mask" in port or t.dim() == 4 and t.shape[2] == n and t.shape[3] != t.shape[2] and t.shape[1] != n:
        return None
    if t.dim() >= 2 and t.shape[0] == 1 and t.shape[1] == n and not (t.dim() == 4 and t.shape[2] == n):
        return 1
    return 0 if t.dim() == 1 and t.shape[0] == n else None


def lay(case, items, parts, mask):
    """The records of a pass in the layout of the case."""
    if case.layout == "padded" or len(parts) == 1 and case.layout == "ragged":
        return [r for _, records in parts for r in records]
    out = []
    last = case.layout == "last"
    for r, (layer, port, t) in enumerate(parts[0][1]):
        ts = [records[r][2] for _, records in parts]
        ns = [i.end - i.start for i in items]
        axes = [axis(t, n, port) for t, n in zip(ts, ns)]
        if None in axes or any(records[r][:2] != (layer, port) for _, records in parts):
            continue
        joined = torch.cat(ts, axes[0])
        if axes[0] == 1 and case.layout in ("max", "last"):
            joined = joined[0]
        if last and (layer.endswith("lm_head") and port == "output" or layer == "model" and port == "output_logits"):
            ends = torch.tensor(ns).cumsum(0) - 1
            joined = joined[ends]
        out.append((layer, port, joined))
    return out


def write(folder, about, steps):
    folder.mkdir(parents=True)
    order = []
    for k, records in enumerate(steps):
        tensors = {}
        for layer, port, t in records:
            name = f"{layer}-{port}"
            tensors[name] = t.clone().contiguous()
            order.append([str(k), layer, port, f"{k}.safetensors", name])
        save_file(tensors, folder / f"{k}.safetensors")
    about = {"schema": 2, "engine": "torch", "case": "c"} | about | {"order": order}
    (folder / "run.json").write_text(json.dumps(about))


def together(folder, case, model, causal, tokens):
    """A golden of one padded step."""
    items = [Item(i, 0, len(t)) for i, t in enumerate(tokens)]
    dump(folder, case, Machine(model, causal, None, "right"), tokens, [items], "one-pass", "f32")


def dump(folder, case, machine, tokens, passes, path, dtype):
    steps = machine.run(tokens, passes)
    records = [lay(case, items, parts, mask) for items, parts, mask in steps]
    if case.layout == "max":  # its names have no wrapper
        records = [[(re.sub(r"^model\\.(model|transformer)\\.", "model.", layer), port, t) for layer, port, t in r
                    if layer not in ("model.model", "model.transformer")] for r in records]  # fmt: skip
    about = {"encoding": ENCODINGS[dtype], "token_ids": tokens, "path": path, "passes": [[i.json() for i in p] for p in passes]}
    masks = {str(k): m for k, (_, _, m) in enumerate(steps) if m}
    if "0" in masks:
        about["pad_mask"] = masks.pop("0")
    if masks:
        about["pad_masks"] = masks
    if path == "one-pass" and len(passes) == 1:  # as a dump that knows nothing of paths
        del about["path"], about["passes"]
    write(folder, about, records)


def loaded(file, model):
    """Writes the weights of a model, one of several that are tied once."""
    save_file({name: t.detach().clone().contiguous() for name, t in model.named_parameters()}, file)


def generate(case, root):
    model, tokens, causal = build(case)
    used, passes = plan(case.path, causal, tokens, isinstance(case.fault, f.Stale))
    folder = root / case.name
    shutil.rmtree(folder, ignore_errors=True)
    whole = [[Item(i, 0, len(t))] for i, t in enumerate(tokens)]
    plain = Case("", case.arch, "one-pass")
    goldens = tokens if len(used) > 1 and used[1] in tokens else tokens[:1]
    with program.Recorder(model, "c") as p:
        if len(goldens) > 1 and case.name.startswith("ok") and case.layout == "padded":
            plain.layout = "padded"
            together(folder / "ref", plain, model, causal, goldens)
        else:
            dump(folder / "ref", plain, Machine(model, causal, program=p, caches=case.caches), goldens, whole[: len(goldens)], "one-pass", "f32")
    p.save(folder / "ref")
    loaded(folder / "weights.safetensors", model)
    candidate = copy.deepcopy(model)
    if case.model:
        case.model(candidate)
    candidate = weights.cast(candidate, DTYPES[case.dtype])
    plain.layout = case.layout if case.layout in ("max", "last") else "ragged"
    dump(folder / "one_pass", plain, Machine(copy.deepcopy(candidate), causal, caches=case.caches), goldens, whole[: len(goldens)], "one-pass", case.dtype)
    padding = case.path.partition(":")[2] if case.path.startswith("padding") else "right" if case.layout == "padded" else None
    machine = Machine(candidate, causal, copy.deepcopy(case.fault), padding, caches=case.caches)
    if case.path == "prefix":  # the second sequence begins with what the first left after
        machine.run = prefixed(machine, machine.run)
    dump(folder / "cand", case, machine, used, passes, case.path, case.dtype)
    (folder / "case.json").write_text(json.dumps({"case": case.name, "family": case.arch, "path": case.path, "candidate_dtype": case.dtype, "reference_weights": "weights.safetensors"}))
    truth = {"case": case.name, "verdict": "pass", "kind": None}
    if case.fault or case.model:
        name = BLOCK.get(case.arch, "model.model.layers.{}.self_attn").format(case.layer)
        truth |= {"verdict": "fail", "kind": case.kind, "first_bad_layer": name, "also_right": list(case.also), "cause_id": "norm/eps" if case.model else "input/tokens" if case.kind == "input" else case.cause,
                  "first_row": dict(zip(("pass", "sequence", "position"), case.first)) if case.first else None}  # fmt: skip
    if case.short:
        truth["verdict"] = shorten(folder / "cand", case.short)
    (folder / "truth.json").write_text(json.dumps(truth))


def shorten(folder, how):
    """Takes something from a run; returns the verdict that follows."""
    about = json.loads((folder / "run.json").read_text())
    if how == "folder":  # of the last pass
        about["order"] = [e for e in about["order"] if int(e[0]) < len(about["passes"]) - 1]
    elif how == "rows":  # the last pass was never made
        about["passes"].pop()
        about["order"] = [e for e in about["order"] if int(e[0]) < len(about["passes"])]
    elif how == "path":
        about["path"] = {"decode:4": "batch", "batch": "padding:left", "lengths:1,2,8,14": "chunked:5", "chunked:5": "repeat:2"}[about["path"]]
    elif how == "hit":
        about["passes"][1] = [Item(1, 0, 9).json()]
    elif how == "blocks":
        about["order"] = [e for e in about["order"] if e[0] != "1" or "layers.1" not in e[1]]
    (folder / "run.json").write_text(json.dumps(about))
    return "incomplete" if how == "blocks" else "error"


def prefixed(machine, run):
    def with_cache(tokens, passes):
        forward = machine.forward

        def hit(k, tokens, items):
            for i in items:
                if i.cached:
                    machine.past[i.sequence] = [(a[:, : i.cached].clone(), b[:, : i.cached].clone()) for a, b in machine.past[0]]
            return forward(k, tokens, items)

        machine.forward = hit
        return run(tokens, passes)

    return with_cache


def inputs(arch):
    """Where positions come in."""
    return ("model", "model.model", "model.model.rotary_emb", "model.transformer", "model.transformer.wpe", "model.embeddings",
            "model.embeddings.position_embeddings")  # fmt: skip


def eps(model):
    for m in model.modules():
        if "Norm" in type(m).__name__:
            setattr(m, "variance_epsilon" if hasattr(m, "variance_epsilon") else "eps", 0.3)


def cases():
    out = []
    for arch in ("llama", "qwen3", "gpt2", "gemma2"):
        for k, path in enumerate(("decode:4", "chunked:5", "batch", "padding:left", "padding:right", "prefix", "lengths:1,2,8,14", "repeat:2")):
            for d, dtype in enumerate(("f32", "bf16", "f16")):
                layout = "padded" if path.startswith("padding") else ("ragged", "max", "last")[(k + d) % 3]
                if d != (k + len(arch)) % 3 and arch != "llama":
                    continue
                out.append(Case(f"ok_{arch}_{re.sub('[:,]', '-', path)}_{dtype}_{layout}", arch, path, dtype, layout))
    for path, layout in (("batch", "ragged"), ("batch", "padded"), ("padding:right", "padded"), ("padding:left", "padded")):
        out.append(Case(f"ok_bert_{path.replace(':', '-')}_{layout}", "bert", path, "f32", layout))
    out.append(Case("ok_llama_batch_padded", "llama", "batch", "f32", "padded"))
    dtypes, layouts = ("f32", "bf16", "f32", "f16"), ("ragged", "max", "last")
    n = 0
    for arch in ("llama", "qwen3", "gpt2", "gemma2"):
        more = [
            ("positions", "decode:4", f.Positions(1), 0, (1, 0, 10), inputs(arch), "state/position"),
            ("restart", "chunked:5", f.Positions(), 0, (1, 0, 5), inputs(arch), "state/position"),
            ("late", "decode:4", f.Late(1), 1, (1, 0, 10), (), "state/slot"),
            ("values", "chunked:5", f.Late(0, "values"), 0, (1, 0, 5), (), "state/slot"),
            ("dropped", "decode:4", f.Masked("drop"), 0, (1, 0, 10), (), "state/slot"),
            ("dropped1", "chunked:5", f.Masked("drop", [1]), 1, (1, 0, 5), (), "state/slot"),
            ("over", "decode:4", f.Overwritten(1), 1, (1, 0, 10), (), "state/slot"),
            ("blind", "chunked:5", f.Masked("blind"), 0, (1, 0, 5), (), "state/chunk"),
            ("blind1", "chunked:5", f.Masked("blind", [1]), 1, (1, 0, 5), (), "state/chunk"),
            ("ahead", "chunked:5", f.Masked("ahead"), 0, (1, 0, 5), (), "state/chunk"),
            ("swapped", "batch", f.Swapped(1), 1, (1, 0, 12), (), "state/sequence"),
            ("exchanged", "batch", f.Exchanged(0), 0, (1, 0, 12), (), "state/sequence"),
            ("stale", "repeat:2", f.Stale(1), 1, (3, 1, 5), (), "state/stale"),
            ("tokens", "decode:4", f.Tokens(), 0, (1, 0, 10), inputs(arch) + ("model.model.embed_tokens", "model.transformer.wte"), ""),
            ("prefix", "prefix", f.Late(0), 0, (1, 1, 8), (), "state/slot"),
            ("padpos", "padding:left", f.PaddedPositions(), 0, (0, 1, 0), inputs(arch), "state/position"),
            ("attended", "padding:left", f.Masked("padding", None, True), 0, (0, 1, 0), (), "mask/padding"),
        ]  # fmt: skip
        for name, path, fault, layer, first, also, cause in more:
            layout = "padded" if path.startswith("padding") or name == "exchanged" else layouts[n % 3]
            out.append(Case(f"{name}_{arch}", arch, path, dtypes[n % 4], layout, fault, layer, first, also, None, "input" if name == "tokens" else "path", cause))
            n += 1
        for how, cause in (("rolled", "layout/permuted"), ("negated", "value/sign"), ("scaled", "value/scale")):
            for read in (True, False):
                name = f"{how}_{'cache' if read else 'record'}_{arch}"
                out.append(Case(name, arch, "chunked:5", dtypes[n % 4], "max", f.Cache(1, how, read), 1, (1, 0, 5), cause={"rolled": "state/slot"}.get(how, "") if read else cause, caches=True))
                n += 1
        norm = {"gpt2": "model.transformer.h.0.ln_1"}.get(arch, "model.model.layers.0.input_layernorm")
        for path in ("decode:4", "padding:left"):
            out.append(Case(f"one_{arch}_{path.replace(':', '-')}", arch, path, "f32", "padded" if "pad" in path else "max", None, 0, (), (norm,), eps, "local"))
    out.append(Case("window_gemma2", "gemma2", "decode:4", "f32", "ragged", f.Masked("window"), 0, (1, 0, 10), cause="state/window"))
    out.append(Case("window_gemma2_chunked", "gemma2", "chunked:5", "bf16", "max", f.Masked("window"), 0, (1, 0, 6), cause="state/window"))
    for by in (-1, 2, 99):
        out.append(Case(f"window_gemma2_{by}".replace("-", "m"), "gemma2", "decode:4", "f32" if by > 0 else "f16", "last", f.Masked("window", None, by=by), 0, (1, 0, 10), cause="state/window"))
    out.append(Case("attended_bert", "bert", "padding:right", "f32", "padded", f.Masked("padding", None, True), 0, (0, 1, 0), cause="mask/padding"))
    out.append(Case("padpos_bert", "bert", "padding:left", "f32", "padded", f.PaddedPositions(), 0, (0, 1, 0), inputs("bert"), cause="state/position"))
    out.append(Case("unsteady_llama", "llama", "repeat:2", "f32", "ragged", f.Unsteady("model.layers.1.mlp.down_proj.weight", 1 + 2e-7), 1, (), ("model.model.layers.1.mlp.down_proj",), cause="state/nondeterministic"))
    out.append(Case("unsteady_qwen3", "qwen3", "repeat:2", "f32", "max", f.Unsteady("model.layers.0.mlp.up_proj.weight", 1.5), 0, (2, 0, 0), ("model.model.layers.0.mlp.up_proj",), cause="state/nondeterministic"))
    out += [Case(f"ok_{arch}_{path.replace(':', '-')}_caches", arch, path, dtype, "ragged", caches=True)
            for arch, path, dtype in (("llama", "decode:4", "f32"), ("gpt2", "chunked:5", "bf16"), ("qwen3", "batch", "f32"), ("llama", "prefix", "f16"))]
    for short, paths in {"folder": ("decode:4", "batch"), "rows": ("decode:4", "chunked:5"), "path": ("decode:4", "batch", "chunked:5"),
                         "hit": ("prefix",), "blocks": ("decode:4", "chunked:5")}.items():  # fmt: skip
        out += [Case(f"short_{short}_{p.replace(':', '-')}", "llama", p, "f32", "max", short=short) for p in paths]
    return out


def make(name, root):
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    try:
        generate(next(c for c in cases() if c.name == name), root)
    except Exception as e:
        raise RuntimeError(f"{name}: {e}") from e
    return name


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", type=pathlib.Path, nargs="?")
    p.add_argument("--match", default="", help="only the cases whose name matches this pattern")
    p.add_argument("--list", action="store_true", help="only print the names")
    args = p.parse_args()
    names = [c.name for c in cases() if re.search(args.match, c.name)]
    if args.list or not args.folder:
        print("\n".join(names))
        return
    with concurrent.futures.ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # torch takes 500 MB a process
        for name in pool.map(make, names, itertools.repeat(args.folder)):
            print(name, flush=True)


if __name__ == "__main__":
    main()
