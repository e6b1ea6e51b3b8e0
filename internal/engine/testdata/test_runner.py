"""Tests of the runner's parts that need neither torch nor MAX: python3 -m unittest, with PYTHONPATH=../runner."""

import json
import os
import sys
import tempfile
import unittest
from types import SimpleNamespace

from goparity import config, engines, maxgraph, safetensors, tokens, weights
from goparity.output import Output
from goparity.errors import ModelError, UsageError
from goparity.job import Job


def job(**keys):
    return Job({"out": "out", "model": "m", "cases": [{"name": "a"}], **keys})


class Paths(unittest.TestCase):
    def test_refusals(self):
        passes = [[{"sequence": 0, "from": 0, "to": 1}]]
        case = {"name": "a", "path": "batch", "passes": passes, "token_ids": [[1]]}
        for keys, want, reason in [
            ({"task": "embeddings", "kv_cache": True}, "task embeddings has no KV cache", "an encoder keeps nothing"),
            ({"task": "module", "oracle": "o.py", "cases": [case]}, "a module has no execution paths", "its inputs are not tokens"),
            ({"mode": "injected", "cases": [case | {"golden": "g"}]}, "an injected run has no execution paths", "its inputs are the golden's"),
            ({"cases": [case | {"path": ""}]}, "passes need path and token_ids", "passes of no path"),
            ({"cases": [case | {"token_ids": []}]}, "passes need path and token_ids", "passes of no tokens"),
        ]:
            with self.subTest(reason), self.assertRaisesRegex(UsageError, want):
                job(**keys)
        self.assertTrue(job(task="text-generation", kv_cache=True, cases=[case]).kv_cache)


class Sequences(unittest.TestCase):
    def test_ended(self):
        """MAX's cache has a page or two for each sequence of a forward pass: those that no later one feeds must leave it."""
        sys.modules.setdefault("numpy", SimpleNamespace())  # the module takes it for tokens alone
        from goparity import maxpaths

        passes = [[{"sequence": s, "from": 0, "to": 1}] for s in range(9)] + [[{"sequence": 8, "from": 1, "to": 2}]]
        held, most = set(), []
        cache = SimpleNamespace(alloc=lambda c: SimpleNamespace(synchronize=lambda: most.append(len(held))), release=lambda c: held.remove(c.request_id))
        text = maxpaths._Text(SimpleNamespace(kv_manager=cache, release=lambda _: None), {"name": "a", "path": "lengths:1,2", "passes": passes})

        def context(item):
            held.add(item["sequence"])
            return SimpleNamespace(request_id=item["sequence"], tokens=SimpleNamespace(processed_length=0, active_length=1))

        text._context = context
        for k, items in enumerate(passes):
            text.prepare(k, items)
            text.running[items[0]["sequence"]].tokens.processed_length = items[0]["to"]
        self.assertEqual([1] * 10, most)
        text.close()
        self.assertFalse(held)


ENGINE = """
CAN = {"does": "nothing", "packages": ["json"], "tasks": ["embeddings"], "encodings": ["float32"], "paths": ["batch"], "settings": ["fast"], "records": []}
def check(job): pass
def load(job, out, cases): return {"w": [1.5, 2.5]}
def run(model, dump, case): dump.tensors(0, {"m.a-output": dump.token_ids(), "m.b-input_0": [1]})
def weights(model): return []
"""


class Engines(unittest.TestCase):
    def test_table(self):
        rows = {row["name"]: row for row in json.loads(engines.table([]))}
        self.assertEqual(["max", "mlx", "torch"], sorted(rows))
        for name, row in rows.items():
            self.assertTrue(row["does"] and row["tasks"] and row["paths"], name)

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "mine.py")
            for text, want, reason in [
                (ENGINE.replace("def check", "def chek"), "mine.py is no engine: it lacks check", "a function is missing"),
                (ENGINE.replace("CAN =", "CAM ="), "it lacks the table CAN", "the table is missing"),
                (ENGINE.replace('"paths"', '"pathes"'), "CAN lacks, or does not know, pathes, paths", "a key is wrong"),
            ]:
                with open(file, "w") as f:
                    f.write(text)
                with self.subTest(reason), self.assertRaisesRegex(UsageError, want):
                    engines.engine("mine", file)
            with open(file, "w") as f:
                f.write(ENGINE)
            module = engines.engine("mine", file)
            passes = {"name": "a", "token_ids": [[1]], "passes": [[{"sequence": 0, "from": 0, "to": 1}]]}
            for keys, want, reason in [
                ({"task": "text-generation"}, "mine has no task 'text-generation'", "another task"),
                ({"encoding": "bfloat16"}, "mine has no encoding 'bfloat16'", "another type"),
                ({"engine_config": {"slow": 1}}, "mine has no setting slow", "another setting"),
                ({"mode": "injected", "cases": [{"name": "a", "golden": "g"}]}, "mine has no injected runs", "no injection"),
                ({"cases": [{"name": "a", "steps": 2}]}, "mine has no decode steps", "no cache"),
                ({"cases": [passes | {"path": "repeat:2"}]}, "mine has no path repeat:2", "another path"),
                ({"cases": [{"name": "a", "images": [["cat.png"]]}]}, "mine has no images", "pictures"),
            ]:
                with self.subTest(reason), self.assertRaisesRegex(UsageError, want):
                    engines.check(module, job(**{"engine": "mine", "engine_file": file, "task": "embeddings"} | keys))
            engines.check(module, job(engine="mine", task="embeddings", engine_config={"fast": 1}, cases=[passes | {"path": "batch"}]))


