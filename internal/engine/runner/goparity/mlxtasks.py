"""The tasks of MLX: text generation in mlx-lm, and modules of an oracle file."""

from contextlib import contextmanager
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from . import config, installed, mlxcache, mlxcosts, mlxhooks, mlxpaths, oracle, texts, tokens, weights
from .errors import ModelError, UsageError
from .job import BLIND

# --- text generation


@contextmanager
def generate(job, out):
    """A model that is ready to run the cases of a job."""
    with config.overridden_folder(job) as folder:
        yield _Generation(job, out, folder)


class _Generation:
    def __init__(self, job, out, folder):
        self.job, self.out, self.folder, self.settings = job, out, folder, {**mlxcache.SETTINGS, **job.config}
        with out.clock.phase("load"):
            self.model, read = _own(job) if job.oracle else _load(job, folder)
            tokenizer = tokens.tokenizer_of(job)
            self.ids = {c["name"]: tokens.encode(job, c, tokenizer) for c in job.cases}
            limits = config.Limits(read)
            for case in job.cases:
                tokens.check(case, self.ids[case["name"]], limits.vocab, limits.longest, case.get("steps") or 1)
        out.about.update(installed.about(type(self.model)), modules=mlxhooks.modules(self.model), config=read)

    def run(self, dump, case):
        job, model, settings, ids = self.job, self.model, self.settings, self.ids[case["name"]]
        if job.encoding and settings["kv_bits"]:
            dump.info["encoding"] = {"compute": job.encoding, "kv_cache": f"int{settings['kv_bits']}"}
        if case.get("passes"):
            with recorded(job, dump, model) as save, self.out.clock.phase("forward"):
                mlxpaths.run(model, settings, case, dump, save)
            return
        if job.observer != BLIND:
            with self.out.clock.phase("costs"):
                x, left = mlxpaths.padded(ids)
                dump.info["costs"] = mlxcosts.measure(model, lambda: model(x, cache=mlxcache.make(model, settings, left)))
        with recorded(job, dump, model) as save, self.out.clock.phase("forward"):
            dump.info["token_ids"] = ids
            dump.info["sequence"] = mlxpaths.steps(model, settings, case, ids, dump, save)
        if text := texts.of_mlx(self.folder, case):
            dump.info["text"] = text


def _load(job, folder):
    """The model of a folder, and its config.json with what the model's class makes of it."""
    from mlx_lm.utils import load_model

    if not job.local and not Path(folder).is_dir():
        from huggingface_hub import snapshot_download

        folder = snapshot_download(job.model, revision=job.revision)
    try:
        with _audited(job):
            model, read = load_model(Path(folder), trust_remote_code=job.trust_remote_code)
    except (ValueError, TypeError) as e:  # an unknown model, or one that wants keys which config.json has not
        raise ModelError(f"mlx-lm does not load the model: {e}", "config.json is of another version of transformers than mlx-lm reads, or a key is missing there") from e
    return _typed(job, model), {**read, **mlxhooks.settings(model)}


def _typed(job, model):
    if job.encoding:
        model.set_dtype(getattr(mx, job.encoding))
    return model.eval() or model


@contextmanager
def _audited(job):
    """Looks at each load of weights: MLX names some that do not fit, one at a time; or leaves random ones."""
    original = nn.Module.load_weights

    def load_weights(module, found, strict=True):
        pairs = list((mx.load(found) if isinstance(found, str) else dict(found)).items())
        wanted = dict(tree_flatten(module.parameters()))
        weights.audit(job, wanted.keys() - dict(pairs).keys(), dict(pairs).keys() - wanted.keys(), "mlx")
        wrong = [f"{n}: {tuple(t.shape)} in the checkpoint, the model wants {tuple(wanted[n].shape)}" for n, t in pairs if n in wanted and t.shape != wanted[n].shape]
        if wrong:
            raise ModelError("weights of the wrong shape: " + "; ".join(wrong[:8]), "config.json and the checkpoint are of different models")
        kinds = [f"{n} ({t.dtype})" for n, t in pairs if n in wanted and mx.issubdtype(t.dtype, mx.floating) != mx.issubdtype(wanted[n].dtype, mx.floating)]
        if kinds:
            raise ModelError("weights of the wrong dtype: " + "; ".join(kinds[:8]), "config.json and the checkpoint are of different models")
        return original(module, [(n, t) for n, t in pairs if n in wanted], strict=False)

    nn.Module.load_weights = load_weights
    try:
        yield
    finally:
        nn.Module.load_weights = original


