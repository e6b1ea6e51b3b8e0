"""What the runners share: the job, progress, the dump folder, patterns, tokens. Imports neither torch nor MAX."""

import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager
from datetime import datetime, timezone

try:
    import resource
except ImportError:  # Windows
    resource = None


class JobError(Exception):
    """A job that cannot be done. kind is the class by which the caller tells causes apart."""

    kind = "model"

    def __init__(self, message, hint=""):
        super().__init__(message)
        self.hint = hint


class ModelError(JobError):
    """The model, its weights or its configuration."""


class InfraError(JobError):
    """The installation or the machine: no engine, no driver, no memory."""

    kind = "infra"


class UsageError(JobError):
    """What was asked for: a wrong token id, too many tokens, an unknown option."""

    kind = "usage"


# --- progress


def _progress():
    fd, handle = os.environ.get("PARITY_PROGRESS_FD", ""), os.environ.get("PARITY_PROGRESS_HANDLE", "")
    if handle.isdigit():
        import msvcrt

        fd = str(msvcrt.open_osfhandle(int(handle), 0))
    if not fd.isdigit():
        return None
    try:
        return os.fdopen(int(fd), "w", encoding="utf-8", closefd=False)
    except OSError:
        return None


_pipe = _progress()


def emit(**event):
    """Writes one JSON line to the pipe of PARITY_PROGRESS_FD (on Windows PARITY_PROGRESS_HANDLE). Nobody may be reading any more."""
    if _pipe is None:
        return
    try:
        _pipe.write(json.dumps(event) + "\n")
        _pipe.flush()
    except (OSError, ValueError):
        pass


def warn(text):
    print("warning: " + text, file=sys.stderr, flush=True)
    emit(warning=text)


