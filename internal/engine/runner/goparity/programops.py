"""Which operators a program has: those kept whole, and how the others are written with them.

The operators of a program are functional. An operator that is not in WHOLE is taken apart: composites
by torch's own kernels, others by torch._decomp; what has neither is recorded as it is. Beyond that:

- scaled_dot_product_attention stands for all its fused backends, with the arguments of that schema
  (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) and one result. A row whose
  keys are all denied is 0.
- full stands for zeros, ones, empty, their *_like, new_* and in-place forms, and for scalar_tensor;
  uninitialised memory is 0.
- view stands for _unsafe_view, reshape and _reshape_alias: rows in order, whatever the strides.
- arange always is arange.start_step, split is split_with_sizes, t is transpose.
- clone, contiguous, detach, alias, lift and copies that keep the type make no new value.
- A write in place is the functional operator; through a view, slice_scatter, select_scatter,
  diagonal_scatter or as_strided_scatter, or the inverse view, follow on what the view was made of.
- as_strided is of a tensor whose rows lie one after the other, from its first number; as_strided_gaps, of one
  that does not, cannot be replayed.
- batch_norm in eval is _native_batch_norm_legit_no_training.
- programapart has operators that are written with others.
"""

# Names without namespace and overload. Most are torch's core ATen set.
WHOLE = frozenset(
    """
    abs acos acosh asin asinh atan atan2 atanh ceil cos cosh elu erf erfc erfinv exp exp2 expm1 floor frac gelu glu hardsigmoid
    hardswish hardtanh isinf isnan leaky_relu lgamma log log10 log1p log2 log_sigmoid_forward logical_not mish neg reciprocal
    relu round rsqrt sgn sigmoid sign silu sin sinh softplus sqrt tan tanh trunc
    add bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor clamp clamp_max clamp_min copysign div eq
    floor_divide fmod ge gt hypot le logaddexp logical_and logical_or logical_xor lt maximum minimum mul ne pow remainder rsub sub where
    lerp masked_fill _to_copy complex polar
    all amax amin any argmax argmin count_nonzero linalg_vector_norm logsumexp max mean min prod std sum var var_mean
    cumsum cumprod cummax cummin logcumsumexp _softmax _log_softmax sort topk nonzero searchsorted bucketize histc
    mm bmm addmm baddbmm dot mv convolution _grouped_mm
    embedding gather index index_put index_select index_add index_copy scatter scatter_add scatter_reduce masked_scatter
    native_layer_norm native_group_norm _native_batch_norm_legit_no_training _fused_rms_norm
    cat stack repeat flip roll tril triu constant_pad_nd slice_scatter select_scatter diagonal_scatter as_strided_scatter
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _fft_r2c _fft_c2r _fft_c2c full arange linspace eye
    """.split()
)

# Views: names whose result shares its storage with self.
VIEWS = frozenset(
    """
    view expand permute transpose t slice select split split_with_sizes unbind squeeze unsqueeze diagonal as_strided unfold
    alias detach lift_fresh lift _reshape_alias view_as_real view_as_complex _conj _neg_view _fw_primal
    """.split()
)
SAME = frozenset("alias detach lift_fresh lift _fw_primal".split())  # views of all, in the same shape and order
_RESHAPES = frozenset("view _reshape_alias squeeze unsqueeze".split())

# Copies: the result has the value of self.
COPIES = frozenset(["clone", "_to_copy", "contiguous", "lift_fresh_copy"])

_FILLED = {  # operators that make a constant tensor, and of what
    "zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1,
    "empty": 0, "empty_like": 0, "new_empty": 0, "empty_strided": 0, "new_empty_strided": 0, "empty_permuted": 0,
    "full_like": "fill_value", "new_full": "fill_value", "scalar_tensor": "s", "full": "fill_value",
}  # fmt: skip

_ATTENTION = {  # fused attention → the argument that holds its mask
    "_scaled_dot_product_flash_attention_for_cpu": "attn_mask",
    "_scaled_dot_product_flash_attention": "",
    "_scaled_dot_product_efficient_attention": "attn_bias",
    "_scaled_dot_product_cudnn_attention": "attn_bias",
    "_scaled_dot_product_fused_attention_overrideable": "attn_bias",
}

FUSED = frozenset(["_fused_rms_norm"])  # composites that are kept whole

DEPENDENT = frozenset(["nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive"])  # the shape of their result hangs on data

# Arguments that say where and how a tensor lies, not what it holds.
UNSAID = frozenset(["layout", "device", "pin_memory", "memory_format", "generator", "non_blocking"])