class Config(unittest.TestCase):
    def test_override(self):
        given = {"num_hidden_layers": 8, "layer_types": list("abcdefgh"), "rms_norm_eps": 1, "text_config": {"n_layer": 2, "rope": {"theta": 1}}}
        for keys, want, reason in [
            ({"max_layers": 3}, {"num_hidden_layers": 3, "layer_types": ["a", "b", "c"]}, "lists by layer are cut too"),
            ({"max_layers": 3}, {"text_config": {"n_layer": 2, "rope": {"theta": 1}}}, "no model grows"),
            ({"hf_config_overrides": {"text_config.rope.theta": 5}}, {"text_config": {"n_layer": 2, "rope": {"theta": 5}}}, "a dotted path"),
        ]:
            with self.subTest(reason):
                got = config.override(json.loads(json.dumps(given)), job(**keys))
                self.assertEqual(want, {k: got[k] for k in want})
        for keys, want, reason in [
            ({"hf_config_overrides": {"rms_norm_ep": 5}}, "did you mean rms_norm_eps?", "a key that is not there"),
            ({"hf_config_overrides": {"vision.eps": 5}}, "no section vision", "a section that is not there"),
        ]:
            with self.subTest(reason), self.assertRaises(UsageError) as e:
                config.override(dict(given), job(**keys))
            self.assertIn(want, str(e.exception) + e.exception.hint)
        with self.assertRaisesRegex(UsageError, "none of the keys"):
            config.override({"blocks": 3}, job(max_layers=3))


class Weights(unittest.TestCase):
    def test_audit(self):
        j = job(max_layers=2, expressions={"allow_missing": [r"(?:[^.]*\.)*(?:lm_head\.[^.]+)"]})
        allowed = ["model.lm_head.weight", "model.layers.2.mlp.weight", "model.layers.0.rotary_emb.inv_freq"]
        weights.audit(j, allowed[:1], allowed[1:], "torch")
        self.assertEqual({"missing": [], "unused": [], "allowed": sorted(allowed)}, j.load_audit)
        for missing, unused, want, reason in [
            (["a.weight"], [], "lacks a.weight", "it would be made up"),
            ([], ["b.weight"], "asks for none of b.weight", "perhaps the name is wrong"),
            (["model.layers.2.mlp.weight"], [], "lacks model.layers.2", "a layer that is cut off is not asked for"),
            ([], ["model.layers.1.mlp.weight"], "asks for none of model.layers.1", "a layer that is kept"),
            ([], ["xposition_ids"], "asks for none of xposition_ids", "names end at a dot"),
            ([f"w{i}" for i in range(9)], [], "w7 and 1 more", "long lists are cut"),
        ]:
            with self.subTest(reason), self.assertRaisesRegex(ModelError, want):
                weights.audit(j, missing, unused, "torch")

    def test_kinds(self):
        with tempfile.TemporaryDirectory() as folder:
            safetensors.write(folder + "/model.safetensors", [("a", "I32", [1], bytes(4)), ("b", "BF16", [1], bytes(2)), ("c", "U8", [1], b"\0")])
            j = SimpleNamespace(local=True, model=folder)
            for settings, floats, want, reason in [
                ({}, {"a", "b"}, r"a \(I32\): the model wants floats", "bfloat16 is a float, whatever its first letter"),
                ({"quantization_config": {}}, {"a", "b"}, "", "quantised on purpose"),
                ({}, {"b"}, "", "integers are no floats in the model either"),
            ]:
                with open(folder + "/config.json", "w") as f:
                    json.dump(settings, f)
                with self.subTest(reason):
                    if want:
                        self.assertRaisesRegex(ModelError, want, weights.audit_kinds, j, floats)
                    else:
                        weights.audit_kinds(j, floats)