class Clock:
    """Seconds by phase: import, load, compile, forward, write."""

    def __init__(self):
        self.seconds = {}

    @contextmanager
    def phase(self, name):
        emit(phase=name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start
        emit(phase=name, seconds=round(self.seconds[name], 3))


_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_RUNNER = os.path.dirname(_OURS[:-1]) + os.sep  # with __main__.py
_DRIVER = re.compile(r"CUDA|cuDNN|cuBLAS|NCCL|HIP error|hipError|ROCm|driver version|out of memory|OUT_OF_MEMORY", re.I)


def blame(error):
    """Whose an unexpected exception is, and where: "infra" (the installation or the machine), "bug" (ours) or "model", and "file:line".

    The frame that counts is the innermost one outside of the standard library: ours, an installed package's, or the user's own.
    """
    frames = [(_owner(f.filename), f) for f in traceback.extract_tb(error.__traceback__)]
    frames = [(owner, f) for owner, f in frames if owner != "python"] or [("ours", f) for _, f in frames[-1:]]
    if not frames:
        return "bug", ""
    owner, last = frames[-1]
    mine = [f for o, f in frames if o == "user"]
    at = mine[-1] if mine else last
    place = f"{at.filename}:{at.lineno}"
    if isinstance(error, ImportError) or owner != "user" and (isinstance(error, OSError) or _DRIVER.search(str(error))):
        return "infra", place
    return "bug" if owner == "ours" else "model", place


def _owner(file):
    path = os.path.abspath(file)
    if path.startswith(_OURS):
        return "ours"
    if f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
        return "package"
    if file.startswith("<") or path.startswith(os.path.dirname(os.path.abspath(os.__file__)) + os.sep) or path.startswith(_RUNNER):
        return "python"
    return "user"


# --- the job

# Observers of Job: the final outputs, as the model returns them, are written too, or they alone.
SEEN, BLIND = "seen", "blind"


class Job:
    """The job file. Keys that are absent have the zero value of their kind."""

    def __init__(self, raw):
        get = raw.get
        self.engine = get("engine", "")
        self.nonce = get("nonce", "")
        self.out = get("out", "")
        self.model = get("model", "")
        self.local = get("local", False)
        self.revision = get("revision") or None
        self.task = get("task", "")
        self.trust_remote_code = get("trust_remote_code", False)
        self.tokenizer = get("tokenizer") or self.model
        self.oracle = get("oracle", "")
        self.device = get("device") or "cpu"
        self.encoding = get("encoding", "")
        self.max_layers = get("max_layers") or 0
        self.overrides = get("hf_config_overrides") or {}
        self.config = get("engine_config") or {}
        self.allow_missing = Patterns(get("allow_missing"))
        capture = get("capture") or {}
        self.layers, self.ports = Patterns(capture.get("layers")), Patterns(capture.get("ports"))
        self.injected = get("mode") == "injected"
        self.observer = get("observer", "")
        self.style, self.precision = get("print") or "max-checkpoint", get("precision") or 6
        self.load_audit = {"missing": [], "unused": [], "allowed": []}
        self.sanity = get("sanity_tokens", 0)
        self.skip_sanity = get("skip_sanity", "")
        self.online = get("online", False)
        self.cases = get("cases") or []
        self._check()

    @classmethod
    def load(cls, path):
        try:
            with open(path, encoding="utf-8") as f:
                raw = json.load(f)
        except (OSError, ValueError) as e:
            raise UsageError(f"{path}: {e}") from e
        if not isinstance(raw, dict) or raw.get("schema") != 1:
            raise UsageError(f"{path}: not a job of schema 1", "the runner and the program that calls it are of different versions")
        return cls(raw)

    def _check(self):
        if not self.out or not self.cases:
            raise UsageError("the job names no output folder or no case")
        if self.device not in ("cpu", "gpu"):
            raise UsageError(f"unknown device {self.device!r}", "cpu and gpu are known")
        if self.style not in ("compact", "full", "binary", "max-checkpoint"):
            raise UsageError(f"unknown print style {self.style!r}", "compact, full, binary and max-checkpoint are known")
        if self.observer not in ("", SEEN, BLIND):
            raise UsageError(f"unknown observer {self.observer!r}", f"{SEEN} and {BLIND} are known")
        if self.injected and not all(c.get("golden") for c in self.cases):
            raise UsageError("an injected run needs the golden inputs of each case")
        if self.task == "module" and not self.oracle:
            raise UsageError("task module needs an oracle file")
        if self.task != "module" and not self.model:
            raise UsageError("the job names no model")
        if self.local:
            if not os.path.isdir(self.model):
                raise ModelError(f"there is no model folder {self.model}", "model.path is relative to fixture.yaml")
            if not os.path.isfile(os.path.join(self.model, "config.json")):
                raise ModelError(f"{self.model} has no config.json", "a model folder holds config.json, *.safetensors and the tokenizer's files")

    def wants(self, layer, port):
        """Whether a port is to be recorded. Layers match by their end, ports whole, an element by its whole port too."""
        if self.observer == BLIND:
            return False
        if self.layers and not self.layers.match(layer):
            return False
        return not self.ports or self.ports.match_whole(port) or self.ports.match_whole(port.split(".")[0])


def versions(*packages):
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for p in packages:
        try:
            found[p] = importlib.metadata.version(p)
        except importlib.metadata.PackageNotFoundError:
            pass
    if "transformers" in found and os.environ.get("PARITY_TRANSFORMERS"):
        found["transformers"] += " (edited copy)"
    return found


def about(cls):
    """Tells the model's class and source file, and gives what run.json keeps of them: no folder of this machine."""
    try:
        file = inspect.getsourcefile(cls) or ""
    except (TypeError, OSError):
        file = ""
    name = f"{cls.__module__}.{cls.__qualname__}"
    emit(model={"class": name, "file": file})
    return {"model_class": name, "model_file": os.path.basename(file)}


def need(package, install):
    """Says how to install an engine that is not there, before its import fails in some odd way."""
    if importlib.util.find_spec(package) is None:
        raise InfraError(f"{sys.executable} has no package {package}", f"install it: {install}")


class Spec:
    """What an oracle is told: case, prompts, token_ids, model, device, dtype, max_layers, hf_config_overrides, steps."""

    def __init__(self, job, case):
        self.case = case["name"]
        self.prompts = case.get("prompts") or []
        self.messages = case.get("messages") or []
        self.token_ids = case.get("token_ids") or []
        self.images = case.get("images") or []
        self.steps = case.get("steps") or 1
        self.model = job.model
        self.revision = job.revision
        self.device = job.device
        self.dtype = job.encoding or "float32"
        self.max_layers = job.max_layers
        self.hf_config_overrides = dict(job.overrides)


def oracle(job, function):
    """Loads the oracle file and gives its function of this name."""
    if not os.path.isfile(job.oracle):
        raise UsageError(f"there is no oracle file {job.oracle}")
    spec = importlib.util.spec_from_file_location("parity_oracle", job.oracle)
    module = importlib.util.module_from_spec(spec)
    sys.modules["parity_oracle"] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(job.oracle)))
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise UsageError(f"{job.oracle} has no function {function}(spec)")
    return getattr(module, function)


