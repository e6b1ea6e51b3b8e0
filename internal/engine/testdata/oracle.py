"""Two blocks x + down(silu(up(norm(x)))), in torch and in MAX, with the same weights."""

from goparity import parity_tap

VOCAB, WIDTH, BLOCKS, EPS = 64, 32, 2, 1e-6


def build():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.RMSNorm(WIDTH, eps=EPS)
            self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
            self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x):
            return x + self.down(nn.functional.silu(self.up(self.norm(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(VOCAB, WIDTH)
            self.layers = nn.ModuleList([Block() for _ in range(BLOCKS)])
            self.norm = nn.RMSNorm(WIDTH, eps=EPS)

        def forward(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x)
            return self.norm(parity_tap(x, "hidden"))

    torch.manual_seed(0)
    return Model()


def reference(spec):
    return build()


def candidate(spec):
    import numpy as np
    from max.dtype import DType
    from max.graph import DeviceRef, TensorType, ops
    from max.nn import Embedding, LayerList, Linear, Module, RMSNorm

    device = DeviceRef.CPU() if spec.device == "cpu" else DeviceRef.GPU()

    class Block(Module):
        def __init__(self):
            super().__init__()
            self.norm = RMSNorm(WIDTH, DType.float32, EPS)
            self.up = Linear(WIDTH, 4 * WIDTH, DType.float32, device)
            self.down = Linear(4 * WIDTH, WIDTH, DType.float32, device)

        def __call__(self, x):
            return x + self.down(ops.silu(self.up(self.norm(x))))

    class Model(Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = Embedding(VOCAB, WIDTH, DType.float32, device)
            self.layers = LayerList([Block() for _ in range(BLOCKS)])
            self.norm = RMSNorm(WIDTH, DType.float32, EPS)

        def __call__(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x)
            return self.norm(parity_tap(x, "hidden"))

    weights = {name: p.detach().numpy() for name, p in build().state_dict().items()}
    ids = np.array(spec.token_ids, dtype=np.int64)
    return Model(), weights, [TensorType(DType.int64, ids.shape, device)], [ids]
