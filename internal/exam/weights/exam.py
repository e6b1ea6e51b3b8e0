"""Asks `parity weights` about pairs of checkpoints, healthy and with one planted fault, whose answers are known.

exit 0 and the step named where the pair is healthy; exit 1 (3 where a part is missing) and the tensor named where it
is not.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file

import formats
import models
import pairs


class Exam:
    def __init__(self, parity, match, keep):
        self.parity, self.match, self.keep = parity, match, keep
        self.n, self.wrong = 0, []

    def ask(self, name, write, want, step="", tensors=(), mention=""):
        """write(dir) makes ref and cand in dir and returns their paths. tensors are those that must be accused, and no others."""
        if self.match not in name:
            return
        self.n += 1
        d = tempfile.mkdtemp(prefix="wx")
        try:
            ref, cand = write(d)
            out = os.path.join(d, "out.json")
            p = subprocess.run([self.parity, "weights", ref, cand, "--json", out], capture_output=True, text=True)
            got = json.load(open(out)) if os.path.exists(out) else {"weights": []}
            bad = [w for w in got["weights"] if w["status"] in ("differs", "missing", "unused")]
            why = []
            if p.returncode not in (want if isinstance(want, tuple) else (want,)):
                why.append(f"exit {p.returncode}, want {want}")
            if step and not any(step in s for w in got["weights"] for s in w.get("steps", [])) and step not in [w["status"] for w in got["weights"]]:
                why.append(f"step {step!r} not named, but {sorted({', '.join(w.get('steps', [])) for w in got['weights']})}")
            names = [f"{w.get('reference', '')} {w.get('candidate', '')}" for w in bad]
            said = p.stdout + p.stderr
            for t in tensors:
                if not any(t in n for n in names) and not (p.returncode == 3 and t in said):
                    why.append(f"{t} not named")
            whole = {w.get("reference", "").split("[")[0] + w.get("candidate", "").split("[")[0] for w in bad}
            if want == 1 and len(whole) > len(tensors):
                why.append(f"{len(bad)} accused")
            if mention and mention not in said:
                why.append(f"{mention!r} not said")
            if why:
                self.wrong.append(name)
                print(f"FAIL {name}: {'; '.join(why)}")
                for w in bad[:4]:
                    print("    ", {k: v for k, v in w.items() if k != "metrics"})
                if not bad or p.returncode == 3:
                    print("    ", said[:400].replace("\n", " | "))
            else:
                print(f"ok   {name}")
        finally:
            if self.keep and self.wrong and self.wrong[-1] == name:
                shutil.copytree(d, os.path.join(self.keep, name.replace("/", "_").replace(" ", "_")), dirs_exist_ok=True)
            shutil.rmtree(d)


def write_side(d, name, sd, config):
    path = os.path.join(d, name)
    os.makedirs(path)
    save_file({k: v.contiguous() for k, v in sd.items()}, os.path.join(path, "model.safetensors"))
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f, default=str)
    return path


def both(ref, cand, config, cand_config=None):
    return lambda d: (write_side(d, "ref", ref, config), write_side(d, "cand", cand, cand_config or config))


def matrices(sd):
    return [k for k, v in sd.items() if v.ndim == 2 and "norm" not in k.lower()]


def layers_of(sd):
    """Two matrices of the same role in different layers."""
    for k in matrices(sd):
        for m, n in ((".0.", ".1."), (".1.", ".2.")):
            if m in k and (o := k.replace(m, n, 1)) in sd and sd[o].shape == sd[k].shape:
                return k, o
    return None


def converters(exam):
    for name in models.MODELS:
        sd, config, arch = models.make(name)
        exam.ask(f"{name}/same", both(sd, sd, config), 0, "")
        half = {k: v.bfloat16() if v.is_floating_point() else v for k, v in sd.items()}
        exam.ask(f"{name}/bf16", both(sd, half, config), 0, "cast")
        exam.ask(f"{name}/prefix", both(sd, pairs.prefixed(sd), config), 0)
        if any(".q_proj." in k for k in sd) and name not in ("whisper", "deepseek3", "gptj", "opt"):
            exam.ask(f"{name}/fused", both(sd, pairs.fused(sd), config), 0, "fused")
            exam.ask(f"{name}/split", both(pairs.fused(sd), sd, config), 0, "split")
        if any("experts.gate_up_proj" in k for k in sd) and arch != "gpt-oss":
            exam.ask(f"{name}/unstacked", both(sd, pairs.unstacked(sd), config), 0, "stacked")
            exam.ask(f"{name}/stacked", both(pairs.unstacked(sd), sd, config), 0, "stacked")
            exam.ask(f"{name}/switched", both(pairs.unstacked(sd), pairs.switched(sd), config), 0, "stacked")
        if arch:
            tensors, skipped = pairs.to_gguf(name, sd, config, arch)
            if skipped:
                print("     not in GGUF:", name, skipped[:5])
            ref = {k: v for k, v in sd.items() if k not in skipped}
            steps = {"gemma2": "norm + 1", "gemma3": "norm + 1", "gpt2": "transposed", "llama": "interleaved", "gptneox": "head", "bloom": "head", "falcon": "head"}
            for kind, step in (("F32", steps.get(name, "")), ("F16", "cast"), ("Q8_0", "quantised"), ("Q4_K", "quantised"), ("Q4_0", "quantised")):
                def gg(d, kind=kind):
                    path = os.path.join(d, "cand.gguf")
                    pairs.write_gguf(path, tensors, arch, config, kind)
                    return write_side(d, "ref", ref, config), path
                exam.ask(f"{name}/gguf {kind}", gg, 0, step)
            if name in ("llama", "gptneox", "gemma2", "gpt2", "mixtral", "falcon"):
                for kind in ("F32", "Q4_0"):
                    gguf_faults(exam, name, ref, config, tensors, arch, kind)
        plain_faults(exam, name, sd, config)


def gguf_faults(exam, name, ref, config, tensors, arch, kind):
    def write(change):
        def w(d):
            t = dict(tensors)
            change(t)
            path = os.path.join(d, "cand.gguf")
            pairs.write_gguf(path, t, arch, config, kind)
            return write_side(d, "ref", ref, config), path
        return w

    names = [k for k, v in tensors.items() if v.ndim == 2 and "blk.1" in k]
    for key in names:
        other = key.replace("blk.1", "blk.2")
        exam.ask(f"{name}/gguf {kind} zeroed {key}", write(lambda t: t.update({key: np.zeros_like(t[key])})), 1, tensors=[key])
        exam.ask(f"{name}/gguf {kind} missing {key}", write(lambda t: t.pop(key)), 1, tensors=[""])
        exam.ask(f"{name}/gguf {kind} exchanged {key}", write(lambda t: t.update({key: tensors[other], other: tensors[key]})), 1, tensors=[key, other])


def plain_faults(exam, name, sd, config):
    two = layers_of(sd)
    if not two:
        return
    a, b = two

    def changed(**kw):
        out = {k: v.clone() for k, v in sd.items()}
        for f in kw.values():
            f(out)
        return both(sd, out, config)

    exam.ask(f"{name}/zeroed", changed(f=lambda t: t[a].zero_()), 1, tensors=[a])
    exam.ask(f"{name}/missing", changed(f=lambda t: t.pop(a)), 1, tensors=[a])
    exam.ask(f"{name}/unused", changed(f=lambda t: t.update({a.replace("weight", "other"): t[a] * 2})), 1, tensors=[a.replace("weight", "other")])
    exam.ask(f"{name}/exchanged", changed(f=lambda t: t.update({a: sd[b], b: sd[a]})), 1, tensors=[a, b])
    exam.ask(f"{name}/twice", changed(f=lambda t: t.update({a: sd[b].clone()})), 1, tensors=[a])
    exam.ask(f"{name}/one element", changed(f=lambda t: t[a].view(-1)[17:18].add_(0.01)), 1, tensors=[a])
    exam.ask(f"{name}/halved", changed(f=lambda t: t[a].mul_(0.5)), 1, tensors=[a])
    if sd[a].shape[0] == sd[a].shape[1]:
        exam.ask(f"{name}/transposed", changed(f=lambda t: t.update({a: sd[a].T.contiguous()})), 1, tensors=[a])
    norm = next((k for k in sd if "norm" in k.lower() and k.endswith("weight") and sd[k].ndim == 1), None)
    if norm:
        exam.ask(f"{name}/norm + 1", changed(f=lambda t: t[norm].add_(1)), 1, tensors=[norm])
    for key in ("lm_head.weight", "model.norm.weight", "model.embed_tokens.weight"):
        if key in sd:
            exam.ask(f"{name}/zeroed {key}", changed(f=lambda t: t[key].zero_()), 1, tensors=[key])
            exam.ask(f"{name}/missing {key}", changed(f=lambda t: t.pop(key)), 1, tensors=[key])


QUANT = {
    **{f"mlx {b} {g}": (lambda n, x, b=b, g=g: formats.mlx(n, x, b, g)) for b in (2, 3, 4, 5, 6, 8) for g in (32, 64, 128)},
    "mlx 4 64 bf16": lambda n, x: formats.mlx(n, x, 4, 64, torch.bfloat16),
    "mlx 2 64 bf16": lambda n, x: formats.mlx(n, x, 2, 64, torch.bfloat16),
    "mlx 8 64 bf16": lambda n, x: formats.mlx(n, x, 8, 64, torch.bfloat16),
    "mlx 4 32 f16": lambda n, x: formats.mlx(n, x, 4, 32, torch.float16),
    "gptq 4": lambda n, x: formats.gptq(n, x),
    "gptq 8": lambda n, x: formats.gptq(n, x, 8),
    "gptq 2": lambda n, x: formats.gptq(n, x, 2),
    "gptq order": lambda n, x: formats.gptq(n, x, ordered=True),
    "awq": lambda n, x: formats.awq(n, x),
    "fp8 tensor": lambda n, x: formats.fp8(n, x),
    "fp8 channel": lambda n, x: formats.fp8(n, x, "channel"),
    "fp8 block": lambda n, x: formats.fp8(n, x, "block"),
    "nvfp4": formats.nvfp4,
    "compressed": formats.compressed,
    "compressed asym": lambda n, x: formats.compressed(n, x, symmetric=False),
    "int8": formats.int8,
}


def quant_config(kind):
    first, *rest = kind.split()
    if first == "mlx":
        return {"quantization": {"group_size": int(rest[1]), "bits": int(rest[0])}}
    method = {"gptq": {"quant_method": "gptq", "bits": int(rest[0]) if rest and rest[0].isdigit() else 4, "group_size": 64, "desc_act": rest == ["order"]},
              "awq": {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "zero_point": True},
              "fp8": {"quant_method": "fp8", **({"weight_block_size": [128, 128]} if rest == ["block"] else {})},
              "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}.get(first)  # fmt: skip
    return {"quantization_config": method} if method else {}


def quantised(exam):
    sd, config, _ = models.make("llama")
    proj = [k for k in sd if "_proj.weight" in k]
    rng = np.random.default_rng(1)
    for kind, q in QUANT.items():
        cand = {k: v for k, v in sd.items() if k not in proj}
        for k in proj:
            cand.update(q(k.removesuffix(".weight"), sd[k].numpy()))
        cfg = {**config, **quant_config(kind)}
        exam.ask(f"quant {kind}/healthy", both(sd, cand, config, cfg), 0, "quantised")
        # The reference may be what the codes stand for: asked of parity itself, by another program in formats' tests.
        victim, other = "model.layers.1.mlp.up_proj", "model.layers.2.mlp.up_proj"
        parts = [k for k in cand if k.startswith(victim + ".")]

        def ask(what, change, want=1):
            out = {k: v.clone() for k, v in cand.items()}
            change(out)
            exam.ask(f"quant {kind}/{what}", both(sd, out, config, cfg), want, tensors=[victim])

        codes = next(k for k in parts if k.endswith(("qweight", "weight_packed", ".weight")))
        scale = next(k for k in parts if k.endswith(("scales", "weight_scale", "weight_scale_inv")))

        def flip(out, high=True):
            flat = out[codes].contiguous().view(torch.uint8).view(-1)
            i = int(rng.integers(flat.numel()))
            flat[i] = int(flat[i]) ^ (0x40 if "8" not in kind.split()[:2] else 0x20)
            out[codes] = flat.view(out[codes].dtype).view(out[codes].shape)

        ask("nibble", flip)
        if out_of(cand[scale]) > 1:
            def swap(out):
                s = out[scale]
                flat = s.view(torch.uint8).view(-1, s.element_size()) if s.element_size() == 1 else s.view(-1)
                i, j = extremes(s)
                flat[[i, j]] = flat[[j, i]]
            ask("swapped scales", swap)

        def wrong_scale(out):
            out[scale] = (out[scale].float() * 1.25).to(out[scale].dtype)
        ask("scale times 1.25", wrong_scale)
        for p in parts:
            ask(f"missing {p.rsplit('.', 1)[1]}", lambda out: out.pop(p), (1, 3))
            if p.rsplit(".", 1)[1] in ("biases", "qzeros", "weight_zero_point"):
                ask(f"zero {p.rsplit('.', 1)[1]}", lambda out: out.update({p: torch.zeros_like(out[p])}))
                ask(f"other's {p.rsplit('.', 1)[1]}", lambda out: out.update({p: out[p.replace(victim, other)].clone()}))
        ask("zeroed codes", lambda out: out.update({codes: torch.zeros_like(out[codes])}))
        ask("other's weight", lambda out: out.update({p: cand[p.replace(victim, other)].clone() for p in parts}))


def out_of(t):
    return t.numel()


def extremes(s):
    v = s.float().reshape(-1).abs()
    return int(v.argmax()), int(v.argmin())


def gguf_types(exam):
    sd, config, arch = models.make("llama")
    tensors, _ = pairs.to_gguf("llama", sd, config, arch)
    for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "BF16", "TQ1_0", "TQ2_0", "MXFP4"):
        try:
            raw = {k: formats.ggml(v, kind) if v.ndim == 2 else v for k, v in tensors.items()}
        except (NotImplementedError, KeyError) as e:
            print("     no quantiser for", kind, repr(e)[:80])
            continue

        def write(change=None, deq=False):
            def w(d):
                t = dict(raw)
                ref = sd
                if deq:
                    import gguf
                    ref = {k: torch.tensor(gguf.quants.dequantize(v[0], v[1]) if isinstance(v, tuple) else v) for k, v in raw.items()}
                if change:
                    change(t)
                pairs.write_gguf(os.path.join(d, "cand.gguf"), t, arch, config, "F32")
                return write_side(d, "ref", ref, config), os.path.join(d, "cand.gguf")
            return w

        victim = "blk.1.ffn_up.weight"
        rng = np.random.default_rng(3)

        def byte(at, mask):
            def c(t):
                data, q = t[victim]
                data = data.copy()
                size = __import__("gguf").GGML_QUANT_SIZES[q][1]
                flat = data.view(np.uint8).reshape(-1, size)
                flat[int(rng.integers(len(flat))), at] ^= mask
                t[victim] = (data, q)
            return c

        exam.ask(f"gguf {kind}/healthy", write(), 0, "quantised" if kind != "BF16" else "cast")
        exam.ask(f"gguf {kind}/dequantised", write(deq=True), 0, "dequantised" if kind != "BF16" else "")
        for deq in (False, True):
            tag = " of dequantised" if deq else ""
            exam.ask(f"gguf {kind}/nibble{tag}", write(byte(-9 if kind == "Q6_K" else -1, 0x40) if kind != "Q6_K" else byte(5, 0x40), deq), 1, tensors=[victim])
            if kind != "BF16":
                at = {"Q6_K": -1}.get(kind, 1)
                if kind not in ("TQ1_0", "TQ2_0", "MXFP4"):
                    exam.ask(f"gguf {kind}/scale{tag}", write(byte(at, 0x04), deq), 1, tensors=[victim])
            exam.ask(f"gguf {kind}/zeroed{tag}", write(lambda t: t.update({victim: (np.zeros_like(t[victim][0]), t[victim][1])}), deq), 1, tensors=[victim])
            exam.ask(f"gguf {kind}/other layer{tag}", write(lambda t: t.update({victim: t["blk.2.ffn_up.weight"]}), deq), 1, tensors=[victim])


def adapters(exam):
    """A candidate without the LoRA that the reference has, or with it merged."""
    for name in ("llama", "qwen2", "gemma2"):
        sd, config, _ = models.make(name)
        for kind in (torch.float32, torch.bfloat16):
            for rank in (4, 16):
                g = torch.Generator().manual_seed(rank)
                lora, merged = {}, {k: v.clone() for k, v in sd.items()}
                for k in sd:
                    if k.endswith(("q_proj.weight", "v_proj.weight", "up_proj.weight")):
                        a = torch.randn(rank, sd[k].shape[1], generator=g) * 0.02
                        b = torch.randn(sd[k].shape[0], rank, generator=g) * 0.02
                        base = "base_model.model." + k.removesuffix(".weight")
                        lora[base + ".lora_A.weight"], lora[base + ".lora_B.weight"] = a, b
                        merged[k] = sd[k] + 16 / rank * b @ a
                to = lambda d: {k: v.to(kind) for k, v in d.items()}  # noqa: E731
                victims = [k for k in sd if merged[k] is not sd[k] and not torch.equal(merged[k], sd[k])]

                def adapter(d):
                    path = write_side(d, "ref", sd, config)
                    save_file(lora, os.path.join(path, "adapter_model.safetensors"))
                    with open(os.path.join(path, "adapter_config.json"), "w") as f:
                        json.dump({"peft_type": "LORA", "lora_alpha": 16, "r": rank}, f)
                    return path

                tag = f"lora {name} {kind} {rank}".replace("torch.", "")
                exam.ask(f"{tag}/merged", lambda d: (adapter(d), write_side(d, "cand", to(merged), config)), 0, "LoRA merged")
                exam.ask(f"{tag}/without", lambda d: (adapter(d), write_side(d, "cand", to(sd), config)), 1, tensors=victims, mention="without the adapter")
                exam.ask(f"{tag}/unknown", both(to(merged), to(sd), config), 1, tensors=victims, mention=f"rank {rank}")
                one = {**merged, victims[0]: sd[victims[0]]}
                exam.ask(f"{tag}/one layer", lambda d: (adapter(d), write_side(d, "cand", to(one), config)), 1, tensors=victims[:1], mention="without the adapter")


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--parity", default=".bin/parity")
    a.add_argument("--match", default="")
    a.add_argument("--keep", default="")
    a.add_argument("--parts", default="converters,quantised,gguf_types,adapters")
    args = a.parse_args()
    exam = Exam(os.path.abspath(args.parity), args.match, args.keep)
    for part in args.parts.split(","):
        globals()[part](exam)
    print(f"{exam.n - len(exam.wrong)} of {exam.n}")
    return 1 if exam.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
