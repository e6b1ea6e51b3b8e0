"""Names of other engines: what a layer is in the reference's words → the same in their own."""

import hashlib
import re

# What a part of a name is, by the word for it in Hugging Face's models.
ROLES = {
    "block": ("layers", "layer", "blocks", "block", "h"),
    "encoder": ("encoder",),
    "decoder": ("decoder",),
    "attn": ("self_attn", "attention", "attn", "SelfAttention"),
    "cross": ("encoder_attn", "EncDecAttention"),
    "core": ("self",),
    "q": ("q_proj", "query", "q"),
    "k": ("k_proj", "key", "k"),
    "v": ("v_proj", "value", "v"),
    "qkv": ("qkv", "qkv_proj", "c_attn", "query_key_value"),
    "o": ("o_proj", "out_proj", "proj", "o"),
    "mlp": ("mlp", "DenseReluDense", "intermediate"),
    "gate": ("gate_proj", "wi_0"),
    "up": ("up_proj", "fc1", "c_fc", "dense_h_to_4h", "wi_1"),
    "gate_up": ("gate_up_proj",),
    "down": ("down_proj", "fc2", "dense_4h_to_h", "wo"),
    "dense": ("dense", "linear"),
    "out": ("output",),
    "act": ("act_fn", "act", "activation_fn", "intermediate_act_fn", "activation"),
    "norm1": ("input_layernorm", "norm1", "ln_1", "layer_norm1", "layernorm_before", "self_attn_layer_norm"),
    "norm2": ("post_attention_layernorm", "norm2", "ln_2", "layer_norm2", "layernorm_after", "final_layer_norm"),
    "norm": ("norm", "LayerNorm", "layer_norm", "norm_f", "ln_f", "layernorm", "norm_final"),
    "embed": ("embed_tokens", "word_embeddings", "wte", "embed_in", "x_embedder"),
    "place": ("position_embeddings", "wpe", "embed_positions", "position_embedding"),
    "rope": ("rotary_emb",),
    "head": ("lm_head", "embed_out"),
    "router": ("gate", "router"),
    "experts": ("experts",),
}
ROLE = {word: role for role, words in ROLES.items() for word in words}

# The prefix of all names, and a word for each role. Roles that a vocabulary lacks, and what has no role, get words of
# no language.
GPT2 = ("transformer.", dict(
    block="h", attn="attn", cross="crossattention", core="heads", q="c_q", k="c_k", v="c_v", qkv="c_attn", o="c_proj",
    mlp="mlp", gate="c_gate", up="c_fc", gate_up="c_fc_gate", down="c_proj_out", dense="c_dense", out="resid", act="act",
    norm1="ln_1", norm2="ln_2", norm="ln_f", embed="wte", place="wpe", head="lm_head", router="c_router", experts="moe",
))  # fmt: skip
HOME = ("net.", dict(
    block="stage", encoder="reader", decoder="writer", attn="mix", cross="look", core="heads", q="query", k="memory",
    v="content", qkv="triple", o="merge", mlp="ffn", gate="valve", up="expand", gate_up="widen", down="shrink",
    dense="affine", out="tail", act="bend", norm1="pre", norm2="mid", norm="scale", embed="lookup", place="where",
    rope="turn", head="vocab", router="chooser", experts="crowd",
))  # fmt: skip
FLAT = ("", dict(
    encoder="enc", decoder="dec", attn="attn", cross="xattn", core="sdp", q="q", k="k", v="v", qkv="qkv", o="wo",
    mlp="ffn", gate="w1", up="w3", gate_up="w13", down="w2", dense="lin", out="res", act="act", norm1="ln1", norm2="ln2",
    norm="final", embed="tok", place="pos", rope="rot", head="logits", router="route", experts="moe",
))  # fmt: skip


def made_up(word, syllables=3):
    digest = hashlib.sha256(word.encode()).digest()
    return "".join("bdfgklmnprstvz"[digest[2 * i] % 14] + "aeiou"[digest[2 * i + 1] % 5] for i in range(syllables))


def say(vocabulary, label, first=0, flat=False):
    """A label of the reference in other words. Blocks are counted from first."""
    prefix, words = vocabulary
    if not (parts := re.sub(r"^model\.(model\.(?!$))?", "", label).split(".")) or label == "model":
        return prefix + "all" if flat else prefix.rstrip(".")
    out, blocks = [], 0
    for i, part in enumerate(parts):
        if part.isdigit():
            block = i and ROLE.get(parts[i - 1]) == "block" and not blocks
            number = int(part) + (first if block else 0)
            if not flat:
                out.append(str(number))
            elif block:
                out[-1] = f"L{number}"
            else:
                out[-1] += str(number)
            blocks += bool(block)
        else:
            out.append(words.get(ROLE.get(part)) or made_up(part))
    return prefix + ("_" if flat else ".").join(out)


def rename(labels, speak):
    """A name for each label, all different: where two would be equal, the later one's end is made up."""
    out, taken = {}, set()
    for label in labels:
        said = speak(label)
        if said in taken:
            said += "_" + made_up(label)
        if said in taken:
            raise ValueError(f"two layers are called {said}")
        taken.add(said)
        out[label] = said
    return out
