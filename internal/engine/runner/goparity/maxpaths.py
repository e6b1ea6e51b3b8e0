"""Execution paths in MAX: the forward passes of a job, one execution of the pipeline each."""

import numpy as np

from . import installed
from .errors import ModelError, UsageError


def check(job):
    """Refuses what MAX cannot run, before a compilation that takes minutes."""
    for case in job.cases:
        kind, _, side = (case.get("path") or "").partition(":")
        where = f"case {case['name']}: path {case.get('path')}"
        if kind == "padding" and job.task == "text-generation":
            raise UsageError(f"{where}: MAX's text pipelines do not pad, they lay the rows of all sequences one after the other",
                             "take padding out of paths: batch runs the same sequences together")  # fmt: skip
        if side == "left":
            raise UsageError(f"{where}: MAX pads its encoders on the right", "write padding: right")
        if kind == "mask" and job.task == "text-generation":
            raise UsageError(f"{where}: MAX's text pipelines take no mask")
        if job.task != "text-generation" and any(i["from"] > 0 for p in case.get("passes") or [] for i in p):
            raise UsageError(f"{where} needs a cache, which task {job.task} has not got")


def wants_prefix_cache(job):
    return any((c.get("path") or "") == "prefix" for c in job.cases)


def generate(model, hooks, dump, case, reader, keep):
    """Runs the passes of a case. keep(step, folder) lists what one has left; reader, or None, reads the cache.

    Sequences end their cache where they begin again. Tokens after the first pass of decode are forced
    on the sampler; all other passes are chunks of a prompt that is known.
    """
    runner = _Text(model.pipeline, case)
    fed = []
    try:
        for k, items in enumerate(case["passes"]):
            runner.prepare(k, items)
            with hooks.printer.into(dump.step(k)) as folder:
                runner.execute(items)
            fed.append([runner.fed(i) for i in items])
            rows = reader.rows([(runner.running[i["sequence"]], i["from"], i["to"]) for i in fed[-1]]) if reader else None
            keep(k, folder)
            if rows:
                reader.keep(dump, k, folder, rows)
    finally:
        runner.close()
    dump.along(fed, {})


def forget_prefixes(pipeline):
    """Empties the prefix cache, so that no run finds what an earlier one left."""
    cache = getattr(pipeline, "kv_manager", None)
    if hasattr(cache, "reset_prefix_cache"):
        cache.reset_prefix_cache()


class _Text:
    def __init__(self, pipeline, case):
        self.pipeline, self.case = pipeline, case
        self.cache = getattr(pipeline, "kv_manager", None)
        if self.cache is None or not hasattr(self.cache, "alloc"):
            raise installed.too_old("a KV cache manager with alloc, which execution paths need")
        self.decodes = case["path"].partition(":")[0] == "decode"
        self.prefix = case["path"] == "prefix"
        self.running = {}  # by sequence, its context
        self.hits = {}  # by sequence, the tokens of its prefix that were found
        forget_prefixes(pipeline)

    def prepare(self, k, items):
        begin = [i for i in items if i["from"] == 0]
        fed = {i["sequence"] for later in self.case["passes"][k:] for i in later}
        for s in {i["sequence"] for i in begin} | (set(self.running) - fed):  # the cache has few pages
            self._release(s)
        if begin and not self.prefix:
            forget_prefixes(self.pipeline)
        for item in begin:
            self.running[item["sequence"]] = self._context(item)
        for item in items:
            s = item["sequence"]
            context = self.running.get(s)
            if context is None or context.tokens.processed_length != item["from"]:
                raise UsageError(f"case {self.case['name']}: forward pass {k} feeds sequence {s} from {item['from']}, where its cache does not end")
            n = item["to"] - item["from"]
            if n < context.tokens.active_length:
                context.tokens.chunk(n)
            elif n > context.tokens.active_length:
                raise UsageError(f"case {self.case['name']}: forward pass {k} decodes {n} tokens of sequence {s} at once")
            self.cache.alloc(context).synchronize()
            if item["from"] == 0:
                self.hits[s] = context.tokens.processed_length

    def execute(self, items):
        from max.pipelines.modeling.types import TextGenerationInputs

        self.pipeline.execute(TextGenerationInputs(batches=[[self.running[i["sequence"]] for i in items]]))

    def fed(self, item):
        """The item as it was run, with the tokens that the prefix cache held."""
        context = self.running[item["sequence"]]
        cached = getattr(context, "cached_prefix_length", 0) or self.hits.get(item["sequence"], 0)
        if item["from"] > 0 or not cached:
            return item
        if not self.prefix:
            raise ModelError(f"case {self.case['name']}: MAX found {cached} tokens of sequence {item['sequence']} in its prefix cache, which was reset")
        return {"sequence": item["sequence"], "from": cached, "to": item["to"], "cached_tokens": cached}

    def close(self):
        for s in list(self.running):
            self._release(s)

    def _release(self, sequence):
        context = self.running.pop(sequence, None)
        if context is not None:
            self.cache.release(context)
            self.pipeline.release(context.request_id)

    def _context(self, item):
        from max.pipelines.context import SamplingParams, TextContext, TokenBuffer
        from max.pipelines.context.eos_tracking import EOSTracker
        from max.pipelines.modeling.types import RequestID

        tokens = self.case["token_ids"][item["sequence"]]
        given = tokens[: item["to"]] if self.decodes else tokens
        following = tokens[len(given) :]
        params = SamplingParams(temperature=0.0, top_k=1, max_new_tokens=len(following) + 1, ignore_eos=True, seed=0)
        context = TextContext(request_id=RequestID(), max_length=len(tokens) + 1, tokens=TokenBuffer(np.asarray(given, np.int64)),
                              eos_tracker=EOSTracker(eos_token_ids=set()), sampling_params=params)  # fmt: skip
        params.logits_processors = [forcing(following)]
        self.cache.claim(context)
        return context