class Tokens(unittest.TestCase):
    def test_check(self):
        for ids, steps, want, reason in [
            ([[1, 9]], 1, "", "the last id of the vocabulary"),
            ([[1, 10]], 1, "token id 10 at 1 of sequence 0", "the first beyond it"),
            ([[1], [-1]], 1, "token id -1 at 0 of sequence 1", "engines wrap around"),
            ([[]], 1, "no tokens", "nothing to run"),
            ([[1] * 4], 2, "", "the last token needs no position"),
            ([[1] * 4], 3, "need a length of 6, the model has 5", "longer than the model's positions"),
        ]:
            with self.subTest(reason):
                if want:
                    self.assertRaisesRegex(UsageError, want, tokens.check, {"name": "a"}, ids, 10, 5, steps)
                else:
                    tokens.check({"name": "a"}, ids, 10, 5, steps)

    def test_forced(self):
        self.assertIsNone(tokens.forced({"name": "a", "steps": 3}, 1), "the model feeds itself")
        self.assertEqual([[1, 2]], tokens.forced({"name": "a", "steps": 3, "forced": [[1, 2]]}, 1))
        for forced, reason in [([[1]], "one is missing"), ([[1, 2], [1, 2]], "a sequence too many")]:
            with self.subTest(reason), self.assertRaisesRegex(UsageError, "not 1 lists of 2 or more"):
                tokens.forced({"name": "a", "steps": 3, "forced": forced}, 1)

    def test_limits(self):
        for settings, want, reason in [
            ({"max_position_embeddings": 64}, 64, "most models"),
            ({"n_positions": 64, "n_ctx": 32}, 64, "GPT-2"),
            ({"max_position_embeddings": None, "max_seq_len": 64}, 64, "a key without a value"),
            ({"max_position_embeddings": 8, "text_config": {"max_position_embeddings": 64}}, 64, "the text's part"),
            ({"max_position_embeddings": 64, "rope_scaling": {"type": "dynamic"}}, 0, "angles stretch from there on"),
            ({}, 0, "nothing is said"),
        ]:
            with self.subTest(reason):
                self.assertEqual(want, config.Limits(settings).longest)

    def test_repeats(self):
        def cycle(period, n):
            return [i % period for i in range(n)]

        for ids, want, reason in [
            ([], 0, "nothing"),
            (cycle(1, 11), 0, "too short to tell"),
            (cycle(1, 12), 1, "one token"),
            (cycle(3, 32), 3, "three tokens"),
            (cycle(8, 32), 8, "the longest period that is looked for, four rounds"),
            (cycle(8, 31), 0, "not quite four rounds"),
            (cycle(9, 36), 0, "a longer period may be a list"),
            (cycle(20, 20) + cycle(2, 12), 2, "sense at first"),
            (cycle(1, 20) + [5], 0, "it found its way out"),
            (cycle(100, 32), 0, "text"),
        ]:
            with self.subTest(reason):
                self.assertEqual(want, tokens.repeats(ids))


class Labels(unittest.TestCase):
    def test_split(self):
        for label, want, reason in [
            ("model.a-input_0", ("model.a", "input_0"), "an input"),
            ("model.a(2)-output_1.x", ("model.a(2)", "output_1.x"), "an element of an output of the second call"),
            ("model.a-computed_0", ("model.a", "computed_0"), "what an input was before"),
            ("a-b-output", ("a-b", "output"), "a layer with a dash"),
            ("hidden-state", ("hidden-state", "tap"), "a tap"),
        ]:
            with self.subTest(reason):
                self.assertEqual(want, maxgraph.split_label(label))

    def test_plain(self):
        for name, want, reason in [
            ("model.layers.layers.3.mlp", "model.layers.3.mlp", "MAX's list names its list"),
            ("model.layers.3.mlp", "model.layers.3.mlp", "nothing to leave out"),
            ("model.encoder.layers.3", "model.encoder.layers.3", "the encoder's own layers"),
        ]:
            with self.subTest(reason):
                self.assertEqual(want, maxgraph.plain_name(name))


class Dump(unittest.TestCase):
    def test_output(self):
        with tempfile.TemporaryDirectory() as folder:
            j = job(out=folder + "/out", nonce="n")
            with self.assertRaisesRegex(ModelError, "recorded no tensor"), Output(j) as out:
                out.case(j.cases[0])
            with self.assertRaises(KeyError), Output(j) as out:
                raise KeyError("a model's error")
            self.assertEqual([], os.listdir(folder), "half a dump is none")
            with Output(j) as out:
                case = out.case(j.cases[0])
                tensors = [("m-output", "F32", (1, 2), bytes(range(8))), ("m-empty", "I64", (0,), b"")]
                safetensors.write(case.step(0) + "/all.safetensors", tensors)
                case.add(0, "m", "output", "all.safetensors", "m-output")
            with open(folder + "/out/a/run.json") as f:
                run = json.load(f)
            self.assertEqual(("n", [["0", "m", "output", "all.safetensors", "m-output"]]), (run["nonce"], run["order"]))
            read = safetensors.read(folder + "/out/a/0/all.safetensors")
            self.assertEqual({n: (d, list(s), b) for n, d, s, b in tensors}, {n: (d, s, bytes(b)) for n, (d, s, b) in read.items()})
            with self.assertRaisesRegex(UsageError, "exists already"), Output(j):
                pass


if __name__ == "__main__":
    unittest.main()
