"""Programs of models whose weights are not in memory.

Parameters are fake tensors: they have a shape and a type, and no bytes. Buffers, masks, positions and
arguments are real, so that what a model decides by them is decided as ever; what comes of a parameter
is fake. A model that decides by such a value, as an expert loop does, cannot be recorded so.
"""

import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode


@contextlib.contextmanager
def no_weights():
    """Modules made inside of it have parameters without memory; yields the mode they belong to."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    original = torch.nn.Module.register_parameter

    def register(module, name, parameter):
        original(module, name, parameter if parameter is None else _faked(mode, parameter))

    torch.nn.Module.register_parameter = register
    try:
        with _uninitialised():
            yield mode
    finally:
        torch.nn.Module.register_parameter = original


def _faked(mode, parameter):
    if isinstance(parameter, FakeTensor):
        return parameter
    with mode:
        data = torch.empty_strided(parameter.shape, parameter.stride(), dtype=parameter.dtype, device=parameter.device)
    return torch.nn.Parameter(data, requires_grad=parameter.requires_grad)


@contextlib.contextmanager
def _uninitialised():
    """Leaves out what torch.nn.init does to weights that have no memory."""
    kept = {name: f for name, f in vars(torch.nn.init).items() if name.endswith("_") and not name.startswith("_") and callable(f)}

    def only_real(f):
        def init(tensor, *args, **kwargs):
            return tensor if isinstance(tensor, FakeTensor) else f(tensor, *args, **kwargs)

        return init

    for name, f in kept.items():
        setattr(torch.nn.init, name, only_real(f))
    try:
        yield
    finally:
        for name, f in kept.items():
            setattr(torch.nn.init, name, f)


def build(config, auto=None, **options):
    """A transformers model of a configuration, without weights. auto is an Auto class of transformers."""
    import transformers

    with no_weights():
        return (auto or transformers.AutoModelForCausalLM).from_config(config, **options).eval()


def record_fake(model, passes, case="", frames="text", dtype=torch.float32):
    """Records the program of a model, or of a configuration of transformers, without weights in memory.

    passes is a list of the keyword arguments of each forward pass. Where a pass returns
    past_key_values, the next is given them. Returns the recorder, to be saved. A model that has weights
    keeps them.
    """
    from .program import Recorder

    if not isinstance(model, torch.nn.Module):
        model = build(model, dtype=dtype)
    past = None
    with torch.no_grad(), _borrowed(model), Recorder(model, case, frames) as recorder:
        for arguments in passes:
            result = model(**({} if past is None else {"past_key_values": past}), **arguments)
            past = getattr(result, "past_key_values", None)
    return recorder


@contextlib.contextmanager
def _borrowed(model):
    """Puts fake parameters in the place of a model's own."""
    mode, fakes, kept = FakeTensorMode(allow_non_fake_inputs=True), {}, []
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is None or isinstance(p, FakeTensor):
                continue
            kept.append((module, name, p))
            if id(p) not in fakes:
                fakes[id(p)] = _faked(mode, p)
            module._parameters[name] = fakes[id(p)]
    try:
        yield
    finally:
        for module, name, p in kept:
            module._parameters[name] = p
