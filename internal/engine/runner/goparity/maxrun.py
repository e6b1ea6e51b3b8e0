"""The candidate: a model in Modular MAX, in this process, every layer recorded. Needs no torch."""

from . import installed, loaded
from .errors import InfraError, ModelError


CAN = {
    "does": "a candidate: Modular MAX",
    "packages": ["max", "max-core", "mojo-compiler", "transformers", "tokenizers", "numpy"],
    "tasks": ["text-generation", "embeddings", "module"],
    "encodings": [],
    "paths": ["decode", "chunked", "batch", "padding", "prefix", "repeat", "lengths", "mask"],
    "settings": None,
    "records": ["steps", "text", "kv_cache", "weights", "injected"],
}


def check(job):
    from . import maxpaths

    maxpaths.check(job)


def load(job, out, cases):
    with out.clock.phase("import"):
        try:
            import max.driver
            import max.engine  # noqa: F401

            if job.task != "module":
                import max.pipelines  # noqa: F401
        except ImportError as e:
            raise InfraError(f"MAX cannot be imported: {e}", f"{installed.how('max')}; it needs glibc 2.34 and a CPU with AVX2") from e
    _check_api(job)
    _check_device(max.driver, job)
    from . import maxtasks

    tasks = {"text-generation": maxtasks.generate, "embeddings": maxtasks.embed, "module": maxtasks.modules}
    return tasks[job.task](job, out, cases)


def run(model, dump, case):
    model.run(dump, case)


def weights(model):
    return loaded.of_max(model.hooks.registry)


def _check_api(job):
    from max.engine import InferenceSession

    wanted = [(InferenceSession, "set_debug_print_options")] + [(InferenceSession, "init_all")] * job.injected
    try:
        from max.nn.hooks import PrintHook  # noqa: F401
    except ImportError as e:
        raise installed.too_old("max.nn.hooks.PrintHook") from e
    if job.task != "module":
        import max.pipelines as p

        wanted += [(p, "AutoModel" if job.task == "text-generation" else "PipelineArgs"), (p, "PIPELINE_REGISTRY")]
    for owner, name in wanted:
        if not hasattr(owner, name):
            raise installed.too_old(f"{owner.__name__}.{name}")


def _check_device(driver, job):
    if job.device == "gpu" and not driver.accelerator_count():
        raise InfraError("MAX sees no GPU", "install the driver, or run with the device cpu")
    if job.device == "cpu" and job.encoding in ("bfloat16", "float16", "float8_e4m3fn", "float4_e2m1fnx2", "gptq"):
        raise ModelError(f"MAX has no {job.encoding} on the CPU", "use float32 or a GGUF encoding (q4_k, q4_0, q6_k) on the CPU")
