"""tiny_llama.py DIR [drop NAME | cut NAME | integers NAME | scale NAME FACTOR | theta N]: a random Llama of 4 layers with a byte tokenizer, the same at each call."""

import sys

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder, change = sys.argv[1], sys.argv[2:]
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=320, hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=256, bos_token_id=0, eos_token_id=1, pad_token_id=2, tie_word_embeddings=False, dtype="float32"))  # fmt: skip
weights = {n: torch.randn_like(p) * 0.1 + 1 if "norm" in n else torch.randn_like(p) * 0.08 for n, p in model.state_dict().items()}
if change and change[0] == "scale":
    weights[change[1]] *= float(change[2])
model.load_state_dict(weights)
if change and change[0] == "theta":
    model.config.rope_parameters["rope_theta"] = float(change[1])
model.save_pretrained(folder)
if change and change[0] in ("drop", "cut", "integers"):
    if change[0] == "drop":
        del weights[change[1]]
    else:
        w = weights[change[1]]
        weights[change[1]] = w[:-1].clone() if change[0] == "cut" else w.to(torch.int32)
    save_file(weights, f"{folder}/model.safetensors", {"format": "pt"})

letters = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {t: i for i, t in enumerate(["<s>", "</s>", "<pad>", *letters])}
tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=128).save_pretrained(
    folder
)
