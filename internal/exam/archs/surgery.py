"""Helpers that change parts of a transformers model: its modules by name, its weights, the functions that its code calls."""

import inspect
import textwrap
import types

import torch


def at(model, name):
    """The module with the name that goparity gives it: model, model.model.layers.0 …"""
    return model.get_submodule(name.removeprefix("model").removeprefix("."))


def replace(module, **names):
    """Makes a module's forward call other functions than those of its file."""
    f = inspect.unwrap(type(module).forward)
    g = types.FunctionType(f.__code__, {**f.__globals__, **names}, f.__name__, f.__defaults__, f.__closure__)
    g.__kwdefaults__ = f.__kwdefaults__
    module.forward = types.MethodType(g, module)


def wrap(module, make):
    """Replaces forward by make(forward)."""
    module.forward = make(module.forward)


def set_(p, value):
    with torch.no_grad():
        p.copy_(value)


def layers(model):
    return model.model.layers


def heads(config):
    """Heads of q, heads of k and v, and the size of one."""
    n = config.num_attention_heads
    return n, getattr(config, "num_key_value_heads", n), getattr(config, "head_dim", None) or config.hidden_size // n


def edit(module, method, *changes):
    """Gives a module a method of which parts of the code are replaced: (old, new), …"""
    f = inspect.unwrap(getattr(type(module), method))
    code = textwrap.dedent(inspect.getsource(f))
    for old, new in changes:
        if old not in code:
            raise ValueError(f"{type(module).__name__}.{method} has no {old!r}")
        code = code.replace(old, new)
    names = dict(f.__globals__)
    exec(code[code.index("def ") :], names)  # without decorators
    setattr(module, method, types.MethodType(names[f.__name__], module))
