"""The reference: a model in torch, every module recorded, prefill and decode steps. Needs no MAX."""

import importlib
import re
from contextlib import contextmanager, nullcontext

from . import common

ADVICE = ("look at the tokenizer and the chat template first, nonsense makes nonsense goldens; "
          "if that is meant, as with random weights, write model: {skip_sanity: REASON} in fixture.yaml")  # fmt: skip
AUTO = {"text-generation": "AutoModelForCausalLM", "embeddings": "AutoModel", "text-classification": "AutoModelForSequenceClassification"}
OLDEST = {"torch": (2, 5), "transformers": (4, 56)}  # torch.OutOfMemoryError; from_pretrained(dtype=…)
WORKS = {"torch": "2.15.0", "transformers": "5.12.1"}


def run(job, out):
    clock = out.clock
    packages = ["torch"] if job.task == "module" else ["torch", "transformers"]
    for p in packages:
        _need(p)
    with clock.phase("import"):
        try:
            for p in packages:
                importlib.import_module(p)
        except (ImportError, OSError) as e:
            raise common.InfraError(f"{p} cannot be imported: {e}", f"pip install {p}=={WORKS[p]}") from e
        import torch
    out.versions = common.versions("torch", "transformers", "tokenizers", "numpy", "safetensors")
    dtype = getattr(torch, job.encoding or "float32", None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise common.UsageError(f"unknown dtype {job.encoding!r} of the reference", "float32, float64, bfloat16 and float16 are known")
    device = _device(torch, job)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = False
    try:
        with torch.no_grad(), _throughout(torch, dtype):
            if job.task == "module":
                _run_modules(torch, job, out, device)
            else:
                _run_model(torch, job, out, device, dtype)
    except torch.OutOfMemoryError as e:
        raise common.InfraError(f"out of memory on {device}: {e}", "use fewer layers, a shorter case, or another dtype") from e


def _need(package):
    """The package is there, and new enough: said before its import, which takes long and fails in odd ways."""
    works = f"pip install {package}=={WORKS[package]}"
    common.need(package, works)
    installed = common.versions(package).get(package, "")
    if numbers := re.match(r"(\d+)\.(\d+)", installed):
        if (int(numbers[1]), int(numbers[2])) < OLDEST[package]:
            oldest = ".".join(map(str, OLDEST[package]))
            raise common.InfraError(f"{package} {installed} is too old: {oldest} or later is needed", works)


def _throughout(torch, dtype):
    """Keeps a float64 run in float64: models go to float32 and back in softmax, norms and rotary, which would be noise in the judge of noise.

    It is mask arithmetic as well: the lowest float64, which masks a row of padding, is -inf in float32, and a softmax of only those is NaN.
    """
    if dtype != torch.float64:
        return nullcontext()

    class Float64(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs, name = kwargs or {}, getattr(func, "__name__", "")
            if name == "float":
                func = torch.Tensor.double
            elif name != "view":  # which reads the same bytes in another way
                args = [torch.float64 if a is torch.float32 else a for a in args]
                kwargs = {k: torch.float64 if v is torch.float32 else v for k, v in kwargs.items()}
            return func(*args, **kwargs)

    return Float64()


def _device(torch, job):
    if job.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise common.InfraError("torch sees no GPU", "install a driver and a torch built for it, or run with the device cpu")
    return torch.device("cuda")


# --- Hugging Face models


def _run_model(torch, job, out, device, dtype):
    with out.clock.phase("load"):
        model = _load(torch, job, dtype).to(device)
        tokenizer = common.once(lambda: common.load_tokenizer(job))
        ids_by_case = [common.encode(job, c, tokenizer) for c in job.cases]
    known = common.known_ids(tokenizer) if job.task == "text-generation" else None
    out.about.update(common.about(type(model)))
    limits = common.Limits(model.config.to_dict())
    for case, ids in zip(job.cases, ids_by_case):
        steps = case.get("steps") or 1
        common.check_ids(case, ids, limits.vocab, limits.longest, steps)
        if steps > 1 and job.task != "text-generation":
            raise common.UsageError(f"case {case['name']}: {steps} steps, but task {job.task} has one forward pass")
    for case, ids in zip(job.cases, ids_by_case):
        dump = out.case(case)
        dump.info["token_ids"] = ids
        if job.task == "text-generation" and job.sanity and getattr(model, "can_generate", lambda: False)():
            with out.clock.phase("sanity"):
                dump.info["reference_text"] = _sanity(torch, model, device, case, ids, job, tokenizer)
        with _recorded(job, dump, model) as save, out.clock.phase("forward"):
            dump.info["sequence"] = _steps(torch, model, device, job, case, ids, dump.info, known, save)


def _load(torch, job, dtype):
    import transformers

    if job.oracle:
        return _module(torch, job, common.oracle(job, "reference")(common.Spec(job, job.cases[0])))[0].to(dtype).eval()
    if job.task not in AUTO:
        raise common.UsageError(f"task {job.task!r} needs an oracle file", f"without one, {', '.join(AUTO)} are known")
    common_args = {"revision": job.revision, "trust_remote_code": job.trust_remote_code}
    try:
        config = transformers.AutoConfig.from_pretrained(job.model, **common_args)
    except (OSError, ValueError) as e:
        hint = "" if job.local else "the hub is not asked unless you say so: set HF_HUB_OFFLINE=0 for the first run, which fills its cache"
        raise common.ModelError(f"{job.model}: {e}", hint) from e
    if job.max_layers or job.overrides:
        values = common.override_config(config.to_dict(), job)
        config = type(config).from_dict(values)
    if not getattr(config, "architectures", None):
        common.warn(f"config.json of {job.model} names no architectures: taken as {AUTO[job.task]}")
    auto = getattr(transformers, AUTO[job.task])
    try:
        model, info = auto.from_pretrained(job.model, config=config, dtype=dtype, attn_implementation="eager", output_loading_info=True,
                                           ignore_mismatched_sizes=True, **common_args)  # fmt: skip
    except (OSError, ValueError) as e:
        raise common.ModelError(f"{job.model}: {e}") from e
    # Transformers would make them up; without ignore_mismatched_sizes it names them in its log alone.
    wrong = [f"{n[0]}: {tuple(n[1])} in the checkpoint, the model wants {tuple(n[2])}" for n in sorted(info.get("mismatched_keys", []))]
    if wrong:
        raise common.ModelError("weights of the wrong shape: " + "; ".join(wrong[:8]), "config.json and the checkpoint are of different models")
    common.audit(job, info["missing_keys"], info["unexpected_keys"], "torch")
    common.audit_kinds(job, {n for n, p in model.named_parameters() if p.is_floating_point()})
    return model.eval()


@contextmanager
def _recorded(job, dump, model):
    """Hooks a model, and gives what saves a step: save(step, result). A blind observer hooks nothing."""
    from . import torchhooks

    recorder = None if job.observer == common.BLIND else torchhooks.Recorder(model, job.wants)

    def save(step, result):
        if recorder:
            torchhooks.save(dump, step, recorder.take())
        if job.observer:
            dump.returned(step, torchhooks.returned(result))

    try:
        yield save
    finally:
        if recorder:
            recorder.remove()


def _steps(torch, model, device, job, case, ids, info, known, save):
    """Prefill, then decode with the cache. Each step is fed the forced token or the model's own greedy one of the known ones. Gives the sequences.

    A batch of several lengths is padded: in front for generation, else at the end. info gets pad_mask, [batch][token] of the first step.
    """
    steps = case.get("steps") or 1
    forced = common.forced_tokens(case, len(ids))
    width = max(map(len, ids))
    padded = any(len(s) != width for s in ids)
    x, mask = _pad(torch, model, device, ids, width, left=job.task == "text-generation")
    args = {}
    if job.task == "embeddings" or padded or job.task == "text-classification":
        args["attention_mask"] = mask
    if padded:
        info["pad_mask"] = mask.tolist()
    if job.task != "text-generation":
        result = model(input_ids=x, **args)
        _check_output(torch, job, case, result)
        save(0, result)
        return ids
    sequence, past = [list(s) for s in ids], None
    for step in range(steps):
        if padded:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            args = {"attention_mask": mask, "position_ids": positions[:, -x.shape[1] :]}
        if steps > 1:
            args.update(use_cache=True, past_key_values=past)
        result = model(input_ids=x, **args)
        _check_output(torch, job, case, result.logits[:, -1])
        save(step, result)
        past = getattr(result, "past_key_values", None)
        if steps > 1 and past is None:
            raise common.ModelError(f"{type(model).__name__} keeps no cache: it has no decode steps", "set steps: 1")
        following = [f[step] for f in forced] if forced and step < len(forced[0]) else result.logits[:, -1, :known].argmax(-1).tolist()
        for s, t in zip(sequence, following):
            s.append(int(t))
        x = torch.tensor([[int(t)] for t in following], device=device)
        mask = torch.cat([mask, mask.new_ones(len(ids), 1)], 1)
    return sequence


def _pad(torch, model, device, ids, width, left):
    pad = getattr(model.config, "pad_token_id", None) or 0
    fill = [[pad] * (width - len(s)) for s in ids]
    ones = [[0] * (width - len(s)) for s in ids]
    x = [f + s if left else s + f for f, s in zip(fill, ids)]
    mask = [o + [1] * len(s) if left else [1] * len(s) + o for o, s in zip(ones, ids)]
    return torch.tensor(x, device=device), torch.tensor(mask, device=device)


def _sanity(torch, model, device, case, ids, job, tokenizer):
    """What the reference itself says to the first sequence of a case. Empty or endless text stops the run: see _doubt."""
    longest = common.Limits(model.config.to_dict()).longest
    room = job.sanity if not longest else min(job.sanity, longest - len(ids[0]))
    if room <= 0:
        return ""
    x = torch.tensor([ids[0]], device=device)
    made = model.generate(input_ids=x, attention_mask=torch.ones_like(x), max_new_tokens=room, do_sample=False)[0, len(ids[0]) :].tolist()
    try:
        text = tokenizer().decode(made, skip_special_tokens=True)
    except common.JobError:
        text = " ".join(map(str, made))  # a model without a tokenizer, asked with token ids
    if not text.strip():
        _doubt(job, case, "generates no text")
    elif period := common.repeats(made):
        _doubt(job, case, f"repeats {'one token' if period == 1 else f'{period} tokens'} endlessly: {text[-80:]!r}")
    return text


def _check_output(torch, job, case, result):
    """Stops a run whose first float output says nothing: not finite, or the same number everywhere. One element alone may be anything."""
    out = _first_float(torch, result)
    if out is None or not job.sanity:
        return
    bad = out.numel() - int(torch.isfinite(out).sum())
    if bad:
        _doubt(job, case, f"computes {bad} values of {out.numel()} that are not finite")
    elif out.numel() > 1 and bool((out == out.flatten()[0]).all()):
        _doubt(job, case, f"computes {out.flatten()[0].item():g} everywhere")


def _first_float(torch, value):
    from .torchhooks import Recorder

    if isinstance(value, torch.Tensor):
        return value if value.is_floating_point() and value.numel() else None
    return next((t for _, v in Recorder.fields(value) if (t := _first_float(torch, v)) is not None), None)


def _doubt(job, case, what):
    """Goldens of a reference that talks nonsense are nonsense. Where the user says why that is meant, it is only said."""
    text = f"case {case['name']}: the reference itself {what}"
    if job.skip_sanity:
        common.warn(f"{text}; skip_sanity: {job.skip_sanity}")
        return
    raise common.ModelError(text, ADVICE)


# --- modules of an oracle file


def _run_modules(torch, job, out, device):
    with out.clock.phase("load"):
        reference = common.oracle(job, "reference")
    for case in job.cases:
        if (case.get("steps") or 1) != 1:
            raise common.UsageError(f"case {case['name']}: a module has one step")
        dump = out.case(case)
        dump.info["token_ids"] = case.get("token_ids") or []
        with out.clock.phase("load"):
            torch.manual_seed(0)
            model, args, kwargs = _module(torch, job, reference(common.Spec(job, case)))
            model = model.to(device).eval()
            if args is None:
                if not case.get("token_ids"):
                    raise common.UsageError(f"reference(spec) gave no inputs, and case {case['name']} has no token_ids",
                                            "return (model, inputs) with a tuple of arguments or a dict of named ones")  # fmt: skip
                args = (torch.tensor(case["token_ids"]),)
            dtype = getattr(torch, job.encoding or "float32")
            model = model.to(dtype)
            args, kwargs = [_to(torch, a, device, dtype) for a in args], {k: _to(torch, v, device, dtype) for k, v in kwargs.items()}
        out.about.update(common.about(type(model)))
        with _recorded(job, dump, model) as save:
            with out.clock.phase("forward"):
                result = model(*args, **kwargs)
                _check_output(torch, job, case, result)
            save(0, result)


def _module(torch, job, made):
    """What reference(spec) may return: a module, or (module, inputs) with a tuple, a dict or one tensor as inputs."""
    model, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise common.UsageError(f"{job.oracle}: reference(spec) returned {type(made).__name__}, not a torch.nn.Module or (module, inputs)")
    if inputs is None:
        return model, None, {}
    if isinstance(inputs, dict):
        return model, (), inputs
    return model, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {}


def _to(torch, value, device, dtype):
    """Moves an input to the device; floats get the run's dtype, so that a float64 run is one from its inputs on."""
    if not isinstance(value, torch.Tensor):
        value = torch.as_tensor(value) if hasattr(value, "__array__") else value
    if isinstance(value, torch.Tensor):
        return value.to(device, dtype if value.is_floating_point() else value.dtype)
    return value