def forcing(tokens):
    """A logits processor that makes the sampler choose these tokens, and then what it likes."""
    from max.driver import Buffer

    queue, kept = iter(tokens), []

    def force(inputs):
        token = next(queue, None)
        if token is None:
            return
        logits = np.array(inputs.logits.to_numpy())
        logits[-1, token] = logits[-1].max() + 100  # far above the others, and near enough that no sampler overflows
        kept.append(Buffer.from_numpy(logits))  # the copy may be read later than this returns
        inputs.logits.inplace_copy_from(kept[-1])

    return force


def embed(pipeline, run, hooks, dump, case, keep):
    """Runs the passes of a case of an encoder. run(ids by sequence) executes one."""
    masks = {}
    for k, items in enumerate(case["passes"]):
        rows = [case["token_ids"][i["sequence"]][: i["to"]] for i in items]
        hidden = [i.get("hidden") or [] for i in items]
        width = max(len(r) + len(h) for r, h in zip(rows, hidden))
        mask = [[1] * len(r) + [0] * (width - len(r)) for r in rows]
        with hooks.printer.into(dump.step(k)) as folder, _masked(pipeline, mask if any(hidden) else None):
            run([r + h for r, h in zip(rows, hidden)])
        keep(k, folder)
        if any(0 in row for row in mask):
            masks[k] = mask
    dump.along(case["passes"], masks)


class _masked:
    """Gives the model another attention mask than the pipeline makes of the tokens; None leaves it."""

    def __init__(self, pipeline, mask):
        self.mask = mask
        self.model = getattr(pipeline, "_pipeline_model", None)
        if mask is not None and not hasattr(self.model, "prepare_initial_token_inputs"):
            raise installed.too_old("an embeddings pipeline with prepare_initial_token_inputs, which the path mask needs")

    def __enter__(self):
        if self.mask is None:
            return
        from max.driver import Buffer

        original = self.model.prepare_initial_token_inputs

        def prepare(*args, **kwargs):
            inputs = original(*args, **kwargs)
            given = getattr(inputs, "attention_mask", None)
            if given is None or tuple(given.shape) != (len(self.mask), len(self.mask[0])):
                raise UsageError(f"{type(inputs).__name__} takes no mask of a number for each token", "take mask out of paths")
            made = np.asarray(self.mask).astype(given.to_numpy().dtype)
            inputs.attention_mask = Buffer.from_numpy(np.ascontiguousarray(made)).to(given.device)
            return inputs

        self.model.prepare_initial_token_inputs = prepare

    def __exit__(self, *error):
        if self.mask is not None:
            del self.model.prepare_initial_token_inputs
