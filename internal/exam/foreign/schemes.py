"""What a foreign engine does to a candidate: other names, other layers, other layouts. See README.md."""

import dataclasses
import hashlib

import numpy as np

import dumps
import words


@dataclasses.dataclass
class Case:
    """A case whose candidate is changed in place."""

    golden: dumps.Dump
    runs: list  # the candidate's standard run, and the injected one if there is one
    names: dict  # candidate's layer → layers of the reference
    config: dict
    seed: str
    ordered: bool = True

    def __post_init__(self):
        # What a layer is in the reference's words: foreign names are made of it.
        self.meaning = {label: found[0] for label, found in self.names.items() if len(found) == 1}

    def chance(self, of):
        return int.from_bytes(hashlib.sha256(f"{self.seed} {of}".encode()).digest()[:4]) / 2**32

    def labels(self):
        return list(dict.fromkeys(label for d in self.runs for label in d.layers))

    def called(self, speak):
        """Renames all layers, by what they are."""
        meant = {label: self.meaning.get(label, label) for label in self.labels()}
        said = words.rename(dict.fromkeys(meant.values()), speak)
        self.rename({label: said[m] for label, m in meant.items()})

    def rename(self, said):
        if len(set(said.values())) != len(said):
            raise ValueError("two layers have one name")
        for d in self.runs:
            for e in d.entries:
                e.layer = said[dumps.name(e.layer)] + dumps.call(e.layer)
        self.names = {said[label]: found for label, found in self.names.items()}

    def siblings(self, roles):
        """Lists of the candidate's layers with these roles, one of each, beside each other; parts of attention over
        another sequence are none."""
        out = {}
        for label in self.names:
            parent, _, last = label.rpartition(".")
            role = words.ROLE.get(last)
            if role in roles and words.ROLE.get(parent.rpartition(".")[2]) != "cross":
                out.setdefault(parent, {})[role] = label
        return {p: [found[r] for r in roles] for p, found in out.items() if len(found) == len(roles)}

    def heads(self, role):
        heads = self.config.get("num_attention_heads", 0)
        return (self.config.get("num_key_value_heads") or heads) if role != "q" else heads


def home(case):
    case.called(lambda label: words.say(words.HOME, label))


def gpt2(case):
    case.called(lambda label: words.say(words.GPT2, label))


def either(case):
    (home if case.chance("words") < 0.5 else gpt2)(case)


def flat(case):
    case.called(lambda label: words.say(words.FLAT, label, flat=True))


def shifted(case):
    vocabulary = words.HOME if case.chance("words") < 0.5 else words.GPT2
    case.called(lambda label: words.say(vocabulary, label, first=1))


def opaque(case):
    stem = "t" if case.chance("stem") < 0.5 else "op_"
    case.rename({label: f"{stem}{i}" for i, label in enumerate(case.labels())})


def noorder(case):
    home(case)
    case.ordered = False


def reversed_(case):
    """Siblings that do not need each other, the last one first."""
    done = False
    for roles in (("q", "k", "v"), ("gate", "up")):
        for parent, labels in case.siblings(roles).items():
            groups = [[label] for label in labels]
            for group, role in zip(groups, roles):  # what is made of one of them alone goes with it
                group += [f"{parent}.{role}_norm"] * (role in "qk") + [f"{parent}.act_fn"] * (role == "gate")
            order = {label: i for i, group in enumerate(reversed(groups)) for label in group}
            for d in case.runs:
                for step in dict.fromkeys(e.step for e in d.entries):
                    at = [i for i, e in enumerate(d.entries) if e.step == step and e.layer in order]
                    moved = sorted((d.entries[i] for i in at), key=lambda e: order[e.layer])
                    for i, e in zip(at, moved):
                        d.entries[i] = e
                    done = True
    if not done:
        return False
    either(case)


def fused(case):
    """One product where the reference has several: its output is theirs, side by side."""
    done = False
    for roles, last in ((("q", "k", "v"), "qkv_proj"), (("gate", "up"), "gate_up_proj")):
        for parent, labels in case.siblings(roles).items():
            if not all(len(case.names[label]) == 1 and fits(case, labels) for label in labels):
                continue
            for d in case.runs:
                d.entries = list(join(d, labels, f"{parent}.{last}"))
            found = [case.names.pop(label)[0] for label in labels]
            case.names[f"{parent}.{last}"] = found
            case.meaning[f"{parent}.{last}"] = found[0].rpartition(".")[0] + "." + last
            done = True
    if not done:
        return False
    either(case)