IDENTITY = object()  # of rewritten: the result is self


def is_attention(name):
    return name in _ATTENTION


def known(name):
    """Whether an operator is recorded as it is, or as another one."""
    return name in WHOLE or name in VIEWS or name in COPIES or name in _FILLED or name in _ATTENTION or name in ("_unsafe_view", "_is_all_true", "_is_any_true")


def rewritten(name, overload, args, outs):
    """The operator as a program has it: its full name, its arguments, how many of its results it has.

    args are encoded, by the names of the schema; outs are (shape, dtype). It is (IDENTITY, …) for what
    makes no new value.
    """
    n = len(outs)
    if name in SAME or name in ("clone", "contiguous", "lift_fresh_copy"):
        return IDENTITY, args, 1
    if name in ("view", "_unsafe_view", "_reshape_alias") and overload != "dtype":
        return "aten.view.default", {"self": args["self"], "size": list(outs[0][0])}, 1
    if name in _FILLED:
        of = _FILLED[name]
        value = args[of] if isinstance(of, str) else fill(of, outs[0][1])
        return "aten.full.default", {"size": list(outs[0][0]), "fill_value": value, "dtype": outs[0][1]}, 1
    if name in _ATTENTION:
        return _attention(name, args)
    if name == "arange":
        return "aten.arange.start_step", {"start": args.get("start", 0), "end": args["end"], "step": args.get("step", 1), "dtype": args["dtype"]}, 1
    if name == "as_strided" and args.get("gaps"):
        return "aten.as_strided_gaps.default", args, 1
    if name in ("_is_all_true", "_is_any_true"):
        return f"aten.{name[4:7]}.default", args, 1
    if name == "t":
        return ("aten.transpose.int", {"self": args["self"], "dim0": 0, "dim1": 1}, 1) if len(outs[0][0]) == 2 else (IDENTITY, args, 1)
    if name == "split":
        dim = args["dim"]
        return "aten.split_with_sizes.default", {"self": args["self"], "split_sizes": [s[dim] for s, _ in outs], "dim": dim}, n
    return f"aten.{name}.{overload}", args, n


def fill(value, dtype):
    """A whole number as the fill value of a type."""
    if dtype == "bool":
        return bool(value)
    return {"float": f"{value}.0"} if "float" in dtype else value


def _attention(name, args):
    keep = {k: args[k] for k in ("query", "key", "value")}
    mask = _ATTENTION[name]
    return "aten.scaled_dot_product_attention.default", {**keep, "attn_mask": args[mask] if mask else None, "dropout_p": args["dropout_p"],
                                                         "is_causal": args["is_causal"], "scale": args.get("scale"), "enable_gqa": True}, 1  # fmt: skip


def steps(name, overload, args, outs):
    """Of each result of a view: (operator, arguments without self) that makes it again, None for the same."""
    rest = {k: v for k, v in args.items() if k != "self"}
    if name in SAME:
        return [None]
    if name in ("split", "split_with_sizes"):
        at, result = 0, []
        for shape, _ in outs:
            end = at + shape[rest["dim"]]
            result.append(("aten.slice.Tensor", {"dim": rest["dim"], "start": at, "end": end, "step": 1}))
            at = end
        return result
    if name == "unbind":
        return [("aten.select.int", {"dim": rest["dim"], "index": i}) for i in range(len(outs))]
    full, args, _ = rewritten(name, overload, args, outs)
    return [None if full is IDENTITY else (full, {k: v for k, v in args.items() if k != "self"})]


def inverse(step, base, source, shape):
    """What writing source through a view makes of base, of this shape: (operator, arguments)."""
    full, args = step
    name = full.split(".")[1]
    if name in _RESHAPES and full != "aten.view.dtype":
        return "aten.view.default", {"self": source, "size": list(shape)}
    if name == "transpose":
        return full, {"self": source, **args}
    if name == "permute":
        n, dims = len(shape), args["dims"]
        back = [0] * n
        for i, d in enumerate(dims):
            back[d % n] = i
        return full, {"self": source, "dims": back}
    if name == "view_as_real":
        return "aten.view_as_complex.default", {"self": source}
    if name == "view_as_complex":
        return "aten.view_as_real.default", {"self": source}
    if name in ("_conj", "_neg_view"):
        return full, {"self": source}
    overload = {"slice": "Tensor", "select": "int"}.get(name, "default")
    overload = "default" if name in ("slice", "select") else overload
    return f"aten.{name}_scatter.{overload}", {"self": base, "src": source, **args}
