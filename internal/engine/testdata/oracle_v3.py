"""The blocks of oracle.py with the port written as a module of max.experimental.nn. Batch and length are open in its graph."""

from oracle import BLOCKS, EPS, VOCAB, WIDTH, build, reference

from goparity import parity_tap

__all__ = ["candidate", "reference"]


def candidate(spec):
    import numpy as np
    from max.driver import CPU, Accelerator
    from max.dtype import DType
    from max.experimental import functional as F
    from max.experimental.nn import Embedding, Linear, Module
    from max.experimental.nn.norm import RMSNorm
    from max.experimental.nn.sequential import ModuleList
    from max.graph import DeviceRef, TensorType

    class Block(Module):
        def __init__(self):
            self.norm = RMSNorm(WIDTH, EPS)
            self.up = Linear(WIDTH, 4 * WIDTH, bias=False)
            self.down = Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x):
            return x + self.down(F.silu(self.up(self.norm(x))))

    class Model(Module):
        def __init__(self):
            self.embed_tokens = Embedding(VOCAB, dim=WIDTH)
            self.layers = ModuleList([Block() for _ in range(BLOCKS)])
            self.norm = RMSNorm(WIDTH, EPS)

        def forward(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x)
            return self.norm(parity_tap(x, "hidden"))

    cpu = spec.device == "cpu"
    weights = {name: p.detach().numpy() for name, p in build().state_dict().items()}
    ids = np.array(spec.token_ids, dtype=np.int64)
    with F.lazy():  # else each random weight would be computed first, by a graph of its own
        model = Model().to(CPU() if cpu else Accelerator())
    return model, weights, [TensorType(DType.int64, ["batch", "length"], DeviceRef.CPU() if cpu else DeviceRef.GPU())], [ids]
