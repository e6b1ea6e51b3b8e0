"""The tasks of MAX: text generation, embeddings, and modules of an oracle file."""

import asyncio
import os
import shutil
from contextlib import contextmanager
from functools import partial

import numpy as np

from . import config, installed, maxcache, maxpaths, oracle, texts, tokens
from .errors import ModelError, UsageError
from .maxbuild import Prepared, build, capture
from .progress import warn


@contextmanager
def _captured(job, out, golden=None):
    """Hooks what is built meanwhile; with a case, its layers get golden inputs.

    What is printed outside the steps is removed.
    """
    outside = os.path.join(out.tmp, ".before")
    try:
        with capture(job, outside, golden) as hooks:
            yield hooks
    finally:
        shutil.rmtree(outside, ignore_errors=True)


class _Ready:
    """A model that was built: run(dump, case) runs a case, hooks are those that it was built with."""

    def __init__(self, hooks=None, run=None):
        self.hooks, self.run = hooks, run


def _keep(dump, step, hooks, folder):
    """Lists what a step has left. A label without a tensor was not executed, which is a warning."""
    found = hooks.printer.found(folder, [label for _, _, label in hooks.labels])
    gone = []
    for layer, port, label in hooks.labels:
        if label in found:
            dump.add(step, layer, port, found[label])
        else:
            gone.append(label)
    if gone:
        warn(f"case {dump.case['name']}, step {step}: {len(gone)} of {len(hooks.labels)} tensors were not written, the first is {gone[0]}")
    known = set(found.values())
    for name in os.listdir(folder):
        if name not in known:
            os.remove(os.path.join(folder, name))
    dump.info["uncaptured"], dump.info["modules"] = hooks.uncaptured, hooks.modules()
    if hooks.injector:
        dump.info.update(injection="nested", injected=hooks.injector.injected, not_injected=hooks.injector.left)


# Dtypes of numpy as .safetensors names them.
_DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "bool": "BOOL"}


def _returned(dump, step, values):
    """Keeps what the engine returns, if the job has an observer."""
    if dump.out.job.observer:
        known = [v for v in values if v.dtype.name in _DTYPES]
        arrays = [np.ascontiguousarray(v.to_numpy() if hasattr(v, "to_numpy") else v) for v in known]
        dump.returned(step, [(_DTYPES[a.dtype.name], a.shape, a.tobytes()) for a in arrays])


def _describe(out, models):
    if models:
        out.about.update(installed.about(type(models[-1])))


# --- text generation


@contextmanager
def generate(job, out, cases):
    from max.pipelines import PIPELINE_REGISTRY, AutoModel

    with config.overridden_folder(job) as folder:
        with out.clock.phase("load"):
            prepared = Prepared(job, folder)
            out.about["config"] = prepared.config
            settings = {"use_subgraphs": False, **prepared.settings}
            if maxpaths.wants_prefix_cache(job):
                settings["enable_prefix_caching"] = True
            if any(c.get("forced") for c in job.cases):
                known = tokens.known_ids(prepared.tokenizer)
                for case in job.cases:
                    _check_forced(case, len(prepared.ids[case["name"]]), known)
        with _captured(job, out, cases[0] if job.injected else None) as hooks:
            model = build(job, out.clock, hooks, lambda: AutoModel(folder, devices="cpu" if job.device == "cpu" else "gpu:0", **settings))
            _describe(out, hooks.models)
            settled = getattr(model, "_pipeline_config", None)
            engine_tokenizer = PIPELINE_REGISTRY.retrieve_tokenizer(settled) if settled and any(map(texts.asked, job.cases)) else None
            reader = maxcache.Reader(getattr(model.pipeline, "kv_manager", None), hooks.labels, job.wants) if job.kv_cache else None

            def run(dump, case):
                if case.get("passes"):
                    with out.clock.phase("forward"):
                        maxpaths.generate(model, hooks, dump, case, reader, lambda k, folder: _keep(dump, k, hooks, folder))
                    return
                dump.info["token_ids"] = ids = prepared.ids[case["name"]]
                _texts(dump, engine_tokenizer, case, folder)
                maxpaths.forget_prefixes(model.pipeline)
                with out.clock.phase("forward"):
                    dump.info["sequence"] = _decode(model, hooks, dump, case, ids, reader)

            yield _Ready(hooks, run)
            model.close()


