"""The table of cases: clean runs of all architectures, rewrites, bugs."""

import dataclasses
import zlib

import bugs
import field
import graphs
import rewrites
from archs import ARCHS


@dataclasses.dataclass
class Case:
    name: str
    arch: str
    dtype: str = "bf16"  # of the candidate
    reference: str = "f32"
    islands: tuple = ()  # names of islands.py
    rewrite: object = None  # changes the float32 model, see rewrites.py
    bug: object = None  # see bugs.py
    config: dict = dataclasses.field(default_factory=dict)  # on top of the architecture's
    steps: int = 1
    batch: int = 1
    pad: tuple = ()
    layers: int = 0  # 0: as the architecture has
    prepare: str = ""  # massive, sink or ties, see weights.py
    keep: str = "all"  # norope: neither tables nor masks nor positions, as MAX; outputs
    ask: object = None  # changes what the candidate is asked
    encoding: bool = True  # whether the candidate's run.json names it

    def asked(self, feed):
        return dataclasses.replace(feed, steps=[type(x)(self.ask(x)) for x in feed.steps]) if self.ask else feed

    def seed(self, seed):
        return zlib.crc32(self.name.encode()) % 100003 + 1000003 * seed


# What a family can have of islands.py. Those that are not named here have logits of a head, norms and activations.
FULL = "logits32 norms32 residual32 sums32 attention32 rope32 head32 context32 root32 activations32".split()
EXPERTS = ["router32", "logits32", "residual32", "sums32", "attention32", "root32"]
HAVE = {
    **dict.fromkeys(["llama", "llama3", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "granite", "neox", "phi", "phi3", "olmo",
                     "olmo2", "stablelm", "cohere", "cohere2", "starcoder2", "glm4", "smollm3", "exaone4"], FULL),
    "nemotron": ["residual32", "norms32", "logits32"],
    **dict.fromkeys(["mixtral", "qwen2moe", "qwen3moe", "olmoe", "deepseek3", "deepseek2", "gptoss"], EXPERTS),
    "granitemoe": ["logits32", "residual32", "attention32"],
    "gpt2": ["residual32", "logits32", "norms32", "sums32", "attention32"],
    "gptj": ["residual32", "head32"],
    "opt": ["residual32", "norms32", "logits32"],
    "bloom": ["norms32", "head32"],
    "falcon": ["attention32", "logits32"],
    "lfm2": ["norms32", "residual32"],
    "qwen2vl": ["residual32", "norms32", "sums32"],
    "mamba": ["residual32", "logits32", "activations32"],
    "mamba2": ["state32", "norms32", "head32"],
    "falconmamba": ["residual32", "root32"],
    "bert": ["norms32", "attention32"],
    "roberta": ["context32", "norms32"],
    "distilbert": ["norms32", "attention32"],
    "albert": ["norms32"],
    "modernbert": ["norms32", "rope32"],
    "vit": ["norms32", "attention32"],
    "clipv": ["norms32", "context32"],
    "siglip": ["attention32", "root32"],
    "dinov2": ["norms32", "attention32"],
    "t5": ["norms32", "residual32", "sums32"],
    "bart": ["norms32", "attention32", "logits32"],
    "whisper": ["norms32", "attention32"],
    **dict.fromkeys(["unet", "mpt", "rwkv", "qwen3next"], []),
}  # fmt: skip
NO_SDPA = {"unet", "mpt", "rwkv", "gemma2", "gptoss", "gptj", "bloom", "nemotron", "mamba", "mamba2", "falconmamba", "t5"}
KEEPS = ["all", "norope", "all", "outputs", "norope", "all"]


