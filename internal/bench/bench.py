"""Measures parity's comparison next to numpy, torch and the rule of MAX's compare_tensors.

All read the same files, and the result is one table. Everything is done in one run, in turns, and
the best of several is taken, so that all have seen the same machine. GB/s count the bytes of both
sides. `make bench` runs this; --write internal/bench/README.md puts the table there.
"""

import argparse
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import time

import numpy as np
import torch

ATOL = RTOL = 1e-2
COLUMNS = 1024
BLOCK = 1 << 16
MARK = "<!-- measured -->"


def write_files(folder, megabytes):
    """Writes golden and candidate of each type: normal values, and the same with errors of 1e-3."""
    rng = np.random.default_rng(0)
    arrays = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        size = torch.empty(0, dtype=dtype).element_size()
        n = (megabytes << 20) // size // COLUMNS * COLUMNS
        part = min(n, 1 << 22)
        g = rng.standard_normal(part).astype(np.float32)
        sides = (g, g + 1e-3 * rng.standard_normal(part).astype(np.float32))
        for side, x in zip(("golden", "actual"), sides):
            x = torch.from_numpy(x).to(dtype).repeat(-(-n // part))[:n].reshape(-1, COLUMNS)
            x.view(torch.uint8).numpy().tofile(folder / f"{side}.{name}")
        arrays[name] = dtype
    return arrays


def read(folder, name, dtype):
    out = []
    for side in ("golden", "actual"):
        data = np.memmap(folder / f"{side}.{name}", np.uint8, "c")
        out.append(torch.from_numpy(data).view(dtype))
    return out


def floats(x):
    """numpy has no bfloat16: its bits are shifted into float32."""
    if x.dtype == torch.bfloat16:
        return (x.view(torch.uint16).numpy().astype(np.uint32) << 16).view(np.float32)
    return x.numpy().astype(np.float32, copy=False)


def metrics_numpy(g, a):
    """The metrics of one block."""
    d = np.abs(a - g)
    ag = np.abs(g)
    rel = d / np.maximum(ag, 1e-10)
    bad = d > ATOL + RTOL * ag
    return (
        d.max(), d.argmax(), rel.max(), rel.argmax(), np.count_nonzero(bad), np.dot(d, d), np.dot(g, a), np.dot(g, g),
        np.dot(a, a),
        np.isfinite(g).all(), np.isfinite(a).all(),
    )  # fmt: skip


def numpy_whole(g, a):
    metrics_numpy(floats(g), floats(a))


def numpy_blocked(g, a):
    for i in range(0, len(g), BLOCK):
        metrics_numpy(floats(g[i : i + BLOCK]), floats(a[i : i + BLOCK]))


def torch_whole(g, a):
    g, a = g.float(), a.float()
    d = (a - g).abs()
    rel = d / g.abs().clamp(min=1e-10)
    d.argmax(), d.max(), rel.argmax(), rel.max()
    (~torch.isclose(a, g, rtol=RTOL, atol=ATOL)).sum()
    (
        torch.nn.functional.mse_loss(a, g),
        torch.nn.functional.cosine_similarity(a, g, dim=0),
        torch.linalg.vector_norm(d),
        torch.linalg.vector_norm(g),
    )
    torch.isfinite(g).all(), torch.isfinite(a).all()


def max_rule(g, a):
    """The metrics of compare_tensors of MAX: largest differences with indices, count not close."""
    g, a = g.float().numpy(), a.float().numpy()
    d = np.abs(a - g)
    rel = d / np.maximum(np.abs(g), 1e-10)
    d.max(), d.argmax(), rel.max(), rel.argmax()
    np.count_nonzero(~np.isclose(g, a, rtol=RTOL, atol=ATOL))


def best(f, times):
    fastest = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        f()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def go_benchmarks(binary, pattern, cpus, folder, benchtime, **env):
    """Runs Go benchmarks; returns the best GB/s by name and cores, and allocations by name and "allocs"."""
    speeds = {}
    for n in cpus:  # one after the other: the first of a list is measured on as many cores as the largest
        out = subprocess.run(
            [binary, "-test.run", "^$", "-test.bench", pattern, "-test.cpu", str(n), "-test.benchtime", benchtime],
            env={**os.environ, "PARITY_BENCH": str(folder), **env}, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        for line in out.splitlines():
            m = re.match(r"Benchmark(\S+?)(?:-\d+)?\s+\d+\s.*?([\d.]+) best-GB/s", line)
            if m:
                speeds[m[1], n] = max(speeds.get((m[1], n), 0), float(m[2]))
                if allocs := re.search(r"(\d+) allocs/op", line):
                    speeds[m[1], "allocs"] = int(allocs[1])
    return speeds


def merge(into, new):
    for key, value in new.items():
        into[key] = max(into.get(key, 0), value)


def whole_process(parity, folder, megabytes):
    """Compares two folders of float32 files, megabytes a side, with the command.

    Returns GB/s and the peak memory in MB without the mapped files.
    """
    rng = np.random.default_rng(1)
    part = 256 << 20
    for side in ("golden", "actual"):
        (folder / side).mkdir()
    for i in range(megabytes // 256):
        g = np.tile(rng.standard_normal(1 << 20).astype(np.float32), part >> 22).reshape(-1, COLUMNS)
        np.save(folder / "golden" / f"layer{i}.npy", g)
        np.save(folder / "actual" / f"layer{i}.npy", g * np.float32(1 + 1e-6))
    bytes_read = 2 * (megabytes // 256) * part
    command = [parity, "compare", str(folder / "golden"), str(folder / "actual")]
    fastest, own = float("inf"), 0
    for _ in range(5):
        start = time.perf_counter()
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        peak = 0
        while p.poll() is None:
            peak = max(peak, own_memory(p.pid))
            time.sleep(0.005)
        fastest, own = min(fastest, time.perf_counter() - start), max(own, peak)
        if p.returncode:
            raise SystemExit(f"{command} ended with {p.returncode}")
    return bytes_read / fastest / 1e9, own


def own_memory(pid):
    """Memory of a process without mapped files, in MB; 0 once it is gone, or if the system does not say."""
    try:
        return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024
    except (OSError, TypeError):
        return 0


def cpu_model():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
        flags = re.search(r"^flags\s*:\s*(.*)$", text, re.M)[1].split()
        name = re.search(r"^model name\s*:\s*(.*)$", text, re.M)[1]
        family, model = (re.search(rf"^{k}\s*:\s*(\d+)$", text, re.M)[1] for k in ("cpu family", "model"))
        isa = "AVX2" if "avx2" in flags else "no AVX2"
        return f"{name} (family {family}, model {model}, {isa})"
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--binary", required=True, type=pathlib.Path, help="the tests of package compare: go test -c ./compare"
    )
    parser.add_argument("--parity", required=True, type=pathlib.Path, help="the command")
    parser.add_argument("--megabytes", type=int, default=256, help="size of a file")
    parser.add_argument(
        "--folder-megabytes", type=int, default=4096, help="size of a folder of the whole-process run, 0 leaves it out"
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument(
        "--write", type=pathlib.Path, help="Markdown file in which the lines after the mark are replaced"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cpus = sorted({1, cores})
    binary, parity = args.binary.resolve(), args.parity.resolve()
    lines = []

    def row(*cells):
        lines.append("| " + " | ".join(str(c) for c in cells) + " |")

    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        arrays = write_files(folder, args.megabytes)
        go, others = {}, {}
        tools = {
            "numpy, whole": numpy_whole,
            "numpy, blocked": numpy_blocked,
            "torch": torch_whole,
            "MAX's rule": max_rule,
        }
        for _ in range(args.rounds):
            merge(go, go_benchmarks(binary, "Limit|Files", cpus, folder, "500ms"))
            merge(go, go_benchmarks(binary, "Kernel", [1], folder, "100ms"))
            merge(go, go_benchmarks(binary, "Wrong", [1], folder, "200ms"))
            for name, dtype in arrays.items():
                g, a = read(folder, name, dtype)
                size = 2 * g.numel() * g.element_size()
                merge(others, {(tool, name): size / best(lambda: f(g, a), 1) / 1e9 for tool, f in tools.items()})
        merge(go, go_benchmarks(binary, "Tensors|Layers", cpus, folder, "300ms"))
        limit = {n: go["Limit", n] for n in cpus}

        lines.append(
            f"{cpu_model()}, {cores} cores, {platform.system()} {platform.machine()}; numpy {np.__version__}, "
            f"torch {torch.__version__.split('+')[0]}. Load average at the end: {os.getloadavg()[0]:.1f}."
        )
        lines.append(
            f"Limit: {', '.join(f'{limit[n]:.1f} GB/s on {n}' for n in cpus)} ({args.megabytes} MB a side, warm)."
        )
        lines.append("")
        row(
            "pair",
            "parity GB/s, " + ", ".join(f"{n} core{'s' * (n > 1)}" for n in cpus),
            "of the limit",
            *(f"× {t}" for t in tools),
        )
        row(*["---"] * (3 + len(tools)))
        for name in arrays:
            mine = {n: go[f"Files/{name}", n] for n in cpus}
            row(name, ", ".join(f"{mine[n]:.1f}" for n in cpus),
                ", ".join(f"{100 * mine[n] / limit[n]:.0f} %" for n in cpus),
                *(f"{mine[1] / others[t, name]:.0f} ({others[t, name]:.2f} GB/s)" for t in tools))  # fmt: skip
        lines.append("")
        row("in cache, one core, GB/s", "rows of 64", "rows of 1024", "rows of 1024, in Go")
        row(*["---"] * 4)
        for name in [*arrays, "float64"]:
            row(name, *(f"{go[f'Kernel/{k}/{name}', 1]:.1f}" for k in ("assembly/rows64", "assembly/rows1024", "go/rows1024")))
        lines.append("")
        row("times as long as a good pair", *arrays)
        row(*["---"] * (1 + len(arrays)))
        for what in dict.fromkeys(k[0].split("/")[2] for k in go if k[0].startswith("Wrong/")):
            ratios = [(go.get((f"Wrong/{n}/good", 1)), go.get((f"Wrong/{n}/{what}", 1))) for n in arrays]
            row(what.replace("_", " "), *(f"{good / it:.1f}" if good and it else "" for good, it in ratios))
        lines.append("")
        row("layers of 64 kB a side, one after the other", "µs a layer", "allocations a layer")
        row("---", "---", "---")
        for count in (10, 100, 1000, 10000):
            row(count, f"{2 * 65.536 / go[f'Layers/{count}', 1]:.1f}", f"{go[f'Layers/{count}', 'allocs'] / count:.0f}")
        lines.append("")
        row("tensors", *(f"GB/s, {n} core{'s' * (n > 1)}" for n in cpus))
        row(*["---"] * (1 + len(cpus)))
        for name in dict.fromkeys(k[0] for k in go if k[0].startswith("Tensors/")):
            row(name.removeprefix("Tensors/").replace("_", " "), *(f"{go[name, n]:.1f}" for n in cpus))
        if args.folder_megabytes:
            speed, own = whole_process(parity, folder, args.folder_megabytes)
            lines.append("")
            lines.append(
                f"`parity compare` over two folders of {args.folder_megabytes} MB float32, warm, as a whole process: "
                f"{speed:.1f} GB/s, {100 * speed / limit[cores]:.0f} % of the limit, {own:.0f} MB of its own memory."
            )
    print("\n".join(lines))
    if args.write:
        head = args.write.read_text().split(MARK)[0]
        args.write.write_text(head + MARK + "\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