@contextmanager
def recorded(job, dump, model):
    """Hooks a model, and yields the function that saves a step: save(step, result, caches, n).

    n is how many tokens of each sequence the step fed, padding included. A blind observer hooks nothing.
    """
    recorder = None if job.observer == BLIND else mlxhooks.Recorder(model, job.wants)

    def save(step, result, held=None, n=0):
        if bits := mlxcache.bits(held):
            dump.info["encoding"] = {"compute": job.encoding or str(result.dtype).removeprefix("mlx.core."), "kv_cache": f"int{bits}"}
        cache = mlxcache.ports(held, recorder.taken, n, job.wants) if job.kv_cache and recorder else []
        others = mlxhooks.arrays(result) + mlxcache.state(held) + [t for *_, t in cache]
        if recorder:
            records = recorder.take(*others)
            mlxcache.place(cache, records)
            mlxhooks.save(dump, step, records)
        if job.observer:
            mx.eval(others)
            dump.returned(step, [mlxhooks.raw(a) for a in mlxhooks.arrays(result)])

    if recorder is None:
        yield save
        return
    with recorder:
        yield save


# --- modules of an oracle file


def _own(job):
    """The model that an oracle makes for all cases."""
    model = oracle.load(job, "candidate")(oracle.Spec(job, job.cases[0]))
    if not isinstance(model, nn.Module):
        raise UsageError(f"{job.oracle}: candidate(spec) returned {type(model).__name__}, not an mlx.nn.Module")
    return _typed(job, model), mlxhooks.settings(model)


class Modules:
    """The modules that an oracle file makes, one for each case."""

    def __init__(self, job, out):
        self.job, self.out, self.model = job, out, None
        self.candidate = oracle.load(job, "candidate")

    def run(self, dump, case):
        job, out = self.job, self.out
        dump.info["token_ids"] = case.get("token_ids") or []
        with out.clock.phase("load"):
            mx.random.seed(0)
            model, args, kwargs = _module(job, case, self.candidate(oracle.Spec(job, case)))
        self.model = model
        out.about.update(installed.about(type(model)), modules=mlxhooks.modules(model))
        if job.observer != BLIND:
            with out.clock.phase("costs"):
                dump.info["costs"] = mlxcosts.measure(model, lambda: model(*args, **kwargs))
        with recorded(job, dump, model) as save, out.clock.phase("forward"):
            save(0, model(*args, **kwargs))


def _module(job, case, made):
    """Takes apart what candidate(spec) returned: module, arguments, keywords.

    It may be a module, or (module, inputs) with a tuple, a dict or one array as inputs.
    """
    model, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, nn.Module):
        raise UsageError(f"{job.oracle}: candidate(spec) returned {type(made).__name__}, not an mlx.nn.Module or (module, inputs)")
    if inputs is None:
        if not case.get("token_ids"):
            raise UsageError(f"candidate(spec) returned no inputs, and case {case['name']} has no token_ids",
                             "return (module, inputs) with a tuple of arguments or a dict of named ones")  # fmt: skip
        inputs = (case["token_ids"],)
    model = _typed(job, model)
    if isinstance(inputs, dict):
        return model, (), {k: _array(job, v) for k, v in inputs.items()}
    return model, [_array(job, v) for v in (inputs if isinstance(inputs, (tuple, list)) else (inputs,))], {}


def _array(job, value):
    """An input as an array. Floats get the dtype of the run."""
    if not isinstance(value, mx.array):
        if not hasattr(value, "__array__") and not isinstance(value, list):
            return value
        value = mx.array(value)
    return value.astype(getattr(mx, job.encoding)) if job.encoding and mx.issubdtype(value.dtype, mx.floating) else value