def _decode(model, hooks, dump, case, ids, reader):
    """One execution per step.

    Forced tokens take the place of sampled ones through the logits, after these were recorded.
    """
    steps, forced = case.get("steps") or 1, tokens.forced(case, len(ids))
    more = 1 if reader else 0  # MAX empties the cache with the last token: one more is never run
    with model.generate_iter(ids, max_new_tokens=steps + more, temperature=0.0, top_k=1, ignore_eos=True, output_logits=True, seed=0) as it:
        if forced:
            _force(it, forced)
        step = 0
        while not it.done and step < steps:
            with hooks.printer.into(dump.step(step)) as folder:
                it.step()
            fed = [(0, len(s)) if step == 0 else (len(s) + step - 1, len(s) + step) for s in ids]
            rows = reader.rows([(c, *f) for c, f in zip(getattr(it, "_contexts", []), fed)]) if reader else None
            _keep(dump, step, hooks, folder)
            if rows:
                reader.keep(dump, step, folder, rows)
            step += 1
        for s in range(step):
            _returned(dump, s, [rows[s] for rows in it.logits])
        sequences = [list(map(int, s)) for s in it.sequences]
    if forced:
        for row, (s, f) in enumerate(zip(sequences, forced)):
            got, want = s[len(ids[row]) :][: steps - 1], list(f[: steps - 1])
            if got != want:
                raise ModelError(f"case {case['name']}: MAX took the tokens {got} in place of the forced {want}")
    return sequences


def _texts(dump, engine_tokenizer, case, folder):
    """Keeps what MAX's own tokenizer makes of a case; None is a MAX that hides it."""
    if engine_tokenizer and (text := texts.of_max(engine_tokenizer, case, folder)):
        dump.info["text"] = text


def _check_forced(case, rows, known):
    """Refuses forced tokens beyond the tokenizer, before a compilation that takes minutes.

    MAX never samples them, whatever their logits are.
    """
    steps = case.get("steps") or 1
    for row in tokens.forced(case, rows) or []:
        if known and max(row[: steps - 1], default=0) >= known:
            raise UsageError(
                f"case {case['name']}: the forced token {max(row[: steps - 1])} is beyond the tokenizer, which has {known}: MAX never samples it",
                "the model has more logits than its tokenizer has tokens, and the reference chose one of those: run the reference again "
                "(parity update, parity run --engine torch), which chooses among the tokenizer's own")  # fmt: skip


def _force(it, forced):
    contexts = getattr(it, "_contexts", None)
    if contexts is None:
        raise installed.too_old("GenerateIterator with contexts, which forced tokens need")
    for context, row in zip(contexts, forced):
        params = context.sampling_params
        params.logits_processors = [*(params.logits_processors or ()), maxpaths.forcing(row)]


# --- embeddings


@contextmanager
def embed(job, out, cases):
    from max.driver import DeviceSpec
    from max.pipelines import PIPELINE_REGISTRY, PipelineArgs, PipelineConfig
    from max.pipelines.modeling.types import PipelineTask

    with config.overridden_folder(job) as folder:
        with out.clock.phase("load"):
            prepared = Prepared(job, folder)
            out.about["config"] = prepared.config
            settings = {"enable_prefix_caching": False, "pool_embeddings": False, **prepared.settings}
        spec = DeviceSpec.accelerator() if job.device == "gpu" else DeviceSpec.cpu()

        def make():
            args = PipelineArgs.from_flat_kwargs(model_path=folder, device_specs=[spec], task=PipelineTask.EMBEDDINGS_GENERATION, **settings)
            return PIPELINE_REGISTRY.retrieve(PipelineConfig.from_args(args), task=PipelineTask.EMBEDDINGS_GENERATION)

        with _captured(job, out, cases[0] if job.injected else None) as hooks:
            engine_tokenizer, pipeline = build(job, out.clock, hooks, make)
            _describe(out, hooks.models)

            def run(dump, case):
                if (case.get("steps") or 1) != 1:
                    raise UsageError(f"case {case['name']}: an embedding has one step")
                _embed_case(out, hooks, engine_tokenizer, pipeline, folder, dump, case, prepared.ids[case["name"]])

            yield _Ready(hooks, run)


def _embed_case(out, hooks, engine_tokenizer, pipeline, folder, dump, case, ids):
    """Runs one case.

    The engine's own tokenizer reads a prompt, so that what it makes of it is compared with the
    reference's input.
    """
    from max.pipelines.modeling.types import EmbeddingsGenerationInputs, RequestID, TextGenerationRequest

    def contexts_of(prompts):
        contexts = {}
        for prompt in prompts:
            request = TextGenerationRequest(request_id=RequestID(), prompt=prompt, model_name=folder)
            contexts[request.request_id] = asyncio.run(engine_tokenizer.new_context(request))
        used = [[int(t) for t in c.tokens.active] for c in contexts.values()]
        if not isinstance(prompts[0], str) and used != prompts:
            raise ModelError(f"case {case['name']}: MAX made {used} of the token ids {prompts}")
        return contexts, used

    if case.get("passes"):
        with out.clock.phase("forward"):
            maxpaths.embed(pipeline, lambda rows: pipeline.execute(EmbeddingsGenerationInputs([contexts_of(rows)[0]])),
                           hooks, dump, case, lambda k, step: _keep(dump, k, hooks, step))  # fmt: skip
        return
    _texts(dump, engine_tokenizer, case, folder)
    contexts, used = contexts_of(case["prompts"] if case.get("prompts") and not case.get("token_ids") else ids)
    dump.info["token_ids"] = dump.info["sequence"] = used
    with out.clock.phase("forward"), hooks.printer.into(dump.step(0)) as step:
        made = pipeline.execute(EmbeddingsGenerationInputs([contexts]))
    _keep(dump, 0, hooks, step)
    _returned(dump, 0, [made[request].embeddings for request in contexts])


