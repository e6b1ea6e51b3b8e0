"""Tests of goparity.record and goparity.dump: PYTHONPATH=runner python -m unittest testdata/test_record.py, with torch."""

import json
import os
import tempfile
import unittest

import numpy
import torch
from torch import nn

import goparity
from goparity import safetensors
from goparity.errors import JobError, UsageError
from goparity.program import Recorder


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        x = goparity.parity_tap(self.up(x), "middle")
        return self.down(x.mul_(2))  # in place: what was recorded stays


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.block = nn.Embedding(10, 4), Block()

    def forward(self, input_ids):
        return self.block(self.block(self.embed(input_ids)))


class Folder(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.path = os.path.join(tmp.name, "dump")

    def run_json(self):
        with open(os.path.join(self.path, "run.json"), encoding="utf-8") as f:
            return json.load(f)

    def labels(self, step="0"):
        return [e[4] for e in self.run_json()["order"] if e[0] == step]

    def tensor(self, label, step="0"):
        file = next(e[3] for e in self.run_json()["order"] if e[0] == step and e[4] == label)
        return safetensors.read(os.path.join(self.path, step, file))[label]


class Record(Folder):
    def test_model(self):
        torch.manual_seed(0)
        model, ids = Model(), torch.tensor([[1, 2, 3]])
        right = model(ids)
        with goparity.record(model, self.path):
            self.assertTrue(torch.equal(right, model(ids)), "what the model computes is not changed")
            model(ids[:, :1])
        block = ["up-input_0", "up-output", "middle", "down-input_0", "down-output"]
        first = [f"model.block.{b}" if "-" in b else b for b in block] + ["model.block-input_0", "model.block-output"]
        again = [f"model.block.{b}".replace("-", "(2)-") if "-" in b else b + "(2)" for b in block] + ["model.block(2)-input_0", "model.block(2)-output"]
        want = ["model.embed-input_0", "model.embed-output", *first, *again, "model-input_0", "model-output"]
        self.assertEqual(want, self.labels(), "in the order in which modules end; a module may be called twice")
        self.assertEqual(want, self.labels("1"), "each call of the model is a step")
        run = self.run_json()
        self.assertNotIn("unfinished", run)
        self.assertEqual(([[1, 2, 3]], "float32", "torch", "cpu"), tuple(run[k] for k in ("token_ids", "encoding", "engine", "device")))
        up, _, down = (torch.frombuffer(bytearray(self.tensor(n)[2]), dtype=torch.float32) for n in ("model.block.up-output", "middle", "model.block.down-input_0"))
        self.assertTrue(torch.equal(2 * up, down), "copied before it was changed in place")
        self.assertEqual(tuple(right.shape), tuple(self.tensor("model-output")[1]))
        with open(os.path.join(self.path, "program.json"), encoding="utf-8") as f:
            program = json.load(f)
        self.assertIn("model.block(2)-output", program["passes"][1]["ports"])
        self.assertFalse(program.get("guards"), "what the recorder reads hangs on no data")
        with Recorder(model) as alone:
            model(ids)
            model(ids[:, :1])
        self.assertEqual([op["op"] for op in program["ops"]], [op["op"] for op in alone.program()["ops"]], "nor is it an operator of the model's")

    def test_choices(self):
        for keys, want, reason in [
            ({"inputs": False}, ["model.embed-output", "model.block.up-output", "middle"], "outputs alone"),
            ({"only": "up"}, ["model.block.up-input_0", "model.block.up-output"], "the end of a name"),
            ({"only": ["*.embed", "middle*"]}, ["model.embed-input_0", "model.embed-output", "middle"], "several"),
        ]:
            with self.subTest(reason):
                model = Model()
                with goparity.record(model, self.path, program=False, overwrite=True, **keys):
                    model(torch.tensor([[1]]))
                self.assertEqual(want, self.labels()[: len(want)])
                self.assertFalse(os.path.exists(os.path.join(self.path, "program.json")), "none was asked for, and that of before is gone")

    def test_compiled(self):
        def silent(graph, inputs):  # another program than the model's
            return lambda *args: [torch.zeros_like(x) for x in graph(*args)]

        model, ids = nn.Sequential(nn.Embedding(10, 4), nn.Tanh()), torch.tensor([[3, 1]])
        compiled = torch.compile(model, backend=silent)
        with goparity.record(compiled, self.path):
            compiled(ids)
        self.assertEqual(self.labels(), ["model.0-input_0", "model.0-output", "model.1-input_0", "model.1-output", "model-input_0", "model-output"])
        self.assertFalse(any(bytes(self.tensor("model-output")[2])), "what was compiled ran")
        with self.assertRaisesRegex(UsageError, "the model is compiled"), goparity.record(model, self.path, overwrite=True):
            compiled(ids)

    def test_dies(self):
        model = Model()
        with self.assertRaises(IndexError), goparity.record(model, self.path):
            model(torch.tensor([[1]]))
            model(torch.tensor([[99]]))
        run = self.run_json()
        self.assertIn("IndexError", run["unfinished"])
        self.assertEqual(["model-input_0", "model.embed-input_0"], self.labels("1"), "what was given to the modules that did not end")
        self.assertEqual(0, len(model._forward_hooks), "the hooks are gone")
        model(torch.tensor([[1]]))

    def test_goes_on(self):
        model = Model()
        with goparity.record(model, self.path):
            with self.assertRaises(IndexError):
                model(torch.tensor([[99]]))
            model(torch.tensor([[1]]))
        self.assertEqual(["model-input_0", "model.embed-input_0"], self.labels("0"), "a call that failed is a step, too")
        self.assertIn("model-output", self.labels("1"), "the one after it is whole")
        self.assertIn("a call of the model failed", self.run_json()["program_error"])
        self.assertNotIn("unfinished", self.run_json())

    def test_two_at_once(self):
        model, port, ids = Model(), Model(), torch.tensor([[1, 2]])
        other = self.path + "2"
        with goparity.record(model, self.path):
            with goparity.record(port, other):
                port(ids)
            model(ids)
        port(ids)
        model(ids)
        first, labels = self.path, self.labels()
        self.path = other
        self.assertEqual(labels, self.labels(), "each has its own model alone, with what is tapped there")
        self.assertIn("middle", labels)
        for folder in (first, other):
            self.assertTrue(os.path.exists(os.path.join(folder, "program.json")))

    def test_refusals(self):
        with open(self.path, "w") as f:
            f.write("mine")
        with self.assertRaisesRegex(JobError, "exists already: choose another folder$"), goparity.record(Model(), self.path, overwrite=True):
            self.fail("a file of the user's is never replaced")
        os.remove(self.path)
        with self.assertRaisesRegex(JobError, "nothing was recorded"), goparity.record(Model(), self.path):
            pass
        with self.assertRaisesRegex(JobError, "exists already.*overwrite=True"), goparity.record(Model(), self.path):
            self.fail("a dump is not replaced unasked")
        with self.assertRaisesRegex(JobError, "a builtins.dict cannot be recorded"), goparity.record({}, self.path, overwrite=True):
            self.fail("no module")


class Dump(Folder):
    def test_arrays(self):
        class Lent:  # what has DLPack and no more
            def __init__(self, a):
                self.a, self.__dlpack__, self.__dlpack_device__ = a, a.__dlpack__, a.__dlpack_device__

            def __dlpack__(self, **keys):
                return self.a.__dlpack__(**keys)

            def __dlpack_device__(self):
                return self.a.__dlpack_device__()

        a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        rows = [
            ("numpy", a, ("F32", [2, 3], a.tobytes()), "the plain case"),
            ("turned", a.T, ("F32", [3, 2], a.T.tobytes()), "in the order of its axes, not of its memory"),
            ("big", a.astype(">f4"), ("F32", [2, 3], a.tobytes()), "the format is little-endian"),
            ("scalar", numpy.float64(2), ("F64", [], numpy.float64(2).tobytes()), "no axes"),
            ("empty", a[:0], ("F32", [0, 3], b""), "no elements"),
            ("torch", torch.tensor(a).bfloat16(), ("BF16", [2, 3], torch.tensor(a).bfloat16().view(torch.uint8).numpy().tobytes()), "which numpy lacks"),
            ("lent", Lent(a), ("F32", [2, 3], a.tobytes()), "DLPack"),
            ("list", [[True, False]], ("BOOL", [1, 2], b"\1\0"), "what numpy reads"),
        ]
        goparity.dump(self.path, {name: value for name, value, _, _ in rows}, engine="mine", token_ids=[[1, 2]])
        for name, _, want, reason in rows:
            dtype, shape, data = self.tensor(name + "-output")
            self.assertEqual(want, (dtype, shape, bytes(data)), reason)
        self.assertEqual(("mine", [[1, 2]]), (self.run_json()["engine"], self.run_json()["token_ids"]))

    def test_adds(self):
        goparity.dump(self.path, {"a/b-input_0": numpy.ones(1), "A/B-input_0": numpy.ones(2)})
        goparity.dump(self.path, {"a-b": numpy.ones(1), "t-tap": numpy.ones(1)}, step=1)
        order = self.run_json()["order"]
        self.assertEqual([["0", "a/b", "input_0"], ["0", "A/B", "input_0"], ["1", "a-b", "output"], ["1", "t", "tap"]], [e[:3] for e in order])
        self.assertEqual(["a_b-input_0.safetensors", "A_B-input_0~2.safetensors"], [e[3] for e in order[:2]], "every file system has these names")
        self.assertEqual([2], self.tensor("A/B-input_0")[1])
        with self.assertRaisesRegex(JobError, "step 1 has a-b-output twice"):
            goparity.dump(self.path, {"a-b": numpy.ones(1)}, step=1)
        with self.assertRaisesRegex(JobError, "an array of object cannot be recorded"):
            goparity.dump(self.path, {"c": numpy.array([None])})
        with self.assertRaisesRegex(UsageError, "no name"):
            goparity.dump(self.path, {"": numpy.ones(1)})

    def test_taps(self):
        with goparity.record(None, self.path):
            goparity.parity_tap(numpy.ones(1), "a")
            goparity.parity_tap(torch.ones(2), "a")
        goparity.parity_tap(numpy.ones(1), "after")
        self.assertEqual(["a", "a(2)"], self.labels(), "a second one of a name is a second call")


if __name__ == "__main__":
    unittest.main()