# --- patterns, as package glob of the Go side reads them


class Patterns:
    """A list of patterns: * within a segment, ** whole segments, ?, [a-z], [!a-z], {a,b}. True if there are any."""

    def __init__(self, patterns):
        self.patterns = list(patterns or [])
        whole = "|".join(f"(?:{_expression(alt)})" for p in self.patterns for alt in _alternatives(p))
        self._whole = re.compile(f"(?:{whole})\\Z")
        self._tail = re.compile(f"(?:^|.*\\.)(?:{whole})\\Z", re.S)

    def __bool__(self):
        return bool(self.patterns)

    def match(self, name):
        """Matches the name or its end at a dot."""
        return bool(self.patterns) and self._tail.match(name) is not None

    def match_whole(self, name):
        return bool(self.patterns) and self._whole.match(name) is not None


def _alternatives(pattern):
    """Writes {a,b} out. Groups may be nested."""
    i, depth, start, cuts = 0, 0, -1, []
    while i < len(pattern):
        c = pattern[i]
        if c == "\\":
            i += 1
        elif c == "[":
            end = pattern.find("]", i + 2)
            i = end if end > 0 else i
        elif c == "{":
            depth += 1
            if depth == 1:
                start, cuts = i, [i]
        elif c == "," and depth == 1:
            cuts.append(i)
        elif c == "}" and depth > 0:
            depth -= 1
            if depth == 0:
                cuts.append(i)
                parts = [pattern[a + 1 : b] for a, b in zip(cuts, cuts[1:])]
                return [alt for p in parts for alt in _alternatives(pattern[:start] + p + pattern[i + 1 :])]
        i += 1
    return [pattern]


_TOKEN = re.compile(r"\\(?P<escaped>.)|\[(?P<negated>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<wild>[*?])|(?P<plain>.)", re.S)


def _expression(pattern):
    """The regular expression of a pattern without groups."""
    segments, out, due = pattern.split("."), "", False
    for i, segment in enumerate(segments):
        if segment == "**":
            if due:
                out += r"(?:\.[^.]+)*"
            else:
                out += r"[^.]+(?:\.[^.]+)*" if i == len(segments) - 1 else r"(?:[^.]+\.)*"
            continue
        if due:
            out += r"\."
        due = True
        if segment == "*":
            out += "[^.]+"
            continue
        for token in _TOKEN.finditer(segment):
            if token["wild"]:
                out += "[^.]*" if token["wild"] == "*" else "[^.]"
            elif token["set"] is not None:
                inside = re.sub(r"([\[\]^&~|])", r"\\\1", token["set"])
                out += f"[^.{inside}]" if token["negated"] else f"(?!\\.)[{inside}]"
            else:
                out += re.escape(token["escaped"] or token["plain"])
    return out


# --- the dump folder


class Output:
    """The folder of a job, OUT/<case>/<step>/… with OUT/<case>/run.json. It is written as OUT.tmp and renamed when all is done."""

    def __init__(self, job):
        self.job = job
        self.clock = Clock()
        self.versions = {}
        self.about = {}  # of the model, in every run.json
        self.tmp = job.out + ".tmp"
        self._cases = []

    def __enter__(self):
        if os.path.exists(self.job.out):
            raise UsageError(f"{self.job.out} exists already", "a run is written to a new folder, never over an old one")
        shutil.rmtree(self.tmp, ignore_errors=True)
        os.makedirs(self.tmp)
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            shutil.rmtree(self.tmp, ignore_errors=True)
            return
        with self.clock.phase("write"):
            if not any(c.order for c in self._cases):
                raise ModelError("the run recorded no tensor", "see the patterns of capture, and whether the model calls its layers")
            for c in self._cases:
                c.finish()
            os.rename(self.tmp, self.job.out)

    def case(self, case):
        c = CaseOutput(self, case, os.path.join(self.tmp, case["name"]))
        self._cases.append(c)
        return c