def fits(case, labels):
    """Whether layers have one output each, of one shape but for the last axis, and the same input."""
    for d in case.runs:
        for step in dict.fromkeys(e.step for e in d.entries):
            now = [[e for e in d.entries if e.step == step and dumps.name(e.layer) == label] for label in labels]
            outs = [[e for e in entries if e.port.startswith("output")] for entries in now]
            ins = [[e for e in entries if e.port.startswith("input")] for entries in now]
            if any(len(o) != 1 or o[0].layer != label for o, label in zip(outs, labels)):
                return False
            if len({(o[0].dtype, o[0].data.shape[:-1]) for o in outs}) > 1 or len({len(i) for i in ins}) > 1:
                return False
            if any(not a.same(b) for other in ins[1:] for a, b in zip(ins[0], other)):
                return False
    return True


def join(dump, labels, label):
    """The entries with one layer in place of several, where the first of them was."""
    for e in dump.entries:
        if e.layer not in labels:
            yield e
        elif e.layer == labels[0] and e.port.startswith("output"):
            parts = [next(o for o in dump.entries if (o.step, o.layer, o.port) == (e.step, x, e.port)) for x in labels]
            yield dataclasses.replace(e, layer=label, data=np.concatenate([p.data for p in parts], -1))
        elif e.layer == labels[0]:
            yield dataclasses.replace(e, layer=label)


def split(case):
    """Three products where the reference has one."""
    done = False
    for label in [x for x in case.names if x.rpartition(".")[2] in ("qkv", "c_attn")]:
        outs = [e for d in case.runs for e in d.of(label) if e.port.startswith("output")]
        if len(case.names[label]) > 1 or any(e.layer != label or e.data.shape[-1] % 3 for e in outs):
            continue
        parent, found = label.rpartition(".")[0], case.names.pop(label)
        parts = [f"{parent}.{x}_proj" for x in "qkv"]
        for d in case.runs:
            d.entries = [new for e in d.entries for new in (cut(d, e, parts) if e.layer == label else [e])]
        for part in parts:
            case.names[part] = found
            case.meaning[part] = found[0].rpartition(".")[0] + "." + part.rpartition(".")[2]
        done = True
    if not done:
        return False
    either(case)


def cut(dump, entry, parts):
    """The entries of a layer's parts, where the layer's last one was."""
    mine = [e for e in dump.entries if (e.step, e.layer) == (entry.step, entry.layer)]
    if entry is not mine[-1]:
        return
    for i, part in enumerate(parts):
        for e in mine:
            data = np.split(e.data, 3, -1)[i] if e.port.startswith("output") else e.data
            yield dataclasses.replace(e, layer=part, data=data)


def batchless(case):
    """No axis for the batch, where it is 1."""
    tokens = [e.data for e in case.runs[0].entries if e.data.ndim >= 3]
    if len(tokens) < 10 or any(x.shape[0] != 1 for x in tokens):
        return False
    for d in case.runs:
        for e in d.entries:
            # Two axes may be tokens and channels already, as those of a router.
            if e.data.ndim and e.data.shape[0] == 1 and (e.data.ndim >= 3 or e.dtype in dumps.INTEGERS):
                e.data = e.data[0]
    either(case)


def heads(case):
    """Queries, keys and values with the heads before the tokens."""
    done = False
    for parent, labels in case.siblings(("q", "k", "v")).items():
        for label, role in zip(labels, "qkv"):
            n = case.heads(role)
            for e in (e for d in case.runs for e in d.of(label) if e.port.startswith("output")):
                if n > 1 and e.data.ndim in (2, 3) and e.data.shape[-1] % n == 0:
                    x = e.data.reshape(*e.data.shape[:-1], n, -1)
                    e.data = np.ascontiguousarray(np.swapaxes(x, -2, -3))
                    done = True
    if not done:
        return False
    home(case)


# Each changes the case, or returns False where it has nothing to change.
SCHEMES = {
    "gpt2": gpt2,
    "home": home,
    "flat": flat,
    "shifted": shifted,
    "opaque": opaque,
    "noorder": noorder,
    "reversed": reversed_,
    "fused": fused,
    "split": split,
    "batchless": batchless,
    "heads": heads,
}
