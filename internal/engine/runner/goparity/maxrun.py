"""The candidate: a model in Modular MAX, in this process, every layer recorded. Needs no torch."""

import asyncio
import os
import shutil
from functools import partial

from . import common

WORKS = "26.7.0"
TOO_OLD = f"this MAX has no {{}}: MAX {WORKS} works; pip install 'max[serve]=={WORKS}'"


def run(job, out):
    common.need("max", f"pip install 'max[serve]=={WORKS}'")
    with out.clock.phase("import"):
        try:
            import max.driver
            import max.engine  # noqa: F401

            if job.task != "module":
                import max.pipelines  # noqa: F401
        except ImportError as e:
            raise common.InfraError(
                f"MAX cannot be imported: {e}", f"pip install 'max[serve]=={WORKS}'; it needs glibc 2.34 and a CPU with AVX2"
            ) from e
    out.versions = common.versions("max", "max-core", "mojo-compiler", "transformers", "tokenizers", "numpy")
    _check_api(out.versions.get("max", "unknown"), job)
    _check_device(max.driver, job)
    {"text-generation": _generate, "embeddings": _embed, "module": _modules}.get(job.task, _unknown)(job, out)


def _unknown(job, out):
    raise common.UsageError(f"MAX runs no task {job.task!r} here", "text-generation, embeddings, or module with an oracle file")


def _check_api(version, job):
    from max.engine import InferenceSession

    wanted = [(InferenceSession, "set_debug_print_options")] + [(InferenceSession, "init_all")] * job.injected
    try:
        from max.nn.hooks import PrintHook  # noqa: F401
    except ImportError as e:
        raise common.InfraError(TOO_OLD.format("max.nn.hooks.PrintHook") + f" (installed is {version})") from e
    if job.task != "module":
        import max.pipelines as p

        wanted += [(p, "AutoModel" if job.task == "text-generation" else "PipelineArgs"), (p, "PIPELINE_REGISTRY")]
    for owner, name in wanted:
        if not hasattr(owner, name):
            raise common.InfraError(TOO_OLD.format(f"{owner.__name__}.{name}") + f" (installed is {version})")


def _check_device(driver, job):
    if job.device == "gpu" and not driver.accelerator_count():
        raise common.InfraError("MAX sees no GPU", "install the driver, or run with the device cpu")
    if job.device == "cpu" and job.encoding in ("bfloat16", "float16", "float8_e4m3fn", "float4_e2m1fnx2", "gptq"):
        raise common.ModelError(f"MAX has no {job.encoding} on the CPU", "use float32 or a GGUF encoding (q4_k, q4_0, q6_k) on the CPU")


def _limits(folder, job):
    if os.path.isdir(folder):
        return common.Limits(common.load_config_dict(folder))
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder, revision=job.revision, trust_remote_code=job.trust_remote_code)
    except OSError as e:
        said = str(e).splitlines()[0]
        raise common.InfraError(f"{folder}: {said}", "get the model into the hub's cache first, allow the hub with HF_HUB_OFFLINE=0, or name a folder") from e
    return common.Limits(config.to_dict())


def _settings(job, model, ids_by_case):
    """The engine's settings: those of the job, and what a run that is recorded needs where it does not say."""
    rows = max(map(len, ids_by_case))
    longest = max(len(s) + (c.get("steps") or 1) for c, ids in zip(job.cases, ids_by_case) for s in ids)
    settings = dict(job.config)
    settings.setdefault("max_batch_size", rows)
    if "max_length" not in settings:
        length = 128
        while length < longest:
            length *= 2
        settings["max_length"] = min(length, model.longest) if model.longest else length
    if settings["max_batch_size"] < rows:
        raise common.UsageError(f"engine.max_batch_size is {settings['max_batch_size']}, but a case has {rows} sequences")
    for case, ids in zip(job.cases, ids_by_case):
        limit = min(x for x in (settings["max_length"], model.longest) if x) if model.longest else settings["max_length"]
        common.check_ids(case, ids, model.vocab, limit, case.get("steps") or 1)
    if job.encoding:
        settings["quantization_encoding"] = job.encoding
    if job.revision:
        settings["huggingface_model_revision"] = job.revision
    if job.trust_remote_code:
        settings["trust_remote_code"] = True
    return settings