class CaseOutput:
    """The dump of one case."""

    def __init__(self, out, case, path):
        self.out, self.case, self.path = out, case, path
        self.order, self.info = [], {}
        os.makedirs(path)

    def step(self, step):
        """Makes and gives the folder of a step."""
        path = os.path.join(self.path, str(step))
        os.makedirs(path, exist_ok=True)
        return path

    def returned(self, step, values):
        """Keeps what the model returns, [(dtype as .safetensors names it, shape, bytes)]. A run with hooks has it beside its layers, in no order."""
        job, file = self.out.job, "returned.safetensors"
        write_safetensors(os.path.join(self.step(step), file), [(f"returned-output_{i}", *v) for i, v in enumerate(values)])
        if job.observer == BLIND:
            for i in range(len(values)):
                self.add(step, "returned", f"output_{i}", file, f"returned-output_{i}")

    def add(self, step, layer, port, file, name=None):
        self.order.append([str(step), layer, port, file] + ([name] if name else []))

    def finish(self):
        job, out = self.out.job, self.out
        run = {
            "schema": 1,
            "engine": job.engine,
            "versions": out.versions,
            "device": job.device,
            "encoding": job.encoding,
            "mode": "injected" if job.injected else "standard",
            "case": self.case["name"],
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "nonce": job.nonce,
            "seconds": {k: round(v, 3) for k, v in out.clock.seconds.items()},
            "peak_rss_bytes": peak_rss(),
            "order": self.order,
            "load_audit": job.load_audit,
        }
        if len(self.case.get("prompts") or []) == 1:
            run["prompt"] = self.case["prompts"][0]
        run.update(out.about)
        run.update(self.info)
        write_json(os.path.join(self.path, "run.json"), run)


def peak_rss():
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def write_json(path, value):
    """Writes an object, each entry of a list of lists on a line of its own."""
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        lines = []
        for k, v in value.items():
            if isinstance(v, list) and v and all(isinstance(e, list) for e in v):
                text = "[\n  " + ",\n  ".join(json.dumps(e) for e in v) + "\n ]"
            else:
                text = json.dumps(v, indent=1).replace("\n", "\n ")
            lines.append(f" {json.dumps(k)}: {text}")
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".tmp", path)