# --- modules of an oracle file


def modules(job, out, cases):
    """Runs each case with the module that the oracle makes for it.

    Cases whose modules make the same graph of the same weights share what was loaded for the first
    of them. Injected, each case has a graph of its own: its goldens are bound to it.
    """
    from max.nn.layer import Module

    candidate, kept, ready = oracle.load(job, "candidate"), [], _Ready()  # kept: what was loaded

    def run(dump, case):
        if (case.get("steps") or 1) != 1:
            raise UsageError(f"case {case['name']}: a module has one step")
        dump.info["token_ids"] = case.get("token_ids") or []
        with _captured(job, out, case if job.injected else None) as hooks:
            with out.clock.phase("load"):
                made = candidate(oracle.Spec(job, case))
                if not isinstance(made, tuple) or len(made) != 4:
                    raise UsageError(f"{job.oracle}: candidate(spec) returned {type(made).__name__}",
                                     "return (module, weights, input_types, inputs): see the documentation of oracle files")  # fmt: skip
                module, weights, types, inputs = made
                v3 = not isinstance(module, Module)
                if not v3 and not any(m is module for m in hooks.models):
                    module.load_state_dict(weights, weight_alignment=1)
            device = _device(job)
            built = build(job, out.clock, hooks, partial(_Loaded.of, module, types, weights, device, hooks, kept))
            if built not in kept and not job.injected:
                kept.append(built)
            _describe(out, [module])
            ready.hooks = built.hooks
            with out.clock.phase("forward"), built.hooks.printer.into(dump.step(0)) as step:
                made = built.execute(*[_buffer(i, device, v3) for i in inputs])
            _keep(dump, 0, built.hooks, step)
            _returned(dump, 0, made if isinstance(made, (list, tuple)) else [made])

    ready.run = run
    return ready


class _Loaded:
    """A module that can be executed, and the hooks that it was traced with."""

    def __init__(self, hooks, graph, weights, execute):
        self.hooks, self.execute = hooks, execute
        self._graph, self._weights = graph, weights

    @classmethod
    def of(cls, module, types, weights, device, hooks, kept):
        """Loads a module, or returns the one of kept that is the same."""
        from max.engine import InferenceSession
        from max.graph import Graph
        from max.nn.layer import Module

        if not isinstance(module, Module):
            session = InferenceSession(devices=[device])
            return cls(hooks, None, None, module.compile(*types, weights=weights, session=session))
        graph, weights = Graph("candidate", forward=module, input_types=list(types)), module.state_dict()
        for other in kept:
            if other._is(graph, weights):
                return other
        session = InferenceSession(devices=[device])
        if hasattr(session, "compile") and hasattr(session, "init"):
            execute = session.init(session.compile(graph), weights_registry=weights).execute
        else:
            execute = session.load(graph, weights_registry=weights).execute
        return cls(hooks, graph, weights, execute)

    def _is(self, graph, weights):
        """Whether this is the same graph with the same weights, bit by bit.

        The texts of two graphs do not tell: constants are rounded in them.
        """
        same = getattr(getattr(self._graph, "_mlir_op", None), "is_structurally_equivalent", None)
        if same is None or not same(graph._mlir_op) or self._weights.keys() != weights.keys():
            return False
        return all(w is weights[name] or _bits_equal(w, weights[name]) for name, w in self._weights.items())


def _bits_equal(a, b):
    """Whether two weights are equal; not known is False."""
    from max.driver import Buffer
    from max.dtype import DType

    def plain(weight):
        buffer = weight if isinstance(weight, Buffer) else Buffer.from_dlpack(weight)
        size = buffer.num_elements * buffer.dtype.size_in_bytes
        return buffer.dtype, tuple(buffer.shape), buffer.view(DType.uint8, (size,)).to_numpy()

    try:
        (kind, shape, data), (other_kind, other_shape, other) = plain(a), plain(b)
    except Exception:  # of a kind that cannot be looked at
        return False
    return kind == other_kind and shape == other_shape and np.array_equal(data, other)


def _device(job):
    from max.driver import CPU, Accelerator

    return Accelerator() if job.device == "gpu" else CPU()


def _buffer(value, device, v3):
    """An input of the model: what numpy can read is put on the device."""
    from max.driver import Buffer

    if isinstance(value, np.ndarray):
        value = Buffer.from_numpy(np.ascontiguousarray(value)).to(device)
    if v3 and isinstance(value, Buffer):
        from max.experimental.tensor import Tensor

        return Tensor.from_dlpack(value)
    return value
