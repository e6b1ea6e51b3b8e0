"""The table of cases: clean pairs, and at least two cases of every cause.

Cases of one cause differ in family, layer, length, type and names.
"""

import dataclasses
import math
import typing

import torch

import faults as f
from faults import At, attention, glue, leaf


@dataclasses.dataclass
class Case:
    name: str
    family: str
    bug: f.Bug = None
    seed: int = 0
    layers: int = 3
    batch: int = 1
    seq: int = 10
    dtype: str = "f32"
    names: str = "torch"  # or max: MAX's own names, ragged, without masks and tables
    pad: tuple = ()  # padded tokens per row of the batch
    config: dict = dataclasses.field(default_factory=dict)
    said: dict = dataclasses.field(default_factory=dict)  # what only config.json says
    prepare: typing.Callable = None  # changes the reference's weights
    style: tuple = ()  # what the candidate does in another way that is also right
    drop: tuple = ()  # patterns of records that the candidate lacks
    drop_reference: tuple = ()
    second: str = None  # where a second bug is, and which
    second_cause: str = None
    benign: bool = False  # records differ, and nothing is wrong
    note: str = None


BERT, LLAMA, DIT = "bert", "llama", "dit"
PADDED = {"batch": 2, "seq": 7, "pad": (0, 3)}
GEMMA = {"model_type": "gemma", "hidden_act": "gelu_pytorch_tanh", "embedding_multiplier": 8.0}
BLOCKS_ONLY = (r"(?!model(\.model|\.encoder)?(\.embeddings|\.layers?\.\d+|\.blocks\.\d+)?-).*",)
OUTPUTS_ONLY = (r".*-input_.*", r"model\.model\.layers\.\d+\..*")  # blocks, what is before and what is after them
NO_ACT = (r".*\.(act_fn|act|intermediate_act_fn)-.*",)


def bert(i):
    return At(BERT, i)


def llama(i):
    return At(LLAMA, i)


def dit(i):
    return At(DIT, i)


# What references have


def massive(channel=5, factor=60.0):
    """A channel of the residual stream grows large in every block, as in real language models."""

    def prepare(model, c):
        blocks = model.model.layers if c["model_type"] != "bert" else model.encoder.layer
        for b in blocks:
            (b.mlp.down_proj if hasattr(b, "mlp") else b.output.dense).weight[channel] *= factor

    return prepare


def sink(size=100.0):
    """Token 1, the first of every prompt, has a few channels that dwarf all others."""

    def prepare(model, c):
        model.model.embed_tokens.weight[1, 3:6] = size * torch.tensor([1.0, -0.7, 0.5])

    return prepare


def big_dit(model, c):
    """Gates let the residual stream grow from block to block."""
    for i, b in enumerate(model.blocks):
        for p in (b.adaLN_modulation.linear.weight, b.adaLN_modulation.linear.bias):
            h = c["hidden_size"]
            p[2 * h : 3 * h] *= 60.0 * 5**i
            p[5 * h :] *= 60.0 * 5**i


def large_values(label, factor):
    def prepare(model, c):
        model.get_submodule(label.removeprefix("model.")).weight.mul_(factor)

    return prepare


def quantised(bits, group):
    """All matrices of the blocks hold exactly what a quantised checkpoint holds."""

    def prepare(model, c):
        for name, p in model.named_parameters():
            if p.dim() == 2 and ("layers." in name or "layer." in name):
                p.copy_(f.dequantise(*f.quantise(p, bits, group)))

    return prepare


def quantisation(bits, group):
    return {"quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": True}}


# What candidates do in another way that is also right


def style(**options):
    """Options of all layers that know them."""

    def plant(c):
        for label in c.layers:
            for name, value in options.items():
                c.options.setdefault((label, name), value)

    return plant


def mask_form(form):
    def plant(c):
        c.options["model", "mask_form"] = form

    return plant


def fused_qkv(c):
    for label in [n for n in c.layers if n.endswith("self_attn")]:
        c.options[label, "fused"] = True
        for name in ("weight", "bias"):
            parts = [c.weight(f"{label}.{n}_proj", name) for n in "qkv"]
            if parts[0] is not None:
                c.w[f.key(f"{label}.qkv_proj", name)] = torch.cat(parts)
        c.define(f"{label}.qkv_proj", c.linear)


