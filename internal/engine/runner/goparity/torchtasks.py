"""The tasks of torch: Hugging Face models, and modules of an oracle file."""

from contextlib import contextmanager, suppress

import torch

from . import config, installed, oracle, texts, tokens, torchcache, torchhooks, torchimages, torchlora, torchpaths, torchprogram, torchrounding, torchsanity, weights
from .errors import ModelError, UsageError
from .images import Images, names
from .job import BLIND
from .progress import warn
from .torchstate import State

AUTO = {"text-generation": "AutoModelForCausalLM", "embeddings": "AutoModel", "text-classification": "AutoModelForSequenceClassification"}


# --- Hugging Face models


class Pretrained:
    """A model of a folder or the hub, ready to run the cases of a job."""

    def __init__(self, job, out, device, dtype):
        self.job, self.out, self.device = job, out, device
        with out.clock.phase("load"):
            self.model = model = torchprogram.built(job, dtype, settings := _settings(job), _auto(job, settings)) if job.programs_only and not job.oracle else _load(job, dtype).to(device)
            if job.activations:
                out.about["activations"] = torchrounding.install(model, job.activations)
            if job.adapter:
                torchlora.install(model, job.adapter)
            self.tokenizer = tokens.tokenizer_of(job)
            self.images = Images(job)
            self.ids = {c["name"]: self.images.encode(c) if c.get("images") else tokens.encode(job, c, self.tokenizer) for c in job.cases}
        self.known = tokens.known_ids(self.tokenizer) if job.task == "text-generation" and not job.programs_only else None
        out.about.update(installed.about(type(model)), modules=torchhooks.modules(model))
        kernel = getattr(model.config, "_attn_implementation", None)
        if isinstance(kernel, str):
            out.about["attn_implementation"] = kernel
        limits = config.Limits(model.config.to_dict())
        out.about["config"] = config.read_by(model.config)
        for case in job.cases:
            steps = case.get("steps") or 1
            tokens.check(case, self.ids[case["name"]], limits.vocab, limits.longest, steps)
            if steps > 1 and job.task != "text-generation":
                raise UsageError(f"case {case['name']}: {steps} steps, but task {job.task} has one forward pass")
        self.state = State(model)

    def run(self, dump, case):
        job, model, ids = self.job, self.model, self.ids[case["name"]]
        if job.kv_type:
            dump.info["encoding"] = {"compute": job.encoding or "float32", "kv_cache": job.kv_type["type"]}
        if case.get("images"):
            dump.info["images"] = names(case["images"])
        if case.get("passes"):
            given = torchimages.given(model, self.images, self.state, self.device, case)
            with _recorded(job, dump, model) as save, self.out.clock.phase("forward"):
                torchpaths.run(model, self.images, given, self.state, self.device, job, case, dump, save)
            return
        dump.info["token_ids"] = ids
        seen = torchimages.to(model, self.images.inputs(ids, case["images"]), self.device) if case.get("images") else {}
        if not case.get("images") and not job.programs_only and (text := texts.reference(case, self.tokenizer)):
            dump.info["text"] = text
        if job.task == "text-generation" and job.sanity and not job.programs_only and getattr(model, "can_generate", lambda: False)():
            with self.out.clock.phase("sanity"):
                dump.info["reference_text"] = torchsanity.generated(model, self.device, case, ids, job, self.tokenizer, seen)

        def run(save):
            return torchpaths.steps(model, self.images, self.state, self.device, job, case, ids, dump, self.known, save)

        with _recorded(job, dump, model, run) as save, self.out.clock.phase("forward"):
            dump.info["sequence"] = run(save)


def _settings(job):
    """The configuration of a model, with what the job changes of it."""
    import transformers

    if job.task not in AUTO:
        raise UsageError(f"task {job.task!r} needs an oracle file", f"without one, {', '.join(AUTO)} are known")
    try:
        settings = transformers.AutoConfig.from_pretrained(job.model, revision=job.revision, trust_remote_code=job.trust_remote_code)
    except (OSError, ValueError) as e:
        hint = "" if job.local else "the hub is not asked unless you say so: set HF_HUB_OFFLINE=0 for the first run, which fills its cache"
        raise ModelError(f"{job.model}: {e}", hint) from e
    if job.max_layers or job.overrides:
        settings = type(settings).from_dict(config.override(settings.to_dict(), job))
    if not getattr(settings, "architectures", None):
        warn(f"config.json of {job.model} names no architectures: taken as {AUTO[job.task]}")
    return settings


def _auto(job, settings):
    """The class that loads a model of the task: one that takes images, where there is no other."""
    import transformers

    auto = getattr(transformers, AUTO[job.task])
    if job.task == "text-generation" and type(settings) not in auto._model_mapping and not hasattr(settings, "auto_map"):
        return transformers.AutoModelForImageTextToText
    return auto