# What MAX says of a model that it cannot take, and what to do about it.
_HINTS = [
    ("No architecture found", "MAX does not know this architecture: write the model with max.graph in oracle.py, task: module"),
    ("not supported on this device", "choose another encoding for this device in model.encodings"),
    ("not supported by MAX engine", "MAX has this architecture in other encodings only, max list shows which; those but q4_k, q4_0 and q6_k need a GPU"),
    ("compatible weights cannot be found", "the checkpoint has no weights in this encoding: name the one it has in model.encodings"),
    ("Unable to infer max_length", "engine.max_length is over the model's max_position_embeddings"),
    ("Failed to load tokenizer", "MAX needs the tokenizer's files beside the weights"),
    ("CUDA_ERROR_OUT_OF_MEMORY", "the GPU has too little free memory: fewer layers, a smaller engine.max_length, or another GPU"),
]


def _refusal(e):
    text = f"{type(e).__name__}: {e}"
    hint = next((h for known, h in _HINTS if known in text), "")
    if common.blame(e)[0] == "infra":
        return common.InfraError(f"MAX cannot build the model: {text[:3000]}", hint)
    return common.ModelError(f"MAX refuses the model: {text[:3000]}", hint)


def _build(clock, make):
    with clock.phase("compile"):
        try:
            return make()
        except (common.JobError, MemoryError):
            raise
        except Exception as e:
            if common.blame(e)[0] == "bug":
                raise
            raise _refusal(e) from e


STYLES = {"compact": "COMPACT", "full": "FULL", "binary": "BINARY", "max-checkpoint": "BINARY_MAX_CHECKPOINT"}


def _capture(job, out, case=None):
    """Hooks for a model that is about to be built; with a case, layers get the golden inputs of it."""
    from . import maxinject
    from .maxhooks import Capture

    injector = maxinject.Injector(case["golden"], maxinject.room(job.cases)) if case else None
    return Capture(_outside(out), job.wants, lambda missing, unused: common.audit(job, missing, unused, "max"), injector,
                   STYLES[job.style], job.precision)  # fmt: skip


def _rounds(job, cases):
    """The cases by the model that runs them: one for all; injected, one for each, for the goldens are bound to it as weights."""
    return [([c], c[0]) for c in cases] if job.injected else [(cases, None)]


def _outside(out):
    """Where that goes which is printed outside of the steps."""
    return os.path.join(out.tmp, ".before")


def _keep(dump, step, capture, folder):
    """Lists what a step left. A label without a tensor was not executed; that is said, not passed over."""
    found = capture.found(folder)
    gone = []
    for layer, port, label in capture.labels:
        if label in found:
            dump.add(step, layer, port, *found[label])
        else:
            gone.append(label)
    if gone:
        common.warn(f"case {dump.case['name']}, step {step}: {len(gone)} of {len(capture.labels)} tensors were not written, the first is {gone[0]}")
    known = {file for file, *_ in found.values()}
    for name in os.listdir(folder):
        if name not in known:
            os.remove(os.path.join(folder, name))
    dump.info["uncaptured"] = capture.uncaptured
    if capture.raw:
        dump.info.setdefault("raw", {}).update({f"{step}/{file}": spec for file, spec in capture.raw.items() if file in known})
    if capture.injector:
        dump.info.update(injection="nested", injected=capture.injector.injected, not_injected=capture.injector.left)


def _about(models):
    return common.about(type(models[-1])) if models else {}


def _returned(dump, step, values):
    """Keeps what the engine gives back, beside or in place of what the hooks see."""
    import numpy as np

    if dump.out.job.observer:
        known = [v for v in values if v.dtype.name in DTYPES]
        arrays = [np.ascontiguousarray(v.to_numpy() if hasattr(v, "to_numpy") else v) for v in known]
        dump.returned(step, [(DTYPES[a.dtype.name], a.shape, a.tobytes()) for a in arrays])


# As .safetensors calls what an engine gives back.
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "bool": "BOOL"}


def _prepared(job, folder):
    """What every pipeline needs: the tokenizer, which is loaded by its first use, the token ids of each case, and the engine's settings."""
    limits = _limits(folder, job)
    tokenizer = common.once(lambda: common.load_tokenizer(job))
    ids_by_case = [common.encode(job, c, tokenizer) for c in job.cases]
    return tokenizer, ids_by_case, _settings(job, limits, ids_by_case)


def _check_layers(job, capture):
    if not capture.labels and job.observer != common.BLIND:
        raise common.ModelError("MAX built the model, but no layer of it was recorded",
                                "see the patterns of capture; or its architecture builds layers in a way that the hooks do not see")  # fmt: skip


