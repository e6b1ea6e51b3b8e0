"""Writes cases of other exams with candidates whose names are foreign, and the answers. See README.md."""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil

import numpy as np

import dumps
import schemes
import truth

DIFFERENT = "different"
ALL = (*schemes.SCHEMES, DIFFERENT)
INJECTED = "cand_injected"


def chance(*of):
    return int.from_bytes(hashlib.sha256(" ".join(map(str, of)).encode()).digest()[:4]) / 2**32


def load(folder, seed):
    golden, cand = dumps.read(folder / "ref"), dumps.read(folder / "cand")
    runs = [cand] + ([dumps.read(folder / INJECTED)] if (folder / INJECTED).exists() else [])
    config = json.loads((folder / "config.json").read_text()) if (folder / "config.json").exists() else {}
    return schemes.Case(golden, runs, truth.joins(golden, cand), config, f"{seed} {folder.name}")


def write(folder, target, scheme, case, changes):
    """Writes a case: the candidate anew, the rest as links."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name not in ("cand", INJECTED, "case.json", "truth.json"):
            os.symlink(os.path.relpath(path, target), target / path.name)
    for name, dump in zip(("cand", INJECTED), case.runs):
        dumps.write(target / name, dump, case.ordered)
    about = json.loads((folder / "case.json").read_text())
    if weights := about.get("reference_weights"):
        about["reference_weights"] = os.path.relpath(folder / weights, target)
    (target / "case.json").write_text(json.dumps(about, indent=1))
    answer = json.loads((folder / "truth.json").read_text()) | {"case": target.name, "scheme": scheme} | changes
    (target / "truth.json").write_text(json.dumps(answer, indent=1))  # last: it completes a case


def foreign(folder, target, scheme, seed):
    """Writes the case with names of a scheme; returns whether the scheme has something to do there."""
    case = load(folder, seed)
    if scheme == "opaque" and by_name_alone(folder):
        return False
    unlike = truth.unlike(case.golden, case.runs[0], case.names)
    if schemes.SCHEMES[scheme](case) is False:
        return False
    changes = {
        "names": {label: found[0] if len(found) == 1 else found for label, found in case.names.items()},
        "also_names": truth.twins(case.golden, case.runs[0], case.names),
        "may_refuse": unlike,
    }
    write(folder, target, scheme, case, changes)
    return True


def by_name_alone(folder):
    """Whether the bug is that a layer holds another one's value: only its name says that it is not the other one."""
    answer = json.loads((folder / "truth.json").read_text())
    return bool(re.match("capture/|linear/(qkv-order|gate-up)", answer["cause_id"] or ""))


def different(folder, target, others, seed):
    """Writes a case whose candidate is that of another case, with other weights, that has tensors as wide."""
    golden = dumps.read(folder / "ref")
    for other in sorted(others, key=lambda o: chance(seed, folder.name, o.name)):
        if other.name == folder.name or shared(folder, other):
            continue
        case = load(other, seed)
        if not widths(golden) & widths(case.golden):
            continue
        vocabulary = ("home", "flat", "opaque")[int(3 * chance(seed, folder.name, "words"))]
        schemes.SCHEMES[vocabulary](case)
        case.runs = case.runs[:1]
        none = dict.fromkeys(("kind", "first_bad_layer", "second_bad_layer", "cause_id", "second_cause_id", "cause_regex"))
        none |= dict.fromkeys(("also_kind", "also_right", "also_cause"), [])
        write(folder, target, DIFFERENT, case, none | {"verdict": DIFFERENT, "rewrite": False, "names": {}, "other": other.name})
        return True
    return False


def widths(dump):
    return {e.data.shape[-1] for e in dump.entries if e.data.ndim >= 3 and e.dtype not in dumps.INTEGERS}


def shared(*folders):
    """Whether two cases have a weight in common that is not one number everywhere. It is not known without weights."""
    seen = []
    for folder in folders:
        about = json.loads((folder / "case.json").read_text())
        path = folder / (about.get("reference_weights") or "weights.safetensors")
        if not path.exists():
            return True
        tensors = dumps.read_safetensors(path).values()
        seen.append({x.tobytes() for _, x in tensors if x.size > 1 and np.any(x != x.flat[0])})
    return bool(seen[0] & seen[1])


def joined_by_value(truth):
    """Whether the fault is that tensors have another one's name: rules by value undo that, and rightly."""
    return json.loads(truth.read_text())["cause_id"] in ("capture/neighbour", "capture/normed")


def generate(folder, root, scheme, seed, others):
    """Writes a case in a scheme, or in the one that its name draws; returns the name of what was written."""
    same = [o for o in others if o.name == folder.name]
    name = folder.name if len(same) == 1 else f"{folder.parent.name}_{folder.name}"
    for s in [scheme] if scheme else sorted(ALL, key=lambda s: chance(seed, folder.name, s)):
        target = root / f"{s}_{name}"
        if different(folder, target, others, seed) if s == DIFFERENT else foreign(folder, target, s, seed):
            return target.name
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folders", type=pathlib.Path, nargs="*", help="folders of cases, and last the folder to write")
    p.add_argument("--scheme", choices=ALL, help="the scheme of all cases; one for each, drawn by its name, if left out")
    p.add_argument("--seed", type=int, default=0, help="draws other schemes and other words")
    p.add_argument("--share", type=float, default=1, help="of all cases, drawn by the name of each")
    p.add_argument("--match", default="", help="only the cases whose name matches this pattern")
    p.add_argument("--list", action="store_true", help="only print the schemes")
    args = p.parse_args()
    if args.list:
        print("\n".join(ALL))
        return
    if len(args.folders) < 2:
        p.error("want folders of cases, and last the folder to write")
    *roots, target = args.folders
    cases = sorted(path.parent for root in roots for path in root.glob("*/truth.json") if not joined_by_value(path))
    chosen = [f for f in cases if re.search(args.match, f.name) and chance("share", f.parent.name, f.name) < args.share]
    with concurrent.futures.ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # torch takes 500 MB a process
        rest = map(itertools.repeat, (target, args.scheme, args.seed, cases))
        for name in pool.map(generate, chosen, *rest, chunksize=4):
            if name:
                print(name, flush=True)


if __name__ == "__main__":
    main()
