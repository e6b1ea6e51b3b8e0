"""Leaves out of a program what no port hangs on."""


def needed(values, ops, passes, guards):
    """The values, operators, passes and guards that remain, numbered anew.

    What is left out is what a run does beside the model: checks of its output, the choice of a token,
    what was calculated and never used.
    """
    wanted = {int(port[0][1:]) for p in passes for port in p["ports"].values()}
    kept, last = [False] * len(ops), sorted(guards, key=lambda g: g["ops"][0])
    for i in range(len(ops) - 1, -2, -1):
        while last and last[-1]["ops"][0] > i:
            g = last.pop()
            if any(kept[slice(*g["ops"])]):
                wanted.add(g["value"])
        if i >= 0 and any(v is not None and int(v[1:]) in wanted for v in ops[i]["out"]):
            kept[i] = True
            wanted.update(operands(ops[i]["args"]))
            wanted.update(int(v[1:]) for v in ops[i]["out"] if v is not None)
    before = [0]  # operators that remain, of the first i
    for k in kept:
        before.append(before[-1] + k)
    number = {old: new for new, old in enumerate(v["id"] for v in values if v["id"] in wanted)}
    name = lambda text: f"%{number[int(text[1:])]}"  # noqa: E731
    return (
        [{**v, "id": number[v["id"]], "from": {"op": before[v["from"]["op"]]} if "op" in v["from"] else v["from"]} for v in values if v["id"] in wanted],
        [{**o, "args": {k: _renamed(a, name) for k, a in o["args"].items()}, "out": [v and name(v) for v in o["out"]]} for o, k in zip(ops, kept) if k],
        [{**p, "ops": [before[i] for i in p["ops"]],
          "ports": {label: [name(v), before[at], before[until]] for label, (v, at, until) in p["ports"].items()}} for p in passes],
        [{**g, "value": f"%{number[g['value']]}", "ops": [before[i] for i in g["ops"]]} for g in guards if any(kept[slice(*g["ops"])])],
    )  # fmt: skip


def operands(args):
    """The numbers of the values in arguments."""
    for a in args.values():
        for x in a if isinstance(a, list) else [a]:
            if isinstance(x, str) and x.startswith("%"):
                yield int(x[1:])


def constants(values):
    """The keys of program.safetensors that values come from."""
    sources = [v["from"] for v in values]
    return {f"input:{s['step']}:{s['input']}" if "input" in s else s.get("constant") or s.get("buffer") for s in sources}


def _renamed(a, name):
    if isinstance(a, list):
        return [_renamed(x, name) for x in a]
    return name(a) if isinstance(a, str) and a.startswith("%") else a
