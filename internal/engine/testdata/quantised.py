"""quantised.py DIR TYPE…: a random Llama of width 256 with a byte tokenizer, and DIR/TYPE.gguf of each type, all matrices quantised.

TYPE*NAME is DIR/TYPE-wrong.gguf, in which one weight is a quarter too large.

q4_k and q6_k are written here, by the public layout of their blocks: gguf-py only reads them.
"""

import sys

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

QK = 256  # elements of a block


def _times(scale):
    """1/scale, and 0 for 0."""
    return np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)


def q4_k(rows):
    """d e sm[12] q[128]: (d·s)·q − e·m in groups of 32, s and m of 6 bits."""
    x = rows.reshape(-1, 8, 32).astype(np.float32)
    least = np.maximum(-x.min(-1), 0)
    step = (x.max(-1) + least) / 15
    d, e = ((v.max(-1) / 63).astype(np.float16) for v in (step, least))
    s = np.clip(np.rint(step * _times(d.astype(np.float32))[:, None]), 0, 63).astype(np.uint8)
    m = np.clip(np.rint(least * _times(e.astype(np.float32))[:, None]), 0, 63).astype(np.uint8)
    scale, low = d.astype(np.float32)[:, None] * s, e.astype(np.float32)[:, None] * m
    q = np.clip(np.rint((x + low[..., None]) * _times(scale)[..., None]), 0, 15).astype(np.uint8)
    sm = np.empty((len(x), 12), np.uint8)
    sm[:, :4] = s[:, :4] | s[:, 4:] >> 4 << 6
    sm[:, 4:8] = m[:, :4] | m[:, 4:] >> 4 << 6
    sm[:, 8:] = s[:, 4:] & 15 | m[:, 4:] << 4
    pairs = q.reshape(-1, 4, 2, 32)
    codes = (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(-1, 128)
    return np.concatenate([d[:, None].view(np.uint8), e[:, None].view(np.uint8), sm, codes], 1)


def q6_k(rows):
    """q[128] h[64] s[16] d: (d·s)·(q − 32) in groups of 16, s of 8 bits."""
    x = rows.reshape(-1, 16, 16).astype(np.float32)
    step = np.abs(x).max(-1) / 31
    d = (step.max(-1) / 127).astype(np.float16)
    s = np.clip(np.rint(step * _times(d.astype(np.float32))[:, None]), 0, 127).astype(np.int8)
    scale = d.astype(np.float32)[:, None] * s
    q = (np.clip(np.rint(x * _times(scale)[..., None]), -32, 31) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    low, high = q & 15, q >> 4
    codes = np.stack([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], 2).reshape(-1, 128)
    bits = (high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6).reshape(-1, 64)
    return np.concatenate([codes, bits, s.view(np.uint8), d[:, None].view(np.uint8)], 1)


def quantised(kind, w):
    own = {"q4_k": q4_k, "q6_k": q6_k}.get(kind)
    of = gguf.GGMLQuantizationType[kind.upper()]
    if own is None:
        return gguf.quants.quantize(w, of), of
    data = own(w).reshape(w.shape[0], -1)
    error = np.linalg.norm(gguf.quants.dequantize(data, of) - w) / np.linalg.norm(w)
    assert error < 0.1, f"{kind}: {error}"
    return data, of


def write(path, kind, model, config, wrong):
    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_dimension_count(config.head_dim)
    out.add_rope_freq_base(10000.0)
    out.add_vocab_size(config.vocab_size)
    out.add_tokenizer_model("none")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, w in model.state_dict().items():
        w = w.numpy() * (1.25 if name == wrong else 1)
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in name:
                w = w.reshape(heads, 2, w.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)
        data, of = (w, None) if w.ndim == 1 else quantised(kind, w)
        out.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), data, raw_dtype=of)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


folder, kinds = sys.argv[1], sys.argv[2:]
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=320, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=64,
    max_position_embeddings=256, bos_token_id=0, eos_token_id=1, pad_token_id=2, tie_word_embeddings=False, dtype="float32")  # fmt: skip
model = LlamaForCausalLM(config)
model.load_state_dict({n: torch.randn_like(p) * 0.1 + 1 if "norm" in n else torch.randn_like(p) * 0.06 for n, p in model.state_dict().items()})
model.save_pretrained(folder)
for kind in kinds:
    kind, _, wrong = kind.partition("*")
    write(f"{folder}/{kind}{'-wrong' if wrong else ''}.gguf", kind, model, config, wrong)

letters = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {t: i for i, t in enumerate(["<s>", "</s>", "<pad>", *letters])}
tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=128).save_pretrained(
    folder
)