def permuted_rope(c):
    """Rows of the q and k weights in pairs, and the other layout of the rotation: the same attention."""
    d = c.c["head_dim"]
    order = torch.arange(d).view(2, d // 2).T.flatten()
    for label in [n for n in c.layers if n.endswith(("q_proj", "k_proj"))]:
        for name in ("weight", "bias"):
            if f.key(label, name) in c.w:
                w = c.w[f.key(label, name)]
                c.w[f.key(label, name)] = w.unflatten(0, (-1, d))[:, order].flatten(0, 1)
    for label in [n for n in c.layers if n.endswith("self_attn")]:
        c.options[label, "layout"] = "interleaved"


def zero_padding(case_pad, seq):
    """Rows of padding are set to zero where hidden states leave a norm."""

    def plant(c):
        keep = torch.tensor([[1.0] * (seq - n) + [0.0] * n for n in case_pad])[..., None]
        for label in [n for n in c.layers if n.endswith("LayerNorm")]:
            c.wrap(label, lambda out, *_: (out * keep).to(out.dtype))

    return plant


def last_row(c):
    """The logits of the last token alone, as a server needs them."""
    c.options["model", "head_rows"] = lambda x: x[:, -1:]


def one_pass_variance(c):
    style(one_pass=True)(c)


# Clean pairs


def clean():
    inverse = -1e9
    C = Case
    yield C("clean_bert_f32_deep", BERT, seed=1, layers=12, batch=2, seq=9, pad=(0, 4))
    yield C(
        "clean_bert_mask_inf",
        BERT,
        seed=2,
        **PADDED,
        style=(mask_form(lambda a: torch.zeros(a.shape).masked_fill(a == 0, -math.inf)),),
        note="mask of -inf instead of the lowest number",
    )
    yield C("clean_bert_mask_bool", BERT, seed=3, batch=3, seq=8, pad=(0, 2, 5), style=(mask_form(lambda a: a.bool()),),
        note="a mask of booleans")
    yield C(
        "clean_bert_mask_1e4_square",
        BERT,
        seed=4,
        batch=2,
        seq=8,
        pad=(1, 3),
        style=(mask_form(lambda a: ((1 - a) * -1e4).expand(-1, -1, a.shape[-1], -1)),),
        note="-1e4, one row per query",
    )
    yield C("clean_bert_mask_1e9_max", BERT, seed=5, names="max", **PADDED,
        style=(mask_form(lambda a: (1 - a) * inverse),))
    yield C("clean_bert_pad_zeroed", BERT, seed=6, **PADDED, style=(zero_padding((0, 3), 7),), benign=True,
        note="rows of padding are zero")
    yield C("clean_bert_bf16", BERT, seed=7, dtype="bf16", batch=2, seq=11, pad=(0, 4), layers=4)
    yield C("clean_bert_f16_max", BERT, seed=8, dtype="f16", names="max", seq=16, batch=1, layers=6)
    yield C("clean_bert_one_pass", BERT, seed=9, seq=5, layers=2, style=(one_pass_variance,),
        note="variance as E[x²] − E[x]²")
    yield C("clean_llama_bf16", LLAMA, seed=10, dtype="bf16", seq=24, layers=4, benign=True)
    yield C("clean_llama_f16_massive", LLAMA, seed=11, dtype="f16", names="max", seq=17, layers=5, prepare=massive(),
        benign=True)
    yield C("clean_llama_sink", LLAMA, seed=12, seq=20, prepare=sink(300.0), note="token 0 dwarfs all others")
    yield C("clean_llama_sink_bf16_max", LLAMA, seed=13, dtype="bf16", names="max", seq=13, prepare=sink(), benign=True)
    yield C("clean_llama_deep_max", LLAMA, seed=14, names="max", layers=12, seq=33)
    yield C("clean_llama_fused", LLAMA, seed=15, names="max", layers=4, style=(fused_qkv,),
        config={"attention_bias": True})
    yield C("clean_llama_fused_torch_names", LLAMA, seed=16, seq=6, style=(fused_qkv,), drop=NO_ACT)
    yield C("clean_llama_rope_permuted", LLAMA, seed=17, seq=12, style=(permuted_rope,), benign=True,
        note="q and k permuted within heads")
    yield C(
        "clean_llama_rope_permuted_max",
        LLAMA,
        seed=18,
        names="max",
        layers=4,
        style=(permuted_rope,),
        benign=True,
        config={"num_key_value_heads": 1, "attention_bias": True},
        note="q and k permuted within heads",
    )
    yield C("clean_llama_last_row", LLAMA, seed=19, names="max", seq=14, style=(last_row,), benign=True,
        note="logits of the last token alone")
    yield C(
        "clean_llama_last_row_named",
        LLAMA,
        seed=369,
        seq=12,
        style=(last_row,),
        benign=True,
        note="logits of the last token alone, under the reference's names and with its batch axis",
    )
    yield C("clean_llama_gemma", LLAMA, seed=20, config=GEMMA, seq=19, layers=5)
    yield C("clean_llama_blocks", LLAMA, seed=21, names="max", drop=BLOCKS_ONLY, layers=6,
        note="the candidate records blocks only")
    yield C("clean_llama_batch_ragged", LLAMA, seed=22, names="max", batch=2, seq=9)
    yield C("clean_llama_reference_sparse", LLAMA, seed=23,
        drop_reference=(r".*\.(self_attn|mlp|act_fn|rotary_emb)-.*",))
    yield C("clean_dit_f32", DIT, seed=24, batch=2, config={"sample_size": 8})
    yield C("clean_dit_big_bf16", DIT, seed=25, dtype="bf16", prepare=big_dit, layers=4)
    yield C("clean_dit_big_max", DIT, seed=26, prepare=big_dit, names="max", layers=5)
    yield C("clean_dit_f16", DIT, seed=27, dtype="f16", names="max", config={"sample_size": 8, "hidden_size": 48})
    yield C("clean_dit_bf16_no_act", DIT, seed=28, dtype="bf16", drop=NO_ACT, layers=2)
    yield C("clean_llama_tiny_row", LLAMA, seed=29, seq=1, names="max", note="one token")
    yield C("clean_bert_long", BERT, seed=30, batch=1, seq=40)


# Bugs, by cause


def activations():
    C = Case
    yield C("act_gelu_tanh_all", BERT,
        f.everywhere([f.activation(bert(i), "gelu_pytorch_tanh", "gelu-tanh") for i in range(3)]), 101, **PADDED)
    yield C(
        "act_gelu_tanh_max",
        BERT,
        f.everywhere([f.activation(bert(i), "gelu_pytorch_tanh", "gelu-tanh") for i in range(1, 5)]),
        102,
        layers=5,
        names="max",
    )
    yield C("act_gelu_dit", DIT, f.everywhere([f.activation(dit(i), "gelu", "gelu") for i in range(4)]), 103, layers=4,
        prepare=big_dit)
    yield C("act_gelu_llama", LLAMA, f.activation(llama(1), "gelu", "gelu"), 104, names="max")
    yield C("act_gelu_tanh_llama", LLAMA, f.activation(llama(2), "gelu_pytorch_tanh", "gelu-tanh"), 105, seq=18)
    yield C("act_quick_gelu_dit", DIT, f.activation(dit(2), "quick_gelu", "quick-gelu"), 106)
    yield C("act_quick_gelu_max", BERT, f.activation(bert(0), "quick_gelu", "quick-gelu"), 107, names="max", seq=12)
    yield C("act_silu_bert", BERT, f.activation(bert(2), "silu", "silu"), 108, **PADDED)
    yield C("act_silu_gemma", LLAMA, f.activation(llama(1), "silu", "silu"), 109, config=GEMMA)
    yield C("act_relu_bert", BERT, f.activation(bert(1), "relu", "relu"), 110, names="max", layers=4)
    yield C("act_relu_bf16", LLAMA, f.activation(llama(0), "relu", "relu"), 111, dtype="bf16")
    yield C("act_relu2_for_silu", LLAMA, f.activation(llama(2), "relu2", "relu2"), 112, names="max", seq=15)
    yield C("act_relu_for_relu2", LLAMA, f.activation(llama(1), "relu", "relu"), 113, config={"hidden_act": "relu2"})
    yield C("act_relu2_dit", DIT, f.activation(dit(0), "relu2", "relu2"), 114, dtype="f16")
    yield C("act_missing_bert", BERT, f.activation(bert(0), "identity", "missing"), 115, seq=8)
    yield C("act_missing_llama", LLAMA, f.activation(llama(1), "identity", "missing"), 116, dtype="f16", names="max")
    yield C("act_sigmoid", LLAMA, f.activation(llama(1), "sigmoid", "sigmoid"), 117)
    yield C("act_leaky_relu", BERT, f.activation(bert(1), "leaky_relu", "leaky-relu"), 118)
    b = f.activation(llama(1), "gelu", "gelu")
    b = dataclasses.replace(b, kind="between", layer=llama(1).mlp, also=(llama(1).down,))
    yield C("act_gelu_unrecorded", LLAMA, b, 119, names="max", drop=NO_ACT,
        note="the candidate has no module for the activation")
    b = f.activation(bert(2), "silu", "silu")
    b = dataclasses.replace(b, kind="between", layer=bert(2).mlp)
    yield C("act_silu_unrecorded", BERT, b, 120, drop=NO_ACT, **PADDED,
        note="the candidate has no module for the activation")


def norms():
    C = Case
    e = "model.embeddings.LayerNorm"
    yield C("norm_eps_llama", LLAMA,
        f.everywhere([f.norm_eps(x, 1e-5) for i in range(3) for x in (llama(i).norm1, llama(i).norm2)]), 131)
    yield C("norm_eps_bert", BERT, f.norm_eps(e, 1e-5), 132, **PADDED)
    yield C("norm_eps_max", LLAMA, f.norm_eps(llama(0).norm1, 1e-4), 133, names="max", seq=16)
    yield C("norm_eps_dit", DIT, f.norm_eps(dit(1).norm2, 1e-2), 134)
    yield C("norm_kind_bert", BERT, f.norm_kind(bert(1).norm1), 135, **PADDED)
    yield C("norm_kind_llama_max", LLAMA, f.norm_kind(llama(2).norm2), 136, names="max")
    yield C("norm_kind_dit_f16", DIT, f.norm_kind(dit(0).norm1), 137, dtype="f16")
    yield C(
        "norm_weight_gemma",
        LLAMA,
        f.everywhere([weights_minus_one(x) for i in range(3) for x in (llama(i).norm1, llama(i).norm2)]),
        138,
        config=GEMMA,
    )
    yield C("norm_weight_ignored", LLAMA, f.norm_weight("model.model.norm"), 139, names="max")
    yield C("norm_weight_bert", BERT, f.norm_weight(bert(2).norm2), 140, **PADDED)
    yield C(
        "norm_weight_plus_one", LLAMA, f.weights(llama(1).norm1, lambda w, _: w + 1, "norm/weight",
            "1 + w in a model without it"), 141, dtype="f16"
    )
    yield C(
        "norm_order_bert",
        BERT,
        glue(bert(1).norm1.removesuffix(".LayerNorm"), {"norm_first": True}, "norm/order",
            "residual added after the norm", [bert(1).norm1]),
        142,
        **PADDED,
    )
    yield C(
        "norm_order_llama",
        LLAMA,
        glue(llama(1).block, {"normed": lambda n, x: x}, "norm/order", "attention gets the input before the norm",
            [llama(1).attn], also_cause=("norm/missing",)),
        143,
        names="max",
    )
    yield C(
        "norm_order_bert_2",
        BERT,
        glue(bert(0).norm2.removesuffix(".LayerNorm"), {"norm_first": True}, "norm/order",
            "residual added after the norm", [bert(0).norm2]),
        144,
        names="max",
        batch=2,
        seq=6,
    )


def weights_minus_one(label):
    return f.weights(label, lambda w, _: w - 1, "norm/weight", "w instead of 1 + w")


def residuals():
    C = Case
    out = lambda i, part: f"{bert(i).block}.{part}"
    yield C(
        "residual_missing_attn",
        LLAMA,
        glue(llama(1).block, {"residual1": lambda x, n: 0 * x}, "residual/missing", "the block's input is not added",
            [llama(1).norm2]),
        151,
        names="max",
    )
    yield C(
        "residual_missing_mlp",
        LLAMA,
        glue(llama(0).block, {"residual2": lambda h, x: 0 * h}, "residual/missing", "no residual around the MLP"),
        152,
        dtype="bf16",
    )
    yield C(
        "residual_missing_bert",
        BERT,
        glue(out(1, "attention.output"), {"residual": lambda r: 0 * r}, "residual/missing", "no residual",
            [bert(1).norm1]),
        153,
        **PADDED,
    )
    yield C(
        "residual_missing_dit",
        DIT,
        glue(dit(2).block, {"residual1": lambda x: 0 * x}, "residual/missing", "no residual around attention",
            [dit(2).norm2]),
        154,
    )
    yield C(
        "residual_source_llama",
        LLAMA,
        glue(llama(1).block, {"residual2": lambda h, x: x}, "residual/source",
            "the block's input instead of the state after attention"),
        155,
    )
    yield C(
        "residual_source_normed",
        LLAMA,
        glue(llama(2).block, {"residual1": lambda x, n: n}, "residual/source", "the normed input is added",
            [llama(2).norm2]),
        156,
        names="max",
    )
    yield C(
        "residual_source_bert",
        BERT,
        glue(bert(1).block, {"residual2": lambda h, x: x}, "residual/source",
            "the block's input instead of attention's output", [out(1, "output")]),
        157,
        **PADDED,
    )
    yield C("residual_source_dit", DIT,
        glue(dit(1).block, {"residual2": lambda h, x: x}, "residual/source", "the block's input"), 158, dtype="f16")
    yield C(
        "residual_scale_granite",
        LLAMA,
        f.everywhere(
            [
                glue(
                    llama(i).block,
                    {"multiplier": 1.0},
                    "residual/scale",
                    "residual_multiplier ignored",
                    [llama(i).norm2],
                    also_cause=("config/residual_multiplier",),
                )
                for i in range(3)
            ]
        ),
        159,
        config={"residual_multiplier": 0.22},
    )
    yield C(
        "residual_scale_double",
        LLAMA,
        glue(llama(1).block, {"residual1": lambda x, n: 2 * x}, "residual/scale", "the residual is added twice",
            [llama(1).norm2]),
        160,
        names="max",
        seq=21,
    )
    yield C(
        "residual_scale_bert",
        BERT,
        glue(out(2, "output"), {"residual": lambda r: 0.5 * r}, "residual/scale", "half of the residual",
            [bert(2).norm2]),
        161,
    )


def scales_and_masks():
    C = Case
    first = {"where": "rows>=1"}
    yield C("scale_hidden_bert", BERT, attention(bert(1), "attention/scale", "1/sqrt(hidden)", scale=64**-0.5), 171,
        **PADDED)
    yield C("scale_missing_max", LLAMA, attention(llama(1), "attention/scale", "no scale", scale=1.0, **first), 172,
        names="max")
    yield C("scale_twice_dit", DIT, attention(dit(0), "attention/scale", "scale applied twice", scale=1 / 16), 173,
        dtype="bf16")
    yield C(
        "scale_kv_dim",
        LLAMA,
        f.everywhere([attention(llama(i), "attention/scale", "1/sqrt(8)", scale=8**-0.5, **first) for i in range(4)]),
        174,
        layers=4,
        dtype="f16",
    )
    yield C(
        "mask_ignored_max",
        BERT,
        attention(bert(0), "attention/mask", "padding is attended to", mask=lambda m: None, where="batch row 1"),
        175,
        names="max",
        **PADDED,
    )
    yield C(
        "mask_inverted",
        BERT,
        attention(bert(1), "attention/mask", "inverted", mask=lambda m: torch.where(m < 0, 0.0, -1e9)),
        176,
        batch=2,
        seq=8,
        pad=(2, 4),
    )
    yield C(
        "mask_too_weak",
        BERT,
        attention(bert(2), "attention/mask", "0/1 added instead of large negatives",
            mask=lambda m: (m < 0).float() * -1.0, where="batch row 1"),
        177,
        **PADDED,
    )
    yield C(
        "mask_other_row",
        BERT,
        attention(bert(1), "attention/mask", "the mask of the other prompt", mask=lambda m: m.flip(0)),
        178,
        batch=2,
        seq=9,
        pad=(0, 4),
    )
    yield C(
        "mask_other_row_all",
        BERT,
        f.everywhere([attention(bert(i), "attention/mask", "padding ignored", mask=lambda m: None,
            where="batch row 0") for i in range(3)]),
        179,
        batch=2,
        seq=9,
        pad=(5, 0),
        dtype="f16",
    )
    b = attention(bert(1), "attention/mask", "padding is attended to", mask=lambda m: None, where="batch row 1")
    b = dataclasses.replace(b, kind="local", layer=bert(1).block, also=(bert(1).attn,))
    yield C("mask_sparse", BERT, b, 180, names="max", **PADDED, drop=BLOCKS_ONLY,
        note="the candidate records blocks only")


def causality():
    C = Case
    first = {"where": "rows>=1"}
    ahead = lambda allow, i, j: j <= i + 1
    yield C("causal_ahead", LLAMA,
        attention(llama(1), "attention/causal", "one token of the future is seen", allow=ahead), 181)
    yield C(
        "causal_none_max", LLAMA, attention(llama(0), "attention/causal", "no causal mask", allow=lambda a, i,
            j: j >= 0), 182, names="max", seq=12
    )
    yield C(
        "causal_strict",
        LLAMA,
        attention(llama(2), "attention/causal", "a token does not see itself", allow=lambda a, i,
            j: (j < i) | (i == 0) & (j == 0), **first),
        183,
        dtype="bf16",
    )
    yield C(
        "causal_inverted", LLAMA, attention(llama(1), "attention/causal", "only the future is seen", allow=lambda a, i,
            j: j >= i), 184, names="max"
    )
    yield C(
        "causal_all_layers",
        LLAMA,
        f.everywhere([attention(llama(i), "attention/causal", "no causal mask", allow=lambda a, i,
            j: j >= 0) for i in range(3)]),
        185,
        seq=7,
    )
    yield C(
        "window_ignored",
        LLAMA,
        f.everywhere(
            [
                attention(
                    llama(i),
                    "attention/mask",
                    "sliding_window ignored",
                    allow=lambda a, i, j: j <= i,
                    where="rows>=6",
                    also_cause=("config/sliding_window", "attention/causal"),
                )
                for i in range(3)
            ]
        ),
        186,
        seq=16,
        config={"sliding_window": 6},
    )
    yield C(
        "window_off_by_one",
        LLAMA,
        attention(
            llama(1),
            "attention/mask",
            "window one token too wide",
            allow=lambda a, i, j: (j <= i) & (j > i - 6),
            where="rows>=5",
            also_cause=("config/sliding_window",),
        ),
        187,
        seq=14,
        config={"sliding_window": 5},
        names="max",
    )


def heads():
    C = Case
    yield C("axis_bert", BERT, attention(bert(0), "attention/softmax-axis", "softmax over the queries", axis=-2), 188,
        batch=1, seq=9)
    yield C("axis_dit", DIT, attention(dit(2), "attention/softmax-axis", "softmax over the queries", axis=-2), 189,
        names="max")
    yield C("axis_heads", DIT, attention(dit(1), "attention/softmax-axis", "softmax over the heads", axis=1), 190)
    yield C(
        "heads_double_bert",
        BERT,
        attention(bert(1), "attention/heads", "8 heads of 8", heads=lambda n: 2 * n,
            also_cause=("config/num_attention_heads",)),
        191,
        **PADDED,
    )
    yield C(
        "heads_half_dit",
        DIT,
        attention(dit(0), "attention/heads", "2 heads of 32", heads=lambda n: n // 2,
            also_cause=("config/num_attention_heads",)),
        192,
    )
    yield C(
        "heads_last_max",
        LLAMA,
        attention(llama(2), "attention/heads", "[head_dim, heads] instead of [heads, head_dim]", heads_last=True),
        193,
        names="max",
    )
    yield C(
        "heads_unmerged_bert",
        BERT,
        attention(bert(2), "attention/heads", "heads joined without the transposition", unmerged=True,
            also_cause=("layout/transposed",)),
        194,
        batch=2,
        seq=8,
    )
    yield C(
        "heads_unmerged_dit",
        DIT,
        attention(dit(1), "attention/heads", "heads joined without the transposition", unmerged=True,
            also_cause=("layout/transposed",)),
        195,
        dtype="f16",
    )
    yield C("gqa_tiled", LLAMA,
        attention(llama(1), "attention/gqa", "heads repeated as a whole instead of each", tiled=True), 196)
    yield C(
        "gqa_tiled_max",
        LLAMA,
        f.everywhere([attention(llama(i), "attention/gqa", "tiled", tiled=True) for i in range(4)]),
        197,
        names="max",
        layers=4,
        config={"num_attention_heads": 6, "num_key_value_heads": 3, "hidden_size": 96},
    )
    yield C(
        "gqa_first_group",
        LLAMA,
        attention(
            llama(0),
            "attention/gqa",
            "all heads read group 0",
            qkv=lambda q, k, v: (q, k[:, :, :1].expand_as(k), v[:, :, :1].expand_as(v)),
            where="heads 2, 3",
        ),
        198,
        dtype="bf16",
        seq=16,
    )


def sinks():
    C = Case
    first = {"where": "rows>=1"}
    anchor = lambda allow, i, j: allow & ((j > 0) | (i == 0))
    yield C(
        "anchor_missing",
        LLAMA,
        attention(llama(1), "attention/anchor-missing", "token 0 is seen by itself alone", allow=anchor, **first),
        199,
        seq=12,
        prepare=sink(30.0),
    )
    yield C(
        "anchor_missing_max",
        LLAMA,
        attention(llama(2), "attention/anchor-missing", "token 0 is seen by itself alone", allow=anchor, **first),
        200,
        names="max",
        seq=9,
    )
    yield C(
        "anchor_sinks",
        LLAMA,
        f.everywhere([attention(llama(i), "attention/anchor-missing", "learned sinks left out of the softmax",
            no_sinks=True) for i in range(3)]),
        201,
        config={"model_type": "gpt_oss"},
        note="doubtful id: the sink is a learned logit here",
    )


def broken_heads():
    C = Case
    yield C("head_one_context", LLAMA,
        attention(llama(1), "head/one", "head 2 is zero", context=f.one_head(2, lambda x: 0 * x), where="head 2"), 202)
    yield C(
        "head_one_dit", DIT, attention(dit(1), "head/one", "head 0 is garbage", context=f.one_head(0, f.noise(5)),
            where="head 0"), 203, names="max"
    )
    yield C(
        "head_one_bert", BERT, attention(bert(1), "head/one", "head 3 is zero", context=f.one_head(3, lambda x: 0 * x),
            where="head 3"), 204, **PADDED
    )
    yield C(
        "head_one_q",
        LLAMA,
        leaf(
            llama(2).q, f.only_columns(slice(16, 32), f.noise(6)), "head/one", "head 1 of q is garbage", where="head 1",
            also_cause=("columns/set",)
        ),
        205,
    )
    yield C("stale_keys", LLAMA, f.stale_keys(llama(2), llama(1)), 206)
    yield C("stale_keys_max", LLAMA, f.stale_keys(llama(1), llama(0)), 207, names="max", seq=15)
    yield C("qkv_order_glue", LLAMA,
        attention(llama(0), "linear/qkv-order", "k and v exchanged", qkv=lambda q, k, v: (q, v, k)), 208, names="max")
    yield C("qkv_order_dit_glue", DIT,
        attention(dit(1), "linear/qkv-order", "v, q, k read as q, k, v", qkv=lambda q, k, v: (v, q, k)), 209)


def rotations():
    C = Case
    first = {"where": "rows>=1"}
    pairs = {"layout": "interleaved"}
    yield C("rope_interleaved", LLAMA, attention(llama(2), "rope/layout", "pairs instead of halves", **pairs, **first),
        211, seq=13)
    yield C(
        "rope_interleaved_all",
        LLAMA,
        f.everywhere([attention(llama(i), "rope/layout", "pairs instead of halves", **pairs,
            **first) for i in range(4)]),
        212,
        layers=4,
        names="max",
    )
    yield C(
        "rope_interleaved_bf16", LLAMA, attention(llama(0), "rope/layout", "pairs instead of halves", **pairs,
            **first), 213, dtype="bf16", seq=20
    )

    def table_theta(c):
        c.options["model.model.rotary_emb", "theta"] = 500000.0

    yield C(
        "rope_theta_table",
        LLAMA,
        f.Bug(
            table_theta,
            "local",
            "model.model.rotary_emb",
            "rope/theta",
            "theta 500000 instead of 10000",
            where="rows>=1",
            also_cause=("config/rope_theta",),
        ),
        214,
        seq=16,
    )
    yield C("rope_theta_max", LLAMA, f.everywhere([f.rope_theta(llama(i), 500000.0) for i in range(3)]), 215,
        names="max", seq=18)
    yield C("rope_theta_low", LLAMA, f.rope_theta(llama(1), 10000.0), 216, names="max", seq=24,
        config={"rope_theta": 1000000.0})

    def shifted(q, k):
        def tables(cos, sin):
            roll = lambda t, n: torch.cat([t[:, n:], t[:, -1:].expand(-1, n, -1)], 1) if n else t
            return {"q": (roll(cos, q), roll(sin, q)), "k": (roll(cos, k), roll(sin, k))}

        return {"tables": tables}

    yield C("rope_offset_q", LLAMA,
        attention(llama(1), "rope/offset", "q rotated one position further than k", **shifted(1, 0)), 217, seq=12)
    yield C(
        "rope_offset_k_max",
        LLAMA,
        attention(llama(0), "rope/offset", "k rotated two positions further than q", **shifted(0, 2)),
        218,
        names="max",
        seq=16,
    )

    def one_table(c):
        def positions(t):
            return torch.cat([t[:, :1], t[:, :-1]], 1)  # 0 0 1 2 …

        c.options["model.model", "positions"] = positions

    yield C(
        "rope_offset_positions",
        LLAMA,
        f.Bug(
            one_table,
            "between",
            "model.model",
            "rope/offset",
            "positions 0, 0, 1, 2 …",
            ("model.model.rotary_emb",),
            "rows>=1",
            also_cause=("embedding/position",),
        ),
        219,
        seq=9,
    )
    only = lambda *names: {"tables": lambda cos, sin: {n: (cos, sin) for n in names}}
    yield C("rope_applied_none", LLAMA, attention(llama(1), "rope/applied", "no rotation", **only(), **first), 220)
    yield C("rope_applied_q", LLAMA, attention(llama(2), "rope/applied", "only q is rotated", **only("q"), **first),
        221, names="max")
    yield C(
        "rope_applied_v", LLAMA, attention(llama(0), "rope/applied", "v is rotated too", **only("q", "k", "v"),
            **first), 222, dtype="f16", seq=14
    )


def linears():
    C = Case
    yield C("transposed_o_max", LLAMA, f.transposed(llama(0).o), 231, names="max")
    yield C("transposed_v_bert", BERT, f.transposed(bert(1).v), 232, dtype="bf16", batch=2, seq=6)
    yield C("transposed_proj", DIT, f.transposed(dit(1).o), 233)
    yield C("bias_missing_bert", BERT, f.bias(bert(2).down, 0), 234, **PADDED)
    yield C("bias_missing_dit", DIT, f.bias(dit(0).up, 0), 235, names="max")
    yield C(
        "bias_missing_qkv",
        LLAMA,
        f.everywhere([f.bias(x, 0) for i in range(3) for x in (llama(i).q, llama(i).k, llama(i).v)]),
        236,
        config={"attention_bias": True},
    )
    yield C("bias_missing_key", BERT, f.bias(bert(1).v, 0), 237, names="max", seq=9)
    yield C("bias_twice_dit", DIT, f.bias(dit(2).down, 2), 238, dtype="f16")
    yield C("bias_twice_bert", BERT, f.bias(bert(0).o, 2), 239, names="max", **PADDED)
    yield C(
        "qkv_order_bert",
        BERT,
        f.exchanged(bert(1).q, bert(1).k, "linear/qkv-order", "weights of q and k exchanged",
            also_cause=("linear/other-layer",)),
        240,
        **PADDED,
    )
    yield C("qkv_order_fused", DIT, f.fused_order(dit(1).q), 241)
    yield C(
        "qkv_order_kv",
        LLAMA,
        f.exchanged(llama(2).k, llama(2).v, "linear/qkv-order", "weights of k and v exchanged",
            also_cause=("linear/other-layer",)),
        242,
        names="max",
    )
    yield C("other_layer_up", LLAMA, f.other_layer(llama(1).up, llama(2).up), 243)
    yield C("other_layer_down", BERT, f.other_layer(bert(2).down, bert(0).down), 244, names="max", **PADDED)
    yield C("other_layer_proj", DIT, f.other_layer(dit(0).o, dit(2).o), 245, dtype="f16")
    yield C("corrupt_zeros", LLAMA, f.corrupt(llama(1).down, slice(0, 32), slice(32, 64), lambda w: 0 * w), 246,
        names="max")
    yield C("corrupt_noise", BERT, f.corrupt(bert(0).up, slice(48, 64), slice(None), f.noise(7)), 247, **PADDED)
    yield C("corrupt_shifted", DIT, f.corrupt(dit(2).up, slice(40, 96), slice(None), lambda w: w.roll(1, 0)), 248)


def gates():
    C = Case
    yield C("gate_up_glue_max", LLAMA,
        glue(llama(1).mlp, {"swapped": True}, "linear/gate-up", "act(up) · gate", [llama(1).act]), 249, names="max")
    yield C(
        "gate_up_glue_all",
        LLAMA,
        f.everywhere([glue(llama(i).mlp, {"swapped": True}, "linear/gate-up", "act(up) · gate",
            [llama(i).act]) for i in range(3)]),
        250,
        config=GEMMA,
        seq=17,
    )
    yield C(
        "gate_up_no_act",
        LLAMA,
        glue(llama(0).mlp, {"swapped": True}, "linear/gate-up", "act(up) · gate", [llama(0).down]),
        251,
        names="max",
        drop=NO_ACT,
    )
    yield C(
        "gate_up_weights",
        LLAMA,
        f.exchanged(llama(2).gate, llama(2).up, "linear/gate-up", "weights of gate and up exchanged",
            also_cause=("linear/other-layer",)),
        252,
        dtype="bf16",
    )


def quantisations():
    C = Case
    q4 = {"config": quantisation(4, 16), "prepare": quantised(4, 16)}
    q8 = {"config": quantisation(8, 32), "prepare": quantised(8, 32)}
    yield C(
        "quant_scale_one",
        LLAMA,
        f.quant(
            llama(1).down,
            4,
            16,
            lambda q, s: f.dequantise(q, torch.where(torch.arange(s.shape[1]) == 2, s * 1.5, s)),
            "quant/scale",
            "the scales of one group are wrong",
        ),
        253,
        **q4,
    )
    yield C(
        "quant_scale_zero_point",
        LLAMA,
        f.quant(
            llama(0).up, 4, 16, lambda q, s: f.dequantise(q, s * 7 / 8), "quant/scale",
            "scale = max/8 instead of max/7", also_cause=("value/scale",)
        ),
        254,
        names="max",
        **q4,
    )
    yield C(
        "quant_scale_row",
        BERT,
        f.quant(
            bert(1).up,
            8,
            32,
            lambda q, s: f.dequantise(q, s[:, :1].expand_as(s)),
            "quant/scale",
            "each row has the scale of its first group",
        ),
        255,
        **q8,
    )
    yield C(
        "quant_group_rolled",
        LLAMA,
        f.quant(llama(2).gate, 4, 16, lambda q, s: f.dequantise(q, s.roll(1, 1)), "quant/group",
            "each group has the scale of the one before"),
        256,
        **q4,
    )
    yield C(
        "quant_group_double",
        LLAMA,
        f.quant(llama(1).q, 4, 16, lambda q, s: f.dequantise(q, s[:, ::2].repeat_interleave(2, 1)), "quant/group",
            "groups of 32 instead of 16"),
        257,
        names="max",
        **q4,
    )
    yield C(
        "quant_group_axis",
        BERT,
        f.quant(bert(0).o, 8, 16, lambda q, s: f.dequantise(q, s.T.contiguous().view(s.shape)), "quant/group",
            "scales read in the other order"),
        258,
        config=quantisation(8, 16),
        prepare=quantised(8, 16),
    )


def embeddings():
    C = Case
    e = "model.embeddings"
    w = "model.model.embed_tokens"
    yield C(
        "embed_index",
        LLAMA,
        f.weights(w, lambda x, _: x.roll(1, 0), "embedding/index", "row n − 1 is read"),
        261,
        config={"tie_word_embeddings": False},
    )
    yield C(
        "embed_index_bert",
        BERT,
        f.weights(f"{e}.word_embeddings", lambda x, _: x.roll(-1, 0), "embedding/index", "row n + 1 is read"),
        262,
        names="max",
        batch=2,
        seq=6,
    )
    yield C(
        "embed_index_clamped",
        LLAMA,
        f.weights(
            w,
            lambda x, _: torch.cat([x[:64], x[63:64].expand(x.shape[0] - 64, -1)]),
            "embedding/index",
            "ids above 63 are clamped",
            where="tokens >= 64",
        ),
        263,
        names="max",
        config={"tie_word_embeddings": False},
        seq=12,
    )
    yield C(
        "embed_position_one",
        BERT,
        glue(e, {"positions": lambda p: p + 1}, "embedding/position", "positions from 1", [f"{e}.position_embeddings"]),
        264,
        **PADDED,
    )
    yield C(
        "embed_position_two_max",
        BERT,
        glue(e, {"positions": lambda p: p + 2}, "embedding/position", "positions from 2 (RoBERTa)",
            [f"{e}.position_embeddings"]),
        265,
        names="max",
        seq=11,
    )
    yield C(
        "embed_position_dit",
        DIT,
        glue("model", {"pos_embed": lambda x, p: x}, "embedding/position", "no position embedding",
            [dit(0).block, dit(0).norm1]),
        266,
    )
    yield C(
        "embed_position_stays",
        BERT,
        glue(e, {"positions": lambda p: p * 0}, "embedding/position", "all positions 0", [f"{e}.position_embeddings"],
            where="rows>=1"),
        267,
        batch=1,
        seq=8,
    )
    yield C(
        "embed_type_zero",
        BERT,
        glue(e, {"types": lambda t: t * 0}, "embedding/type", "all token types 0", [f"{e}.token_type_embeddings"],
            where="tokens of type 1"),
        268,
        **PADDED,
    )
    yield C(
        "embed_type_max",
        BERT,
        glue(e, {"types": lambda t: 1 - t}, "embedding/type", "token types exchanged", [f"{e}.token_type_embeddings"]),
        269,
        names="max",
        seq=10,
    )
    scale = lambda v: glue(
        "model.model",
        {"embedding_multiplier": v},
        "embedding/scale",
        f"multiplier {v:g}",
        [llama(0).block, llama(0).norm1],
        also_cause=("config/embedding_multiplier",),
    )
    yield C("embed_scale_gemma", LLAMA, scale(1.0), 270, config=GEMMA, seq=14)
    top = dataclasses.replace(scale(1.0), layer="model", also=("model.model", llama(0).block, llama(0).norm1))
    yield C("embed_scale_max", LLAMA, top, 271, names="max", config={"embedding_multiplier": 12.0})
    yield C("embed_scale_sqrt", LLAMA, scale(64.0), 272, config=GEMMA, note="hidden instead of its root")


def types():
    C = Case
    both = (f.downcast(bert(1).q, torch.bfloat16), f.downcast(llama(2).down, torch.bfloat16))
    yield C("downcast_query", BERT, both[0], 281, **PADDED)
    yield C("downcast_down_max", LLAMA, both[1], 282, names="max")
    yield C("downcast_f16", LLAMA, f.downcast(llama(1).gate, torch.float16), 283, seq=20)
    yield C("downcast_head", DIT, f.downcast("model.final_layer.linear", torch.bfloat16), 284)
    yield C("downcast_f8", LLAMA, f.downcast(llama(1).v, torch.float8_e4m3fn), 285, dtype="f16")

    def half_norm(label):
        def plant(c):
            w = c.weight(label)
            c.layers[label] = lambda x: (x.half() * torch.rsqrt((x.half() * x.half()).mean(-1,
                keepdim=True) + 1e-6)).to(c.dtype) * w

        return f.Bug(plant, "local", label, "dtype/overflow",
            "the squares overflow in float16, and the row becomes zero", where="row 0")

    yield C("overflow_norm", LLAMA, half_norm(llama(0).norm1), 286, dtype="f16", prepare=sink(400.0))
    yield C("overflow_norm_f32", LLAMA, half_norm(llama(1).norm1), 287, names="max", prepare=sink(400.0), seq=7)
    inf = lambda out, *_: out.half().to(out.dtype)
    clamp = lambda out, *_: out.clamp(-65504, 65504)
    yield C(
        "overflow_inf",
        LLAMA,
        leaf(llama(1).down, inf, "dtype/overflow", "infinite beyond 65504", also_cause=("nan/first",)),
        288,
        prepare=large_values(llama(1).down, 2e5),
    )
    yield C(
        "overflow_saturated",
        DIT,
        leaf(dit(1).up, clamp, "dtype/overflow", "saturates at 65504"),
        289,
        prepare=large_values(dit(1).up, 8e4),
        names="max",
    )

    def nan(row, column):
        def after(out, *_):
            out = out.clone()
            out[0, row, column] = math.nan
            return out

        return after

    yield C("nan_one", LLAMA, leaf(llama(1).up, nan(4, 17), "nan/first", "one NaN", where="row 4"), 290)
    yield C("nan_norm_max", BERT, leaf(bert(0).norm2, nan(2, slice(None)), "nan/first", "a row of NaN", where="row 2"),
        291, names="max", **PADDED)
    hole = lambda w: torch.cat([w[:, :, :2], w[:, :, 2:3] * math.nan, w[:, :, 3:]], 2)
    yield C("nan_softmax", DIT,
        attention(dit(1), "nan/first", "a row of the softmax is NaN", weights=hole, where="row 2"), 292)


def layouts():
    C = Case
    d = "dropout"
    yield C("dropout_dense", BERT, leaf(bert(1).o, f.drop(8, 0.1), d, "dropout left on"), 301, **PADDED)
    yield C("dropout_down_max", LLAMA, leaf(llama(0).down, f.drop(9, 0.1), d, "dropout left on"), 302, names="max",
        seq=13)
    b = leaf("model.embeddings", f.drop(10, 0.1), d, "dropout left on after the embeddings")
    yield C("dropout_embeddings", BERT, dataclasses.replace(b, kind="between"), 303, batch=2, seq=9)
    yield C("dropout_weights", BERT,
        attention(bert(2), d, "dropout of the attention weights left on", weights=f.drop(11, 0.1)), 304, batch=2,
        seq=10)
    yield C("layout_transposed", LLAMA,
        leaf(llama(1).v, f.read_transposed, "layout/transposed", "the output is read column by column"), 305, seq=16)
    yield C(
        "layout_transposed_max",
        BERT,
        leaf(bert(1).up, f.read_transposed, "layout/transposed", "the output is read column by column"),
        306,
        names="max",
        seq=12,
    )
    yield C("layout_strided", LLAMA,
        leaf(llama(2).up, f.read_strided, "layout/strided", "every second element is read, twice"), 307)
    yield C("layout_strided_dit", DIT,
        leaf(dit(0).down, f.read_strided, "layout/strided", "every second element is read, twice"), 308, names="max")
    yield C("layout_permuted", LLAMA, leaf(llama(1).down, f.evens_first, "layout/permuted", "even columns first"), 309,
        names="max", dtype="f16")
    yield C(
        "layout_permuted_heads",
        BERT,
        leaf(bert(0).v, lambda o, *_: o.unflatten(-1, (4, -1))[:, :, [2, 3, 0, 1]].flatten(-2), "layout/permuted",
            "heads in another order"),
        310,
        **PADDED,
    )
    yield C(
        "layout_unpatchify", DIT, glue("model", {"unpatchify": (0, 5, 1, 4, 2, 3)}, "layout/permuted",
            "rows and columns of a patch exchanged"), 311
    )
    yield C("layout_shifted_token", LLAMA,
        leaf(llama(1).o, lambda o, *_: o.roll(1, 1), "layout/shifted", "one token late"), 312)
    yield C("layout_shifted_column", DIT,
        leaf(dit(2).up, lambda o, *_: o.roll(1, -1), "layout/shifted", "one column late"), 313, dtype="bf16")
    yield C(
        "layout_shifted_max", BERT, leaf(bert(2).norm1, lambda o, *_: o.roll(-1, 1), "layout/shifted",
            "one token early"), 314, names="max", seq=15
    )


def structures():
    C = Case
    rows, columns = f.only_rows, f.only_columns
    yield C(
        "rows_from_8", LLAMA, leaf(llama(0).up, rows(slice(8, None), f.noise(12)), "rows/from", "garbage from row 8",
            where="rows>=8"), 321, seq=12
    )
    yield C(
        "rows_from_16_max",
        LLAMA,
        leaf(llama(2).q, rows(slice(16, None), lambda x: 0 * x), "rows/from", "zero from row 16", where="rows>=16"),
        322,
        names="max",
        seq=20,
    )
    yield C(
        "rows_from_5_dit", DIT, leaf(dit(1).o, rows(slice(5, None), lambda x: x * 1.5), "rows/from",
            "1.5 times from row 5", where="rows>=5"), 323
    )
    yield C(
        "rows_set",
        LLAMA,
        leaf(llama(1).gate, rows(slice(3, None, 4), f.noise(13)), "rows/set", "every fourth row",
            where="rows 3, 7, 11 …"),
        324,
        seq=20,
    )
    yield C(
        "rows_set_one", BERT, leaf(bert(1).down, rows(slice(4, 5), f.noise(14)), "rows/set", "row 4 alone",
            where="row 4"), 325, names="max", seq=12
    )
    yield C(
        "rows_set_one_token",
        LLAMA,
        leaf(llama(2).norm1, rows(slice(0, 1), lambda x: 0 * x), "rows/set", "row 0 is zero", where="row 0"),
        326,
        dtype="bf16",
        names="max",
    )
    yield C(
        "columns_tail",
        LLAMA,
        leaf(llama(0).down, columns(slice(48, None), lambda x: 0 * x), "columns/set", "the last tile is not written",
            where="columns>=48"),
        327,
        seq=6,
    )
    yield C(
        "columns_block",
        BERT,
        leaf(bert(2).up, columns(slice(32, 40), f.noise(15)), "columns/set", "columns 32 to 39", where="columns 32-39"),
        328,
        **PADDED,
    )
    yield C(
        "columns_every",
        DIT,
        leaf(dit(0).up, columns(slice(0, None, 8), f.noise(16)), "columns/set", "every eighth column",
            where="columns 0, 8, 16 …"),
        329,
        names="max",
    )
    one = lambda label, g, id, text: leaf(label, lambda o, *_: g(o), f"value/{id}", text)
    yield C("value_scale_down", LLAMA, one(llama(1).down, lambda x: x * 1.02, "scale", "× 1.02"), 331, seq=11)
    yield C("value_scale_norm", BERT, one(bert(0).norm1, lambda x: x * 0.5, "scale", "× 0.5"), 332, names="max",
        **PADDED)
    yield C("value_scale_f16", LLAMA, one(llama(0).v, lambda x: x * 2, "scale", "× 2"), 333, dtype="f16")
    yield C("value_offset", LLAMA, one(llama(2).norm2, lambda x: x + 0.05, "offset", "+ 0.05"), 334, names="max")
    yield C("value_offset_dit", DIT, one(dit(1).down, lambda x: x - 0.3, "offset", "− 0.3"), 335)
    yield C("value_sign", BERT, one(bert(1).up, lambda x: -x, "sign", "sign exchanged"), 336, batch=2, seq=5)
    yield C("value_sign_max", LLAMA, one(llama(1).o, lambda x: -x, "sign", "sign exchanged"), 337, names="max",
        dtype="bf16")
    yield C("value_constant", LLAMA, one(llama(1).up, lambda x: 0 * x, "constant", "all zero"), 338)
    yield C("value_constant_max", BERT, one(bert(2).v, lambda x: 0 * x + 0.25, "constant", "all 0.25"), 339,
        names="max", seq=9)


def modulations():
    C = Case
    swap = lambda a, b: {"order": lambda m: [m[{a: b, b: a}.get(i, i)] for i in range(len(m))]}
    m = "modulation/order"
    yield C("mod_swap_attn", DIT,
        glue(dit(1).block, swap(0, 1), m, "shift and scale of attention exchanged", [dit(1).attn]), 341)
    yield C("mod_swap_mlp_max", DIT,
        glue(dit(0).block, swap(3, 4), m, "shift and scale of the MLP exchanged", [dit(0).mlp]), 342, names="max")
    yield C("mod_swap_gates", DIT, glue(dit(2).block, swap(2, 5), m, "gates exchanged", [dit(2).norm2]), 343,
        prepare=big_dit, dtype="bf16")
    yield C(
        "mod_swap_final", DIT, glue("model.final_layer", swap(0, 1), m, "shift and scale exchanged",
            ["model.final_layer.linear"]), 344, names="max"
    )
    x = "modulation/missing"
    yield C("mod_one_missing", DIT, glue(dit(1).block, {"one": 0.0}, x, "scale instead of 1 + scale", [dit(1).attn]),
        345)
    yield C(
        "mod_shift_missing",
        DIT,
        glue(dit(0).block, {"order": lambda m: [0 * m[0], *m[1:]]}, x, "no shift before attention", [dit(0).attn]),
        346,
        dtype="f16",
    )
    yield C("mod_gate_missing", DIT,
        glue(dit(2).block, {"order": lambda m: [*m[:5], 0 * m[5] + 1]}, x, "no gate after the MLP"), 347, names="max")
    yield C("mod_final_missing", DIT,
        glue("model.final_layer", {"one": 0.0}, x, "scale instead of 1 + scale", ["model.final_layer.linear"]), 348)
    yield C(
        "mod_time_order",
        DIT,
        glue(
            "model.t_embedder",
            {"sin_first": True},
            m,
            "sine before cosine in the embedding of time",
            ["model.t_embedder.mlp", "model.t_embedder.mlp.0"],
            also_cause=("layout/permuted", "embedding/position"),
        ),
        349,
        note="doubtful id",
    )


def states():
    C = Case
    yield C("stale_down", LLAMA, f.stale(llama(2).down, llama(1).down), 361)
    yield C("stale_act_max", BERT, f.stale(bert(1).act, bert(0).act), 362, names="max", **PADDED)
    yield C("stale_block", DIT, f.stale(dit(2).o, dit(0).o), 363)


def logits():
    C = Case
    tied = lambda w, all_: all_["model.embed_tokens.weight"].clone()
    yield C(
        "tied_wrongly",
        LLAMA,
        f.weights(
            "model.lm_head", tied, "output/tied", "the embeddings instead of the head's own weight",
            also_cause=("config/tie_word_embeddings",)
        ),
        364,
        config={"tie_word_embeddings": False},
    )

    def untied(c):
        c.w["lm_head.weight"] = f.noise(17)(c.w["model.embed_tokens.weight"])

    yield C(
        "untied_random",
        LLAMA,
        f.Bug(untied, "local", "model.lm_head", "output/tied",
            "a head that was never loaded instead of the embeddings"),
        365,
        names="max",
    )
    head = lambda rows, text, **more: glue(
        "model", {"head_rows": rows}, "output/last-token", text, ["model.lm_head"], **more
    )
    yield C("last_token_off_by_one", LLAMA, head(lambda x: x[:, -2:-1], "the logits of the last token but one"), 366,
        names="max", seq=11)
    yield C("last_token_first", LLAMA, head(lambda x: x[:, :1], "the logits of token 0"), 367, seq=8)
    yield C("last_token_repeated", LLAMA,
        head(lambda x: x[:, -1:].expand_as(x), "all rows hold the last token's", where="rows < last"), 368)


def captures():
    C = Case
    yield C("capture_same_file", LLAMA, f.same_file([llama(i).mlp for i in range(4)]), 371, layers=4)
    yield C("capture_same_file_max", BERT, f.same_file([f"{bert(i).block}.intermediate" for i in range(3)]), 372,
        names="max", **PADDED)
    yield C("capture_block", LLAMA, f.wrong_tensor(llama(2).block, f"{llama(1).block}-output"), 373)
    yield C(
        "capture_norm_max",
        LLAMA,
        f.wrong_tensor(llama(1).norm1, f"{llama(1).block}-input_0"),
        374,
        names="max",
        note="alone, the dump is right: inputs are not recorded there",
    )
    blocks = [llama(i).block for i in range(4)]
    states = {"layers": 4, "drop_reference": OUTPUTS_ONLY, "drop": OUTPUTS_ONLY}
    yield C("capture_names_late", LLAMA, f.neighbours(blocks, before="model.model.embed_tokens"), 377, **states)
    yield C("capture_names_early", LLAMA, f.neighbours(blocks, after="model.model.norm"), 378, **states)
    yield C("capture_names_full", LLAMA, f.neighbours(blocks, before="model.model.embed_tokens"), 379, layers=4)
    yield C("capture_last_normed", LLAMA, f.normed(blocks[-1], "model.model.norm"), 380, **states)
    yield C("capture_dit", DIT, f.wrong_tensor(dit(1).act, f"{dit(0).act}-output"), 375)
    yield C("capture_bert_block", BERT, f.wrong_tensor(bert(0).block, f"{bert(0).block}.attention-output"), 376,
        **PADDED)


def inputs():
    C = Case

    def other(ids, row=0, column=3):
        ids = ids.clone()
        ids[row, column] = (ids[row, column] + 17) % 128
        return ids

    w = "model.model.embed_tokens"
    yield C("tokens_llama", LLAMA,
        f.feed(0, other, w, "input/tokens", "another token at position 3", ["model", "model.model"]), 381)
    yield C(
        "tokens_max",
        LLAMA,
        f.feed(0, lambda t: torch.cat([t[:, 1:], t[:, :1]], 1), w, "input/tokens", "no first token",
            ["model", "model.model"]),
        382,
        names="max",
    )
    yield C(
        "tokens_bert",
        BERT,
        f.feed(0, other, "model.embeddings.word_embeddings", "input/tokens", "another token",
            ["model", "model.embeddings"]),
        383,
        names="max",
        **PADDED,
    )
    yield C(
        "time_dit",
        DIT,
        f.feed(
            1, lambda t: t * 0.5, "model.t_embedder", "input/tokens", "another time step", ["model",
                "model.t_embedder.mlp", "model.t_embedder.mlp.0"]
        ),
        384,
        note="doubtful id: there is none for other inputs than tokens and masks",
    )
    ones = lambda m: torch.ones_like(m)
    path = ["model", "model.encoder", bert(0).block, f"{bert(0).block}.attention"]
    yield C("mask_input_ones", BERT, f.feed(1, ones, bert(0).attn, "input/mask", "the mask has no padding", path), 385,
        **PADDED)
    yield C(
        "mask_input_max",
        BERT,
        f.feed(1, lambda m: m.flip(0), bert(0).attn, "input/mask", "masks of the two prompts exchanged", path),
        386,
        names="max",
        batch=2,
        seq=8,
        pad=(0, 4),
    )


def configs():
    C = Case
    fewer = glue("model.model", {"layers": 3}, "config/num_hidden_layers", "the last block does not run",
        ["model.model.norm"])
    yield C("config_layers", LLAMA, fewer, 391, layers=4)
    fewer = dataclasses.replace(
        glue("model.model", {"layers": 4}, "config/num_hidden_layers", "the last block does not run",
            ["model.model.norm"]),
        layer="model",
        also=("model.model", "model.model.norm"),
    )
    yield C("config_layers_max", LLAMA, fewer, 392, names="max", layers=5)
    eps = dataclasses.replace(
        f.everywhere([f.norm_eps(x, 1e-2) for i in range(3) for x in (llama(i).norm1, llama(i).norm2)]),
        cause="norm/eps",
        also_cause=("config/rms_norm_eps",),
    )
    yield C("config_eps", LLAMA, eps, 393, names="max", config={"rms_norm_eps": 1e-5})
    yield C(
        "config_residual",
        LLAMA,
        f.everywhere(
            [
                glue(
                    llama(i).block,
                    {"multiplier": 1.0},
                    "config/residual_multiplier",
                    "residual_multiplier ignored",
                    [llama(i).norm2],
                    also_cause=("residual/scale",),
                )
                for i in range(4)
            ]
        ),
        394,
        config={"residual_multiplier": 0.5},
        layers=4,
        names="max",
    )


def accumulations():
    C = Case

    def noisy(size, ends):
        def plant(c):
            for n, label in enumerate(x for x in list(c.layers) if x.endswith(ends)):
                c.wrap(label, f.perturb(n, size))

        return plant

    drift = lambda size, kind, first, *ends: f.Bug(
        noisy(size, ends), kind, first, "dtype/downcast", "what layers put out is rounded to fewer bits than the run says",
        where="grows with depth", also_cause=("drift",)
    )
    blocks = [f"layers.{i}" for i in range(12)]
    yield C("drift_blocks", LLAMA, drift(2e-4, "between", llama(0).block, *blocks), 401, layers=6,
        note="each block's output is rounded to about 11 bits")
    yield C("drift_blocks_bert", BERT, drift(2e-4, "between", bert(0).block, *[f"layer.{i}" for i in range(8)]), 402, layers=8, names="max",
        **PADDED)
    yield C("drift_linears", LLAMA, drift(2e-4, "local", llama(0).q, "_proj"), 403, layers=12, names="max",
        note="every matrix product at 2e-4: reduced-precision float32")


def interactions():
    C = Case
    last = f.only_rows(slice(8, None), f.noise(18))
    yield C("interaction_rows", LLAMA,
        f.assembled(llama(1).gate, last, "rows from 8 wrong in the assembled graph", "rows>=8"), 411, seq=14)
    yield C("interaction_max", LLAMA,
        f.assembled(llama(2).o, lambda o, *_: 0 * o, "zero in the assembled graph", "all"), 412, names="max")
    yield C("interaction_dit", DIT,
        f.assembled(dit(1).up, lambda o, *_: o.roll(1, 1), "shifted in the assembled graph", "all"), 413)
    yield C(
        "interaction_bert",
        BERT,
        f.assembled(bert(1).norm2, f.only_columns(slice(16, 32), f.noise(19)),
            "columns 16 to 31 in the assembled graph", "columns 16-31"),
        414,
        **PADDED,
    )


def both(first, second):
    def plant(c):
        first.plant(c), second.plant(c)

    return dataclasses.replace(first, plant=plant)


def pairs():
    """Two bugs: the first is the answer, the second is also planted."""
    C = Case

    def case(name, family, a, b, seed, **more):
        return C(name, family, both(a, b), seed, second=b.layer, second_cause=b.cause, **more)

    yield case(
        "two_act_scale", BERT, f.activation(bert(0), "relu", "relu"), attention(bert(2), "attention/scale", "no scale",
            scale=1.0), 421, **PADDED
    )
    yield case(
        "two_rope_bias",
        LLAMA,
        attention(llama(0), "rope/layout", "pairs", layout="interleaved", where="rows>=1"),
        f.transposed(llama(2).o),
        422,
        names="max",
    )
    yield case(
        "two_mod_residual",
        DIT,
        glue(dit(0).block, {"one": 0.0}, "modulation/missing", "scale instead of 1 + scale", [dit(0).attn]),
        glue(dit(2).block, {"residual1": lambda x: 0 * x}, "residual/missing", "no residual", [dit(2).norm2]),
        423,
    )
    yield case("two_same_block", LLAMA, f.transposed(llama(1).q), f.activation(llama(1), "gelu", "gelu"), 424)
    yield case(
        "two_norm_head",
        LLAMA,
        f.norm_weight(llama(1).norm1),
        leaf("model.lm_head", f.only_columns(slice(64, None), lambda x: 0 * x), "columns/set", "half of the logits"),
        425,
        names="max",
        dtype="f16",
    )


def cases():
    groups = (
        clean,
        activations,
        norms,
        residuals,
        scales_and_masks,
        causality,
        heads,
        sinks,
        broken_heads,
        rotations,
        linears,
        gates,
        quantisations,
        embeddings,
        types,
        layouts,
        structures,
        modulations,
        states,
        logits,
        captures,
        inputs,
        configs,
        accumulations,
        interactions,
        pairs,
    )
    found = [case for group in groups for case in group()]
    assert len({c.name for c in found}) == len(found), "two cases of one name"
    return found
