"""The fused functions of MLX that stand for several operators: what they are given and return, and the weights of attention."""

import inspect

import mlx.core as mx

NAMES = ("rms_norm", "layer_norm", "rope", "scaled_dot_product_attention")


class Fused:
    """Calls said(name, inputs, result, weights) of each fused call, until undo.

    inputs are (name, value) of the arguments; weights is a function that calculates the weights of attention, or None.
    """

    def __init__(self, said):
        self._undo = []
        for name in NAMES:
            self._replace(mx.fast, name, said, _weights if name == NAMES[-1] else None)
        try:
            from mlx_lm.models import base
        except ImportError:  # MLX alone
            return
        self._replace(base, "quantized_scaled_dot_product_attention", said, _quantised_weights)

    def undo(self):
        for owner, name, original in self._undo:
            setattr(owner, name, original)
        self._undo = []

    def _replace(self, owner, name, said, weigh):
        original = getattr(owner, name, None)
        if original is None:
            return

        def call(*args, **kwargs):
            named = _named(name, original, args, kwargs)
            kept = {k: mx.array(v) if isinstance(v, mx.array) else v for k, v in named}  # the caller may go on in place
            out = original(*args, **kwargs)
            said(name, list(kept.items()), out, weigh and (lambda: weigh(**kept)))
            return out

        setattr(owner, name, call)
        self._undo.append((owner, name, original))


# What the functions, which Python cannot inspect, call their arguments by position.
_POSITIONS = {"rms_norm": ("x", "weight", "eps"), "layer_norm": ("x", "weight", "bias", "eps"), "rope": ("x", "dims"),
              "scaled_dot_product_attention": ("q", "k", "v")}  # fmt: skip


def _named(name, function, args, kwargs):
    names = _POSITIONS.get(name) or tuple(inspect.signature(function).parameters)
    return [*zip(names, args), *kwargs.items()]


def _weights(q, k, v, scale, mask=None, sinks=None, **_):
    """softmax(scale · q kᵀ + mask), [batch, heads, queries, keys]; sinks take a part that no key gets."""
    groups = q.shape[1] // k.shape[1]
    k = mx.repeat(k, groups, axis=1) if groups > 1 else k
    return _softmax(_masked((q * scale) @ k.swapaxes(-1, -2), mask), sinks)


def _quantised_weights(queries, q_keys, q_values, scale, mask=None, group_size=64, bits=8):
    keys = mx.dequantize(*q_keys, group_size=group_size, bits=bits)
    return _weights(queries, keys, None, scale, mask)


def _masked(scores, mask):
    if isinstance(mask, str):  # "causal": the last query sees all keys
        n, m = scores.shape[-2:]
        mask = mx.arange(m - n, m)[:, None] >= mx.arange(m)[None]
    if mask is None:
        return scores
    if mask.dtype == mx.bool_:
        return mx.where(mask, scores, mx.finfo(scores.dtype).min)
    return scores + mask


def _softmax(scores, sinks):
    if sinks is None:
        return mx.softmax(scores, axis=-1, precise=True)
    column = mx.broadcast_to(sinks.reshape(1, -1, 1, 1), (*scores.shape[:-1], 1))
    return mx.softmax(mx.concatenate([column, scores], axis=-1), axis=-1, precise=True)[..., 1:]