def _load(job, dtype):
    import transformers

    if job.oracle:
        return _module(job, oracle.load(job, "reference")(oracle.Spec(job, job.cases[0])))[0].to(dtype).eval()
    settings = _settings(job)
    auto = _auto(job, settings)
    try:
        model, info = auto.from_pretrained(job.model, config=settings, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True,
                                           attn_implementation=job.config.get("attn_implementation", "eager"),
                                           revision=job.revision, trust_remote_code=job.trust_remote_code)  # fmt: skip
    except (OSError, ValueError, ImportError) as e:  # ImportError: a kernel that is not installed
        raise ModelError(f"{job.model}: {e}") from e
    # Transformers would make them up; without ignore_mismatched_sizes it names them in its log alone.
    wrong = [f"{n[0]}: {tuple(n[1])} in the checkpoint, the model wants {tuple(n[2])}" for n in sorted(info.get("mismatched_keys", []))]
    if wrong:
        raise ModelError("weights of the wrong shape: " + "; ".join(wrong[:8]), "config.json and the checkpoint are of different models")
    weights.audit(job, info["missing_keys"], info["unexpected_keys"], "torch")
    weights.audit_kinds(job, {n for n, p in model.named_parameters() if p.is_floating_point()})
    if dtype == torch.float64 and hasattr(model, "set_experts_implementation"):
        with suppress(ValueError):  # it has no experts
            model.set_experts_implementation("eager")  # the grouped product takes no float64
    return model.eval()


@contextmanager
def _recorded(job, dump, model, again=None):
    """Hooks a model, and yields the function that saves a step: save(step, result, n). A step of None is forgotten.

    n is how many tokens of each sequence the step fed, padding included. A blind observer hooks
    nothing. With the job's program, the run is recorded as a program, too; again(save) runs it once more.
    """
    recorder = None if job.observer == BLIND or job.programs_only else torchhooks.Recorder(model, job.wants)
    program = torchprogram.Recording(job, dump, model)

    def save(step, result=None, n=0):
        if step is None:
            if recorder:
                recorder.take()
            return
        cache = []
        if job.kv_cache and job.observer != BLIND:
            cache = torchcache.ports(model, getattr(result, "past_key_values", None), n, job.wants)
            program.ports(cache)
        if recorder:
            records = recorder.take()
            torchcache.place(cache, records)
            torchhooks.save(dump, step, records)
        if job.observer:
            dump.returned(step, torchhooks.returned(result))

    try:
        with program:
            yield save
    finally:
        if recorder:
            recorder.remove()
    program.save(again)


# --- modules of an oracle file


class Modules:
    """The modules that an oracle file makes, one for each case."""

    def __init__(self, job, out, device, dtype):
        self.job, self.out, self.device, self.dtype, self.model = job, out, device, dtype, None
        with out.clock.phase("load"):
            self.reference = oracle.load(job, "reference")

    def run(self, dump, case):
        job, device, dtype = self.job, self.device, self.dtype
        if (case.get("steps") or 1) != 1:
            raise UsageError(f"case {case['name']}: a module has one step")
        dump.info["token_ids"] = case.get("token_ids") or []
        with self.out.clock.phase("load"):
            torch.manual_seed(0)
            model, args, kwargs = _module(job, self.reference(oracle.Spec(job, case)))
            model = model.to(device).eval()
            if args is None:
                if not case.get("token_ids"):
                    raise UsageError(f"reference(spec) returned no inputs, and case {case['name']} has no token_ids",
                                     "return (model, inputs) with a tuple of arguments or a dict of named ones")  # fmt: skip
                args = (torch.tensor(case["token_ids"]),)
            self.model = model = model.to(dtype)
            args, kwargs = [_to(a, device, dtype) for a in args], {k: _to(v, device, dtype) for k, v in kwargs.items()}
        self.out.about.update(installed.about(type(model)), modules=torchhooks.modules(model))
        with _recorded(job, dump, model) as save:
            with self.out.clock.phase("forward"):
                result = model(*args, **kwargs)
                torchsanity.check_output(job, case, result)
            save(0, result)


def _module(job, made):
    """Takes apart what reference(spec) returned: module, arguments (None if there are none), keywords.

    It may be a module, or (module, inputs) with a tuple, a dict or one tensor as inputs.
    """
    model, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"{job.oracle}: reference(spec) returned {type(made).__name__}, not a torch.nn.Module or (module, inputs)")
    if inputs is None:
        return model, None, {}
    if isinstance(inputs, dict):
        return model, (), inputs
    return model, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {}


def _to(value, device, dtype):
    """Moves an input to the device. Floats get the dtype of the run: float64 begins at the inputs."""
    if not isinstance(value, torch.Tensor):
        value = torch.as_tensor(value) if hasattr(value, "__array__") else value
    if isinstance(value, torch.Tensor):
        return value.to(device, dtype if value.is_floating_point() else value.dtype)
    return value