# --- text generation


def _generate(job, out):
    from max.pipelines import AutoModel

    with common.overridden_folder(job) as folder:
        with out.clock.phase("load"):
            tokenizer, ids_by_case, settings = _prepared(job, folder)
            settings.setdefault("use_subgraphs", False)
            if any(c.get("forced") for c in job.cases):
                known = common.known_ids(tokenizer)
                for case, ids in zip(job.cases, ids_by_case):
                    _check_forced(case, len(ids), known)
        for cases, golden in _rounds(job, list(zip(job.cases, ids_by_case))):
            with _capture(job, out, golden) as capture:
                model = _build(out.clock, lambda: AutoModel(folder, devices="cpu" if job.device == "cpu" else "gpu:0", **settings))
                capture.finish()
                out.about.update(_about(capture.models))
                _check_layers(job, capture)
                for case, ids in cases:
                    dump = out.case(case)
                    dump.info["token_ids"] = ids
                    with out.clock.phase("forward"):
                        dump.info["sequence"] = _decode(model, capture, dump, case, ids)
                model.close()
    _drop(out)


def _decode(model, capture, dump, case, ids):
    """One execution a step. Forced tokens take the place of sampled ones through the logits, after these were recorded."""
    steps, forced = case.get("steps") or 1, common.forced_tokens(case, len(ids))
    with model.generate_iter(ids, max_new_tokens=steps, temperature=0.0, top_k=1, ignore_eos=True, output_logits=True, seed=0) as it:
        if forced:
            _force(it, forced)
        step = 0
        while not it.done:
            with capture.into(dump.step(step)) as folder:
                it.step()
            _keep(dump, step, capture, folder)
            step += 1
        for s in range(step):
            _returned(dump, s, [rows[s] for rows in it.logits])
        sequences = [list(map(int, s)) for s in it.sequences]
    if forced:
        for row, (s, f) in enumerate(zip(sequences, forced)):
            got, want = s[len(ids[row]) :][: steps - 1], list(f[: steps - 1])
            if got != want:
                raise common.ModelError(f"case {case['name']}: MAX took the tokens {got} in place of the forced {want}")
    return sequences


def _check_forced(case, rows, known):
    """MAX gives logits beyond its tokenizer no chance, whatever they are: said before a compilation that takes minutes."""
    steps = case.get("steps") or 1
    for tokens in common.forced_tokens(case, rows) or []:
        if known and max(tokens[: steps - 1], default=0) >= known:
            raise common.UsageError(
                f"case {case['name']}: the forced token {max(tokens[: steps - 1])} is beyond the tokenizer, which has {known}: MAX never samples it",
                "the model has more logits than its tokenizer has tokens, and the reference chose one of those: run the reference again "
                "(parity update, parity run --engine torch), which chooses among the tokenizer's own")  # fmt: skip


def _force(it, forced):
    import numpy as np
    from max.driver import Buffer

    contexts = getattr(it, "_contexts", None)
    if contexts is None:
        raise common.InfraError(TOO_OLD.format("GenerateIterator with contexts, which forced tokens need"))
    for context, tokens in zip(contexts, forced):
        queue, kept = iter(tokens), []

        def force(inputs, queue=queue, kept=kept):
            token = next(queue, None)
            if token is None:
                return
            logits = np.array(inputs.logits.to_numpy())
            logits[-1, token] = logits[-1].max() + 100  # far above the others, and near enough that no sampler overflows
            kept.append(Buffer.from_numpy(logits))  # the copy may be read later than this returns
            inputs.logits.inplace_copy_from(kept[-1])

        params = context.sampling_params
        params.logits_processors = [*(params.logits_processors or ()), force]


# --- embeddings


