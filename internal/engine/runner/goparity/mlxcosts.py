"""What each layer of an MLX model takes: seconds and memory, in a forward pass of its own.

MLX is lazy: what a layer costs is known where all before it is computed, and the layer itself is at once.
"""

import time

import mlx.core as mx

from .mlxhooks import Classes, Names, arrays


class Costs:
    """Measures modules while it is open. of has, by layer, [seconds, bytes]: of all calls, and beyond what was held before."""

    def __init__(self, model):
        self._model, self._names, self._running = model, Names(model), []
        self.of = {}

    def __enter__(self):
        self._classes = Classes(self._model, self._call)
        return self

    def __exit__(self, *error):
        self._classes.undo()

    def _call(self, module, method, call, args, kwargs):
        above = self._running[-1] if self._running else None
        if above and above.module is module:
            return call()  # of its base class
        mx.eval([arrays(a) for a in (*args, *kwargs.values())])
        if above:
            above.look()
        frame = _Frame(module, self._names.label(module, above.label if above else ""))
        self._running.append(frame)
        start = time.perf_counter()
        try:
            out = call()
            mx.eval(arrays(out))
        finally:
            self._running.pop()
        seconds = time.perf_counter() - start
        frame.look()
        if above:
            above.peak = max(above.peak, frame.peak)
        before = self.of.get(frame.label, [0.0, 0])
        self.of[frame.label] = [before[0] + seconds, max(before[1], frame.peak - frame.held)]
        return out


class _Frame:
    """A call that is running: what was held when it began, and the most since."""

    def __init__(self, module, label):
        self.module, self.label = module, label
        self.held = self.peak = mx.get_active_memory()
        mx.reset_peak_memory()

    def look(self):
        self.peak = max(self.peak, mx.get_peak_memory())
        mx.reset_peak_memory()


def measure(model, run):
    """Runs a forward pass once to warm up and once measured. Returns the costs for run.json."""
    mx.eval(arrays(run()))
    with Costs(model) as costs:
        mx.eval(arrays(run()))
    return {layer: [round(s, 6), int(b)] for layer, (s, b) in costs.of.items()}