def read_safetensors(path):
    """The tensors of a .safetensors file: name → (dtype as the format names it, shape, bytes)."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = memoryview(f.read())
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}


def write_safetensors(path, tensors):
    """Writes [(name, dtype, shape, bytes)] as one .safetensors, dtype as the format names it ("F32"). Data begin at a multiple of 8."""
    header, at = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little"))
        f.write(text)
        for *_, data in tensors:
            f.write(data)


# --- configuration of a Hugging Face model

LAYER_KEYS = ["num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth", "encoder_layers", "decoder_layers",
              "num_encoder_layers", "num_decoder_layers"]  # fmt: skip
SUB_CONFIGS = ["text_config", "vision_config", "language_config", "llm_config", "encoder_config", "decoder_config"]
PER_LAYER_KEYS = ["layer_types", "no_rope_layers"]  # lists with one entry a layer


def override_config(config, job):
    """Applies max_layers and hf_config_overrides to the dict of a config.json. A key that it does not have is an error."""
    if job.max_layers:
        hit = False
        for part in [config] + [config[k] for k in SUB_CONFIGS if isinstance(config.get(k), dict)]:
            for key in LAYER_KEYS:
                if isinstance(part.get(key), int):
                    part[key], hit = min(part[key], job.max_layers), True
            for key in PER_LAYER_KEYS:
                if isinstance(part.get(key), list):
                    part[key] = part[key][: job.max_layers]
        if not hit:
            raise UsageError(f"max_layers: the configuration has none of the keys {', '.join(LAYER_KEYS)}",
                             "set the model's own key with hf_config_overrides, or max_layers: all")  # fmt: skip
    for dotted, value in job.overrides.items():
        *path, key = dotted.split(".")
        part = config
        for p in path:
            part = part.get(p) if isinstance(part, dict) else None
        if not isinstance(part, dict):
            raise UsageError(f"hf_config_overrides: {dotted}: the configuration has no section {'.'.join(path)}")
        if key not in part:
            near = sorted(part, key=lambda k: -_likeness(k, key))[:1]
            raise UsageError(f"hf_config_overrides: {dotted}: the configuration has no such key", f"did you mean {near[0]}?" if near else "")
        part[key] = value
    return config


def _likeness(a, b):
    import difflib

    return difflib.SequenceMatcher(None, a, b).ratio()


_BLOCK = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")


def cut_off(name, job):
    """Whether a weight belongs to a block that max_layers leaves out."""
    if not job.max_layers:
        return False
    m = _BLOCK.search(name)
    return m is not None and int(m[1]) >= job.max_layers


# Buffers that old checkpoints carry and no model loads: they are computed from the configuration.
_COMPUTED = Patterns(["rope_freqs.weight", "rotary_emb.inv_freq", "position_ids", "attention.bias", "attn.bias", "masked_bias"])


def audit(job, missing, unused, engine):
    """Fails by name if weights that the model asks for are not in the checkpoint, or weights in it were asked for by nobody. What may be
    so is kept for run.json."""
    fine = {n for n in missing if job.allow_missing.match(n)}
    fine |= {n for n in unused if job.allow_missing.match(n) or cut_off(n, job) or _COMPUTED.match(n)}
    missing, unused = sorted(set(missing) - fine), sorted(set(unused) - fine)
    for key, names in (("missing", missing), ("unused", unused), ("allowed", fine)):
        job.load_audit[key] = sorted({*job.load_audit[key], *names})
    said = []
    if missing:
        said.append(f"the checkpoint lacks {_list(missing)}, which the model asks for")
    if unused:
        said.append(f"the model asks for none of {_list(unused)}, which the checkpoint has")
    if said:
        what = "zeros" if engine == "max" else "random values"
        names = missing + unused
        allow = f"[{', '.join(names)}]" if len(names) <= 4 else "[…] (* is a part of one name between dots, ** several)"
        raise ModelError("weights: " + "; ".join(said),
                         f"{engine} would run with {what} in place of missing weights; if that is meant, write allow_missing: {allow}")  # fmt: skip


def audit_kinds(job, floats):
    """Fails by name if a local checkpoint has integers for some of the weights of which the model computes in floats: Transformers casts them
    without a word. Quantised checkpoints do so on purpose, and their config.json says it."""
    if not job.local or "quantization_config" in load_config_dict(job.model):
        return
    wrong = []
    for file in sorted(os.listdir(job.model)):
        if file.endswith(".safetensors"):
            with open(os.path.join(job.model, file), "rb") as f:
                header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
            header.pop("__metadata__", None)
            wrong += [f"{n} ({t['dtype']})" for n, t in header.items() if n in floats and t["dtype"][0] in "IUB" and t["dtype"] != "BF16"]
    if wrong:
        raise ModelError("weights of the wrong dtype: " + _list(wrong) + ": the model wants floats", "config.json and the checkpoint are of different models")


def _list(names, most=8):
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@contextmanager
def overridden_folder(job):
    """Gives the model's folder; with overrides, a temporary one with its own config.json and links to all other files."""
    if not job.max_layers and not job.overrides:
        yield job.model
        return
    source = job.model
    if not job.local:
        from huggingface_hub import snapshot_download

        source = snapshot_download(job.model, revision=job.revision)
    with tempfile.TemporaryDirectory(prefix="goparity-model-") as folder:
        for name in os.listdir(source):
            if name != "config.json":
                os.symlink(os.path.abspath(os.path.join(source, name)), os.path.join(folder, name))
        write_json(os.path.join(folder, "config.json"), override_config(load_config_dict(source), job))
        yield folder


# --- tokens


def once(make):
    """A function that makes something at its first call and keeps it."""
    kept = []

    def get():
        if not kept:
            kept.append(make())
        return kept[0]

    return get


def load_tokenizer(job):
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(job.tokenizer, revision=job.revision if job.tokenizer == job.model else None,
                                             trust_remote_code=job.trust_remote_code)  # fmt: skip
    except Exception as e:
        raise ModelError(f"tokenizer of {job.tokenizer}: {e}", "give token_ids, or name a tokenizer in model.tokenizer") from e


