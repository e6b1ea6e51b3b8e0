"""path_models.py DIR KIND: a random model of two layers, the same at each call, whose rows depend on more than the tokens before them.

llama, mistral (with a window of 4): they do not. ntk, longrope: the angles depend on the length. capacity: a layer computes the first
tokens of a forward pass alone, as experts of bounded capacity do.
"""

import json
import os
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Phi3Config, Phi3ForCausalLM

folder, kind = sys.argv[1:]
sizes = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             bos_token_id=0, eos_token_id=1, pad_token_id=2, dtype="float32")  # fmt: skip
if kind == "longrope":
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 8, "long_factor": [4.0] * 8, "original_max_position_embeddings": 8}
    make, settings = Phi3ForCausalLM, Phi3Config(**sizes, max_position_embeddings=64, original_max_position_embeddings=8, rope_parameters=rope)
elif kind == "mistral":
    make, settings = MistralForCausalLM, MistralConfig(**sizes, max_position_embeddings=64, sliding_window=4)
else:
    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0} if kind == "ntk" else {"rope_type": "default", "rope_theta": 10000.0}
    make, settings = LlamaForCausalLM, LlamaConfig(**sizes, max_position_embeddings=8 if kind == "ntk" else 64, rope_parameters=rope)
torch.manual_seed(0)
model = make(settings)
model.load_state_dict({n: torch.randn_like(p) * 0.1 + 1 if "norm" in n else torch.randn_like(p) * 0.3 for n, p in model.state_dict().items()})
model.save_pretrained(folder)
if kind == "capacity":
    with open(os.path.join(folder, "modeling_capacity.py"), "w") as f:
        f.write('''from transformers import LlamaForCausalLM


class CapacityForCausalLM(LlamaForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        for layer in self.model.layers:
            layer.mlp.register_forward_hook(drop)


def drop(module, args, output):
    kept = output.clone()
    kept[:, 4:] = 0
    return kept
''')
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        about = json.load(f)
    about |= {"architectures": ["CapacityForCausalLM"], "auto_map": {"AutoModelForCausalLM": "modeling_capacity.CapacityForCausalLM"}}
    with open(path, "w") as f:
        json.dump(about, f)