def clean():
    out = []

    def add(name, arch, **more):
        out.append(Case(f"clean_{name}", arch, **more))

    for i, (arch, a) in enumerate(ARCHS.items()):
        decode = {"steps": 3} if a.kind == "causal" and i % 3 == 0 else {}
        add(f"{arch}_bf16" + "_decode" * bool(decode), arch, **decode, keep=KEEPS[i % 6], encoding=i % 7 != 3)
        padded = {"pad": (0, 3)} if a.kind in ("causal", "encoder", "seq2seq") and "mamba" not in arch and i % 4 == 1 else {}
        add(f"{arch}_f16" + "_padded" * bool(padded), arch, dtype="f16", **padded, encoding=i % 7 != 5)
        have = HAVE[arch]
        for j in range(min(2, len(have))):  # two kinds of islands each; all kinds among all architectures
            island = have[(2 * i + j) % len(have)]
            dtype = "f16" if (i + j) % 4 == 3 else "bf16"
            more = {"steps": 3} if a.kind == "causal" and (i + j) % 5 == 2 else {}
            if a.kind != "causal" and (i + j) % 3 == 0:
                more["batch"] = 2
            add(f"{arch}_{dtype}_{island}" + "_decode" * ("steps" in more), arch, dtype=dtype, islands=(island,), **more,
                keep=KEEPS[(i + 3 * j) % 6], encoding=(i + j) % 6 != 1)  # fmt: skip
        if i % 3 == 1 and arch not in NO_SDPA:
            add(f"{arch}_f32_sdpa", arch, dtype="f32", islands=("sdpa",), keep=KEEPS[i % 4])
        if i % 4 == 2 and arch not in NO_SDPA:
            add(f"{arch}_both_bf16_sdpa", arch, reference="bf16", islands=("sdpa",))
    for arch, island in [("llama", "logits32"), ("qwen3", "norms32"), ("mixtral", "router32"), ("gemma2", "residual32"), ("phi3", "sums32"),
                         ("mamba2", "head32")]:  # fmt: skip
        add(f"{arch}_both_bf16_{island}_decode", arch, reference="bf16", islands=(island,), steps=2)
    for arch, island in [("llama", ("norms32", "logits32")), ("qwen2", ("sums32", "head32")), ("mixtral", ("residual32", "router32")),
                         ("qwen3", ("rope32", "root32")), ("gemma3", ("residual32", "logits32")), ("gpt2", ("sums32", "head32"))]:  # fmt: skip
        add(f"{arch}_bf16_{'_'.join(island)}", arch, islands=island, steps=2)
    for arch, layers in [("llama", 8), ("qwen3", 12), ("gemma2", 6), ("gpt2", 8), ("mixtral", 6), ("mamba", 8), ("bert", 8), ("t5", 6)]:
        add(f"{arch}_bf16_{layers}_blocks", arch, layers=layers, islands=("residual32",) if arch == "qwen3" else ())
    for arch in ["llama", "qwen2", "gpt2", "neox", "olmo", "phi3"]:
        add(f"{arch}_bf16_massive", arch, prepare="massive", keep=KEEPS[len(arch) % 6])
    for arch in ["llama", "qwen3", "mistral"]:
        add(f"{arch}_bf16_sink", arch, prepare="sink", layers=4)
    add("llama_f16_massive_residual32", "llama", dtype="f16", prepare="massive", islands=("residual32",))
    for arch in ["mixtral", "qwen3moe", "gptoss", "deepseek3", "olmoe", "granitemoe"]:
        add(f"{arch}_bf16_ties", arch, prepare="ties", layers=3)
    add("mixtral_f16_ties_router32", "mixtral", dtype="f16", prepare="ties", islands=("router32",), layers=4)
    add("qwen2moe_f32_ties_sdpa", "qwen2moe", dtype="f32", prepare="ties", islands=("sdpa",))
    for arch in ["llama", "gpt2"]:
        add(f"{arch}_both_f16_attention32", arch, dtype="f16", reference="f16", islands=("attention32",))
    add("llama_bf16_batch_padded_decode", "llama", pad=(0, 4, 2), steps=3)
    add("qwen3next_bf16_decode", "qwen3next", steps=4)
    add("gemma3_bf16_padded_decode_sdpa", "gemma3", pad=(3, 0), steps=3, islands=("sdpa",))
    return out


def rewritten():
    return [Case(f"rewrite_{n}", **about) for n, about in rewrites.TABLE.items()]


def faulty():
    return [Case(f"{kind}_{n}", **about) for kind, table in (("bug", bugs.TABLE), ("field", field.TABLE), ("graph", graphs.TABLE)) for n, about in table.items()]


def cases():
    out = clean() + rewritten() + faulty()
    assert len({c.name for c in out}) == len(out)
    return out
