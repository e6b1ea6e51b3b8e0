"""Real bugs of mlx-lm 0.32.2 and transformers 5.12.1, each from a config of a few lines, beside a healthy sibling.

    python examples/gallery/run.py [NAME …]

Each bug: random weights by a config, the same tokens through both sides, every module recorded, `parity compare`. The bug
must be placed where bugs.json says, and the sibling, whose config is healthy, must pass; without names the programs of the
texts for upstream must print what stands there, too. Needs torch, transformers and mlx-lm
(internal/engine/requirements*.txt), and the command parity: `make gallery` has all of them.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.append(str(ROOT / "internal/engine/runner"))  # the recorder of this clone, where none is installed

import goparity  # noqa: E402
import mlx.core as mx  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from mlx_lm.utils import load_model  # noqa: E402

LENGTH, CONTINUED = 24, 10
BUILT = ROOT / ".bin" / "parity"
PARITY = os.environ.get("PARITY") or (str(BUILT) if BUILT.exists() else "parity")


def main(names):
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    table = json.loads((HERE / "bugs.json").read_text())
    unknown = set(names) - {b["name"] for b in table["bugs"]}
    if unknown:
        sys.exit(f"no bug is called {', '.join(sorted(unknown))}: {', '.join(b['name'] for b in table['bugs'])}")
    wrong = []
    for bug in table["bugs"]:
        if not names or bug["name"] in names:
            with tempfile.TemporaryDirectory() as folder:
                wrong += show(bug, table["small"], Path(folder))
    if not names:
        wrong += [line for text in sorted((HERE / "issues").glob("*.md")) for line in proven(text)]
    for line in wrong:
        print(f"NOT AS EXPECTED {line}")
    return 1 if wrong else 0


def show(bug, small, folder):
    """Runs a bug and its sibling, prints what each shows, and returns what is not as bugs.json says."""
    name = bug["name"]
    print(f"== {name}: {bug['what']}", flush=True)
    config = {**small, **bug["config"]}
    said, code, texts = SIDES[bug["sides"]](config, folder / "bug")
    print(f"   {json.dumps({k: v for k, v in bug['config'].items() if k not in bug['sibling'] or v != bug['sibling'][k]})}")
    for who, ids in texts.items():
        print(f"   {who:20} {' '.join(f'{i:3}' for i in ids)}")
    print("".join(f"   {line}\n" for line in head(said)))
    wrong = [f"{name}: parity compare does not say {want!r}" for want in bug["says"] if want not in " ".join(said.split())]
    if code != 1:
        wrong.append(f"{name}: parity compare ended with {code}, a bug ends with 1")
    said, code, texts = SIDES[bug["sides"]]({**config, **bug["sibling"]}, folder / "sibling")
    print(f"   sibling {json.dumps(bug['sibling'])}\n   {head(said)[0]}\n", flush=True)
    if code != 0 or len(set(map(tuple, texts.values()))) > 1:
        wrong.append(f"{name}: its healthy sibling does not pass: {said.splitlines()[0]}")
    return wrong


def proven(text):
    """Runs the program of a text for upstream as it stands there, and returns what is not as the text says: numbers to 2 %."""
    program, printed = re.search(r"```python\n(import .*?)```\n\n```\n(.*?)\n```", text.read_text(), re.DOTALL).groups()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, encoding="utf-8")
    said = done.stdout.strip()
    print(f"== {text.name} prints {said}", flush=True)
    number = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
    close = [math.isclose(float(a), float(b), rel_tol=0.02) for a, b in zip(number.findall(said), number.findall(printed), strict=False)]
    if done.returncode or number.sub("#", said) != number.sub("#", printed) or not all(close):
        return [f"{text.name}: prints {said!r} and not {printed!r} {done.stderr[-500:]}"]
    return []


def head(said):
    """The verdict, the lines of both sides and the causes of a report, without its tables."""
    lines = said.splitlines()[1:]
    end = next((i for i, line in enumerate(lines) if line in ("What was judged", "Worst rows")), len(lines))
    return [line for line in lines[:end] if line.strip()]


# --- what is compared: each returns what parity compare says, its exit code, and the text of both sides


def mlx_lm(config, folder):
    """transformers and mlx-lm."""
    model = made(config, folder)
    port, _ = load_model(folder / "model")
    recorded(model, folder / "golden", lambda: logits(model, prompt()))
    recorded(port, folder / "dump", lambda: mx.eval(port(mx.array([prompt()]))))
    return *compare(folder), {"transformers": continued(lambda ids: logits(model, ids)), "mlx-lm": continued(lambda ids: port(mx.array([ids]))[0, -1].tolist())}


def kernels(config, folder):
    """transformers with eager attention, and with its default."""
    model = made(config, folder)
    port = transformers.AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32).eval()
    recorded(model, folder / "golden", lambda: logits(model, prompt()))
    recorded(port, folder / "dump", lambda: logits(port, prompt()))
    return *compare(folder), {"eager": continued(lambda ids: logits(model, ids)), "the default": continued(lambda ids: logits(port, ids))}


def chunks(config, folder):
    """transformers in one forward pass, and in chunks of 8 tokens after its cache."""
    model, size = made(config, folder), 8

    def chunked(ids):
        cache = {}
        for i in range(0, len(ids), size):
            with torch.no_grad():
                out = model(torch.tensor([ids[i : i + size]]), use_cache=True, **cache)
            cache = {k: out[k] for k in ("past_key_values", "cache_params") if out.get(k) is not None}
        return out.logits[0, -1].tolist()

    recorded(model, folder / "golden", lambda: logits(model, prompt()))
    recorded(model, folder / "dump", lambda: chunked(prompt()))
    passes = [[{"sequence": 0, "from": i, "to": i + size}] for i in range(0, LENGTH, size)]
    goparity.dump(folder / "dump", {}, token_ids=[prompt()], path=f"chunked:{size}", passes=passes)
    return *compare(folder), {"in one pass": continued(lambda ids: logits(model, ids)), f"in chunks of {size}": continued(chunked)}


SIDES = {"mlx-lm": mlx_lm, "kernels": kernels, "chunks": chunks}


# --- models, tokens, records


def made(config, folder):
    """A model with random weights, which is also saved: norms and biases are not left at 1 and 0, where bugs hide."""
    torch.manual_seed(7)
    kind = config["model_type"]
    settings = transformers.AutoConfig.for_model(kind, **{k: v for k, v in config.items() if k != "model_type"})
    model = transformers.AutoModelForCausalLM.from_config(settings, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight += 0.1 * torch.randn_like(weight)
    model.save_pretrained(folder / "model")
    return model


def prompt():
    return torch.randint(3, 256, (LENGTH,), generator=torch.Generator().manual_seed(3)).tolist()


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1].tolist()


def continued(following):
    """The tokens with which a model goes on: following returns the logits after tokens."""
    ids = prompt()
    for _ in range(CONTINUED):
        scores = following(ids)
        ids.append(max(range(len(scores)), key=scores.__getitem__))
    return ids[LENGTH:]


def recorded(model, folder, call):
    with goparity.record(model, folder):
        call()


def compare(folder):
    done = subprocess.run([PARITY, "compare", folder / "golden", folder / "dump", "--weights", folder / "model" / "model.safetensors"],
                          capture_output=True, text=True, encoding="utf-8")  # fmt: skip
    return done.stdout + done.stderr, done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
