"""Runs a model and writes what its modules got and returned, as goparity's own recorder keeps it."""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine" / "runner"))
from goparity import program  # noqa: E402
from goparity.torchhooks import Recorder  # noqa: E402

ENCODINGS = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


def run(model, feed, golden=None):
    """The records of each step: [(layer, port, tensor)]. With a golden run, every module is given the inputs it had there."""
    inject = Injector(model, golden) if golden else None
    recorder = Recorder(model)
    steps = []
    for _ in forward(model, feed, inject):
        steps.append(recorder.take())
    recorder.remove()
    if inject:
        inject.remove()
    return steps


def forward(model, feed, inject=None):
    """Runs the steps, each with the cache of the one before, and yields after each."""
    past = None
    with torch.no_grad():
        for i, inputs in enumerate(feed.steps):
            if inject:
                inject.begin(i)
            cache = {feed.cache_name: past} if i else {}
            out = model(**inputs.to(dtype_of(model)), **cache, **feed.settings)
            yield
            past = out[feed.cache_name] if len(feed.steps) > 1 else None


def write_program(folder, case, model, feed):
    """Writes the program of the steps: the operators that the model runs."""
    with program.Recorder(model, case) as p:
        for _ in forward(model, feed):
            pass
    p.save(folder)


def dtype_of(model):
    return next(p.dtype for p in model.parameters() if p.is_floating_point())


class Injector:
    """Gives each module, also those within others, the inputs that it had in a golden run, in its own dtypes.

    Masks stay as they are: their numbers mean another thing in other types and kernels.
    """

    def __init__(self, model, golden):
        self.golden, self.handles, self.count = golden, [], {}
        for name, module in model.named_modules():
            layer = f"model.{name}" if name else "model"
            if name:
                self.handles.append(module.register_forward_pre_hook(self.before(layer), with_kwargs=True))

    def begin(self, step):
        self.now = {(layer, port): t for layer, port, t in self.golden[step] if port.startswith("input")}
        self.count = {}

    def before(self, layer):
        def hook(module, args, kwargs):
            n = self.count[layer] = self.count.get(layer, 0) + 1
            name = layer if n == 1 else f"{layer}({n})"
            args = tuple(self.replace(name, f"input_{i}", a) for i, a in enumerate(args))
            return args, {k: self.replace(name, f"input_{k}", v) for k, v in kwargs.items()}

        return hook

    def replace(self, layer, port, value):
        if isinstance(value, torch.Tensor):
            g = self.now.get((layer, port))
            if g is None or "mask" in port or g.shape != value.shape or value.dtype == torch.bool:
                return value
            if value.is_floating_point() and float(g.abs().max()) > 1e30:  # a mask that was passed without its name
                return value
            return g.to(value.dtype)
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(self.replace(layer, f"{port}.{i}", v) for i, v in enumerate(value))
        return value

    def remove(self):
        for h in self.handles:
            h.remove()


def write(folder, case, steps, encoding, keep=lambda layer, port: True, injected=False):
    """Writes run.json and a file a step. Equal tensors are stored once; keep says which ports are recorded."""
    folder.mkdir(parents=True)
    order = []
    for i, records in enumerate(steps):
        seen, tensors = {}, {}
        for layer, port, t in records:
            if not keep(layer, port) or injected and port.startswith("input"):
                continue
            name = f"{layer}-{port}"
            key = (t.dtype, tuple(t.shape), t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"")
            entry = [str(i), layer, port, f"{i}.safetensors"]
            if key in seen:
                entry.append(seen[key])
            else:
                seen[key] = name
                tensors[name] = t.contiguous()
            order.append(entry)
        save_file(tensors, folder / f"{i}.safetensors")
    about = {"schema": 1, "engine": "torch", "mode": "injected" if injected else "standard", "case": case}
    if injected:
        about["injection"] = "nested"
    if encoding:
        about["encoding"] = encoding
    about["order"] = order
    (folder / "run.json").write_text(json.dumps({"schema": 1, "cases": [about]}))
