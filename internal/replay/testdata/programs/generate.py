"""Records tiny models whole: their programs, weights, and what torch had at every port.

    .venv/bin/python internal/replay/testdata/programs/generate.py
"""

import pathlib
import re
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2] / "engine" / "runner"))
from goparity import torchhooks  # noqa: E402
from goparity.program import Recorder  # noqa: E402

SIZES = {"vocab_size": 24, "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
         "num_hidden_layers": 1}  # fmt: skip


class Speech(nn.Module):
    """Convolutions, norms of channels, gates, and a state that is written in place."""

    def __init__(self):
        super().__init__()
        self.down, self.norm = nn.Conv1d(3, 8, 5, stride=2, padding=2), nn.GroupNorm(2, 8)
        self.wide, self.batch, self.narrow = nn.Conv1d(8, 16, 3, padding=1, groups=8), nn.BatchNorm1d(8), nn.Conv1d(8, 8, 1)
        self.gru, self.out = nn.Linear(8, 24), nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.down(x)))
        x = x + self.narrow(nn.functional.silu(self.batch(nn.functional.glu(self.wide(x), 1))))
        states = x.new_zeros(x.shape[0], x.shape[2] + 1, 8)
        for i in range(x.shape[2]):
            a, b, c = self.gru(x[..., i]).chunk(3, -1)
            states[:, i + 1] = torch.lerp(states[:, i] * torch.sigmoid(a), torch.tanh(b), torch.sigmoid(c))
        return torch.log_softmax(self.out(states[:, 1:].cumsum(1)), -1)


def randomized(model):
    g = torch.Generator().manual_seed(1)
    for p in [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point() and b.numel() > 8)]:
        p.data.copy_(torch.randn(p.shape, generator=g) * 0.4 + (p.ndim == 1))
    return model.eval()


def decoded(model):
    ids = torch.arange(7)[None] * 5 % 24
    out = model(input_ids=ids, use_cache=True)
    model(input_ids=torch.tensor([[3]]), past_key_values=out.past_key_values, use_cache=True)


CASES = {
    "llama": (lambda: LlamaForCausalLM(LlamaConfig(**SIZES)), decoded),
    "llama-bf16": (lambda: LlamaForCausalLM(LlamaConfig(**SIZES)).to(torch.bfloat16), lambda model: model(input_ids=torch.arange(6)[None], use_cache=False)),
    "mixtral": (
        lambda: MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=3)),
        lambda model: model(input_ids=torch.arange(12)[None] * 5 % 24, use_cache=False),
    ),
    "speech": (Speech, lambda model: model(torch.randn(2, 3, 10, generator=torch.Generator().manual_seed(2)))),
}


def tensors(model, run):
    """What every port has in each pass, in a second run."""
    recorder, records, passes = torchhooks.Recorder(model), {}, 0

    def ended(*_):
        nonlocal passes
        records.update({f"{passes}/{layer}-{port}": t.detach().clone(memory_format=torch.contiguous_format) for layer, port, t in recorder.take()})
        passes += 1

    handle = model.register_forward_hook(ended)
    run(model)
    handle.remove()
    recorder.remove()
    return records


def write(name, model, run):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    with Recorder(model, case=name, frames=None) as recorder:
        run(model)
    recorder.save(folder)
    file = folder / "program.json"
    file.write_text(re.sub(r'"modules":\{.*\}', '"modules":{}', file.read_text()))
    save_file(tensors(model, run), folder / "ports.safetensors")
    save_file({n: p.detach().clone() for n, p in model.state_dict().items() if p.ndim}, folder / "weights.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    for name, (make, run) in CASES.items():
        write(name, randomized(make()), run)
