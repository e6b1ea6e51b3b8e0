"""Writes recorded runs of tiny models of many architectures, clean, rewritten and wrong, and the answers. See README.md."""

import argparse
import concurrent.futures
import copy
import itertools
import json
import os
import pathlib
import re
import shutil
import warnings

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import archs  # noqa: E402
import cases  # noqa: E402
import feeds  # noqa: E402
import islands  # noqa: E402
import record  # noqa: E402
import weights  # noqa: E402

# How far a clean candidate may be off at the end beside what rounding does to the reference: sums in another order, and TF32.
FLOORS = {"f32": 3e-3, "bf16": 2e-2, "f16": 2e-3}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
NOT_IN_MAX = re.compile(r"(rotary_emb-|position_embeddings|mask|position_ids|cache_position)")
KEEPS = {
    "all": lambda layer, port: True,
    "norope": lambda layer, port: not NOT_IN_MAX.search(f"{layer}-{port}"),
    "outputs": lambda layer, port: port.startswith("output"),
}


def build(case, seed):
    """The reference in float32, and what it is asked."""
    arch, s = archs.ARCHS[case.arch], case.seed(seed)
    torch.manual_seed(s)
    changes = dict(case.config)
    if case.layers:
        changes[arch.sizes] = case.layers
        if "layer_types" in arch.config:
            changes["layer_types"] = (arch.config["layer_types"] * case.layers)[: case.layers]
    model = weights.randomize(arch.build(s, **changes), s)
    if case.prepare == "massive":
        weights.massive(model, s)
    elif case.prepare == "sink":
        weights.sink(model)
    elif case.prepare == "ties":
        weights.ties(model, s)
    elif case.prepare == "q4":
        weights.q4(model, s)
    elif case.prepare == "final_bias":
        weights.final_bias(model, s)
    feed = feeds.feed(arch, model, s, case.steps, case.pad, case.batch)
    if case.prepare == "larger":
        weights.larger(feed, model, s)
    return model, feed


def candidate(case, model, wrong=True):
    """The other side: rewritten, cast, with islands, and with the bug unless it is to be right."""
    m = copy.deepcopy(model)
    if case.rewrite:
        case.rewrite(m)
    weights.cast(m, DTYPES[case.dtype])
    for island in case.islands:
        if not islands.ISLANDS[island](m):
            raise ValueError(f"{case.name}: {case.arch} has nothing for {island}")
    if case.bug and wrong:
        case.bug.plant(m)
    return m


def error(a, g, keep=None):
    """The relative L2, without the padding; 1 for other shapes and integers."""
    if a.shape != g.shape:
        return 1.0
    if keep is not None and a.shape[:2] == keep.shape:
        a, g = a[keep], g[keep]
    if not g.is_floating_point():
        return float(not torch.equal(a, g))
    a, g = a.double(), g.double()
    fine = torch.isfinite(g) & (g.abs() < 1e30)
    d = (a - g)[fine].norm() / g[fine].norm().clamp_min(1e-30)
    return float(d) if torch.isfinite(d) else 1e30


def errors(run, golden, feed):
    """The relative L2 of every output of all steps."""
    out, keep = {}, torch.tensor(feed.pad_mask).bool() if feed.pad_mask else None
    for step, (got, want) in enumerate(zip(run, golden)):
        want = {(layer, port): t for layer, port, t in want}
        for layer, port, t in got:
            if port.startswith("output") and (layer, port) in want and t.numel():
                out[step, layer, port] = error(t, want[layer, port], keep)
    return out