def _embed(job, out):
    from max.driver import DeviceSpec
    from max.pipelines import PIPELINE_REGISTRY, PipelineArgs, PipelineConfig
    from max.pipelines.modeling.types import EmbeddingsGenerationInputs, PipelineTask, RequestID, TextGenerationRequest

    with common.overridden_folder(job) as folder:
        with out.clock.phase("load"):
            _, ids_by_case, settings = _prepared(job, folder)
            settings.setdefault("enable_prefix_caching", False)
            settings.setdefault("pool_embeddings", False)
        spec = DeviceSpec.accelerator() if job.device == "gpu" else DeviceSpec.cpu()

        def make():
            args = PipelineArgs.from_flat_kwargs(model_path=folder, device_specs=[spec], task=PipelineTask.EMBEDDINGS_GENERATION, **settings)
            return PIPELINE_REGISTRY.retrieve(PipelineConfig.from_args(args), task=PipelineTask.EMBEDDINGS_GENERATION)

        for cases, golden in _rounds(job, list(zip(job.cases, ids_by_case))):
            with _capture(job, out, golden) as capture:
                engine_tokenizer, pipeline = _build(out.clock, make)
                capture.finish()
                out.about.update(_about(capture.models))
                _check_layers(job, capture)
                for case, ids in cases:
                    if (case.get("steps") or 1) != 1:
                        raise common.UsageError(f"case {case['name']}: an embedding has one step")
                    dump = out.case(case)
                    # The engine's own tokenizer reads a prompt: what it makes of it is compared with the reference's input.
                    contexts, used = {}, []
                    for prompt in case.get("prompts") or ids:
                        request = TextGenerationRequest(request_id=RequestID(), prompt=prompt, model_name=folder)
                        context = asyncio.run(engine_tokenizer.new_context(request))
                        contexts[request.request_id] = context
                        used.append([int(t) for t in context.tokens.active])
                    dump.info["token_ids"] = dump.info["sequence"] = used
                    if case.get("token_ids") and used != ids:
                        raise common.ModelError(f"case {case['name']}: MAX made {used} of the token ids {ids}")
                    with out.clock.phase("forward"), capture.into(dump.step(0)) as step:
                        made = pipeline.execute(EmbeddingsGenerationInputs([contexts]))
                    _keep(dump, 0, capture, step)
                    _returned(dump, 0, [made[request].embeddings for request in contexts])
    _drop(out)


# --- modules of an oracle file


def _modules(job, out):
    from max.engine import InferenceSession
    from max.nn.layer import Module

    candidate = common.oracle(job, "candidate")
    for case in job.cases:
        if (case.get("steps") or 1) != 1:
            raise common.UsageError(f"case {case['name']}: a module has one step")
        dump = out.case(case)
        dump.info["token_ids"] = case.get("token_ids") or []
        with _capture(job, out, case if job.injected else None) as capture:
            with out.clock.phase("load"):
                made = candidate(common.Spec(job, case))
                if not isinstance(made, tuple) or len(made) != 4:
                    raise common.UsageError(f"{job.oracle}: candidate(spec) returned {type(made).__name__}",
                                            "return (module, weights, input_types, inputs): see the documentation of oracle files")  # fmt: skip
                module, weights, types, inputs = made
                v3 = not isinstance(module, Module)
                if not v3 and not any(m is module for m in capture.models):
                    module.load_state_dict(weights, weight_alignment=1)
            session = InferenceSession(devices=[_device(job)])
            execute = _build(out.clock, partial(_compile, module, types, weights, session))
            capture.finish()
            out.about.update(_about([module]))
            _check_layers(job, capture)
            with out.clock.phase("forward"), capture.into(dump.step(0)) as step:
                made = execute(*[_buffer(i, _device(job), v3) for i in inputs])
            _keep(dump, 0, capture, step)
            _returned(dump, 0, made if isinstance(made, (list, tuple)) else [made])
    _drop(out)


def _compile(module, types, weights, session):
    """Gives the function that runs a module."""
    from max.graph import Graph
    from max.nn.layer import Module

    if not isinstance(module, Module):
        return module.compile(*types, weights=weights, session=session)
    graph = Graph("candidate", forward=module, input_types=list(types))
    if hasattr(session, "compile") and hasattr(session, "init"):
        return session.init(session.compile(graph), weights_registry=module.state_dict()).execute
    return session.load(graph, weights_registry=module.state_dict()).execute


def _device(job):
    from max.driver import CPU, Accelerator

    return Accelerator() if job.device == "gpu" else CPU()


def _buffer(value, device, v3):
    """An input of the model: what numpy can read is put on the device."""
    import numpy as np
    from max.driver import Buffer

    if isinstance(value, np.ndarray):
        value = Buffer.from_numpy(np.ascontiguousarray(value)).to(device)
    if v3 and isinstance(value, Buffer):
        from max.experimental.tensor import Tensor

        return Tensor.from_dlpack(value)
    return value


def _drop(out):
    """Removes what was printed outside of the steps."""
    shutil.rmtree(_outside(out), ignore_errors=True)