def known_ids(tokenizer):
    """How many ids the tokenizer has; None if there is none. A model often has logits for more, which no engine samples."""
    try:
        return len(tokenizer())
    except JobError:
        return None


def encode(job, case, tokenizer):
    """The token ids of a case, one list a sequence. tokenizer is a function that loads one: token_ids need none."""
    if case.get("token_ids"):
        return [list(map(int, ids)) for ids in case["token_ids"]]
    if case.get("images"):
        raise UsageError(f"case {case['name']}: images need an oracle file", "write reference(spec) and candidate(spec) in oracle.py")
    if case.get("messages"):
        template = None
        if case.get("chat_template"):
            with open(case["chat_template"], encoding="utf-8") as f:
                template = f.read()
        messages = [{"role": m["role"], "content": m["content"]} for m in case["messages"]]
        try:
            ids = tokenizer().apply_chat_template(messages, chat_template=template, add_generation_prompt=True, tokenize=True, return_dict=False)
        except ValueError as e:
            raise UsageError(f"case {case['name']}: {e}", "give the case a chat_template, or a prompt") from e
        return [list(map(int, ids))]
    if not case.get("prompts"):
        raise UsageError(f"case {case['name']} has no prompt, messages or token_ids")
    return [list(map(int, tokenizer()(p)["input_ids"])) for p in case["prompts"]]


def check_ids(case, ids, vocab, longest, steps):
    """Token ids within the vocabulary, and the sequence within the model's length: engines read past their tables without a word."""
    for row, sequence in enumerate(ids):
        if not sequence:
            raise UsageError(f"case {case['name']}: sequence {row} has no tokens")
        for i, t in enumerate(sequence):
            if t < 0 or vocab and t >= vocab:
                raise UsageError(f"case {case['name']}: token id {t} at {i} of sequence {row} is not in 0…{(vocab or 0) - 1}",
                                 "look at the tokenizer: it is that of another model")  # fmt: skip
        need_length = len(sequence) + steps - 1
        if longest and need_length > longest:
            raise UsageError(f"case {case['name']}: {len(sequence)} tokens and {steps} steps need a length of {need_length}, the model has {longest}",
                             "shorten the case, or set engine.max_length if the model's own limit is higher")  # fmt: skip


class Limits:
    """Vocabulary and positions of a model, from the dict of its config.json; 0 where it does not say."""

    def __init__(self, config):
        text = next((config[k] for k in ("text_config", "language_config", "llm_config") if isinstance(config.get(k), dict)), {})
        self.vocab = text.get("vocab_size") or config.get("vocab_size") or 0
        self.longest = text.get("max_position_embeddings") or config.get("max_position_embeddings") or 0


def check_early(job):
    """What can be refused before an engine is imported, which takes half a minute."""
    if not job.local or job.task == "module":
        return
    limits = Limits(override_config(load_config_dict(job.model), job))
    for case in job.cases:
        if case.get("token_ids"):
            check_ids(case, encode(job, case, None), limits.vocab, limits.longest, case.get("steps") or 1)


def forced_tokens(case, rows):
    """The tokens that decode steps are fed, by sequence; None where the model feeds itself."""
    forced = case.get("forced")
    if not forced:
        return None
    steps = case.get("steps") or 1
    if len(forced) != rows or any(len(f) < steps - 1 for f in forced):
        raise UsageError(f"case {case['name']}: forced tokens are not {rows} lists of {steps - 1} or more")
    return forced


def repeats(ids):
    """The period of an endless repetition at the end (at least 4 rounds and 12 tokens of it, period up to 8), 0 if there is none."""
    for period in range(1, 9):
        span = max(4 * period, 12)
        tail = ids[-span:]
        if len(tail) == span and all(tail[i] == tail[i - period] for i in range(period, span)):
            return period
    return 0


def load_config_dict(folder):
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            config = json.load(f)
    except (OSError, ValueError) as e:
        raise ModelError(f"{folder}/config.json: {e}") from e
    if not isinstance(config, dict):
        raise ModelError(f"{folder}/config.json is no JSON object")
    return config