def write(case, root, seed):
    """Writes a case; returns its line of the list."""
    model, feed = build(case, seed)
    reference = weights.cast(copy.deepcopy(model), DTYPES[case.reference])
    golden = record.run(reference, feed)
    cand = candidate(case, model)
    standard = record.run(cand, case.asked(feed))
    injected = record.run(candidate(case, model), feed, golden)

    folder = root / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    keep = KEEPS[case.keep]
    encoding = record.ENCODINGS[DTYPES[case.dtype]]
    record.write(folder / "ref", case.name, golden, record.ENCODINGS[DTYPES[case.reference]])
    record.write_program(folder / "ref", case.name, reference, feed)
    record.write(folder / "cand", case.name, standard, encoding if case.encoding else None, keep)
    record.write(folder / "cand_injected", case.name, injected, encoding if case.encoding else None, keep, injected=True)
    rounded = golden
    if case.dtype != case.reference:  # what rounding alone does to the reference
        rounded = record.run(weights.cast(copy.deepcopy(model), DTYPES[case.dtype]), feed)
        record.write(folder / "ref16", case.name, rounded, encoding)
    tied = re.compile(r"(lm_head|embed_out)\.weight$" if getattr(model.config, "tie_word_embeddings", False) else "$^")
    save_file({k: v.clone().contiguous() for k, v in reference.state_dict().items() if not tied.search(k)}, folder / "weights.safetensors")
    (folder / "config.json").write_text(model.config.to_json_string(use_diff=False))
    if feed.pad_mask:
        (folder / "pad_mask.json").write_text(json.dumps(feed.pad_mask))
    about = {
        "case": case.name, "family": case.arch, "reference_dtype": case.reference, "candidate_dtype": case.dtype, "steps": len(feed.steps),
        "islands": list(case.islands), "candidate_framework": "torch", "pad_mask": feed.pad_mask, "reference_weights": "weights.safetensors",
    }  # fmt: skip
    (folder / "case.json").write_text(json.dumps(about, indent=1))

    measured, doubts = measure(case, model, feed, golden, rounded, standard, injected)
    truth = {
        "case": case.name, "family": case.arch, "engine": "torch", "verdict": "fail" if case.bug else "pass",
        "kind": None, "also_kind": [], "first_bad_layer": None, "also_right": [], "second_bad_layer": None,
        "cause_id": None, "also_cause": [], "cause": "none", "rewrite": bool(case.rewrite), "measured": measured,
    }  # fmt: skip
    if case.bug:
        truth |= case.bug.truth()
    if doubts:
        shutil.rmtree(folder)
        return f"{case.name:44} left out: {'; '.join(doubts)}"
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))  # last: it completes a case
    return f"{case.name:44} " + "  ".join(f"{k} {v:.2g}" if isinstance(v, float) else f"{k} {v}" for k, v in measured.items() if v)


def measure(case, model, feed, golden, rounded, standard, injected):
    """What plain numbers say, and why the case would not be fair."""
    std, alone = errors(standard, golden, feed), errors(injected, golden, feed)
    ends = [k for k in std if k[1] == "model" and "hidden" not in k[2]] or [k for k in std if k[1] == "model"]
    end, own = (max(e[k] for k in ends) for e in (std, errors(rounded, golden, feed)))
    flips = choices(standard, golden)
    measured = {"model_output_relative_l2": end, "reference_rounded": own, "worst_injected": max(alone.values()), "choices_differ": flips}
    if not case.bug:
        if end < 3 * own + FLOORS[case.dtype] or flips and not case.rewrite:
            return measured, []
        return measured, [f"{end:.2g} off at the end, rounding alone {own:.2g}"]
    right = record.run(candidate(case, model, wrong=False), feed)
    if choices(right, golden):
        return measured, ["rounding alone chooses other experts"]
    clean = errors(right, golden, feed)
    clean_alone = errors(record.run(candidate(case, model, wrong=False), feed, golden), golden, feed)
    measured["times_the_clean_error"] = times = there(case.bug, std, clean)
    measured["times_alone"] = times_alone = there(case.bug, alone, clean_alone)
    seen = times_alone if case.bug.seen == "injected" else times
    return measured, [] if seen >= 5 else [f"only {seen:.2g} times the clean error"]


def there(bug, wrong, clean):
    """How many times larger the error is where the bug is."""
    return max(wrong[k] / max(clean[k], 1e-6) for k in wrong if bug.shows(k[1]))


def choices(run, golden):
    """In how many tensors other experts are chosen: rounding decides where two are equally good."""

    def of(records):
        return [t for layer, port, t in records if t.dtype == torch.int64 and layer.endswith(("gate", "router", "experts"))]

    return sum(not torch.equal(a, b) for got, want in zip(run, golden) for a, b in zip(of(got), of(want)))


def generate(name, root, seed):
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    try:
        return write(next(c for c in cases.cases() if c.name == name), root, seed)
    except Exception as e:
        raise RuntimeError(f"{name}: {e}") from e


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", type=pathlib.Path, nargs="?")
    p.add_argument("--match", default="", help="only the cases whose name matches this pattern")
    p.add_argument("--seed", type=int, default=0, help="other weights, prompts and lengths")
    p.add_argument("--list", action="store_true", help="only print the names")
    args = p.parse_args()
    names = [c.name for c in cases.cases() if re.search(args.match, c.name)]
    if args.list or not args.folder:
        print("\n".join(names))
        return
    with concurrent.futures.ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # torch takes 500 MB a process
        for line in pool.map(generate, names, itertools.repeat(args.folder), itertools.repeat(args.seed)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
