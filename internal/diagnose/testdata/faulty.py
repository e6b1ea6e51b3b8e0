"""faulty.py RUNNER: texts of a tokenizer, and of copies of it with a fault each, as JSON.

[{"fault", "cause", "golden": [text, …], "actual": [text, …]}, …]
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
from goparity import texts  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
SAMPLE = ["Golden parity tests compare every layer of a ported model with the reference.", "You are brief. system user assistant What is parity?"]
TEMPLATE = ("{{ bos_token }}{% if tools %}{{ tools | tojson }}\n{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")  # fmt: skip


def train(kind):
    """A trained tokenizer: Unigram's training is another each time."""
    if kind == "bytes":
        t = Tokenizer(models.BPE(unk_token=None))
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    else:
        t = Tokenizer(models.Unigram())
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=["<unk>", *SPECIAL], unk_token="<unk>")
    t.train_from_iterator(SAMPLE * 4, trainer)
    return t.to_str()


TRAINED = {kind: train(kind) for kind in ("bytes", "metaspace")}


def build(kind, template=TEMPLATE, bos=True, eos=False, special=SPECIAL, prefix=False):
    t = Tokenizer.from_str(TRAINED[kind])
    if kind == "bytes":
        t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=prefix), decoders.ByteLevel()
    else:
        t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(prepend_scheme="never" if prefix else "first"), decoders.Metaspace()
    single = ("<s> " if bos else "") + "$A" + (" </s>" if eos else "")
    t.post_processor = processors.TemplateProcessing(single=single, special_tokens=[(s, t.token_to_id(s)) for s in ("<s>", "</s>")])
    if special != SPECIAL:  # the vocabulary is the same, the tokens are not special
        known = json.loads(t.to_str())
        known["added_tokens"] = [a for a in known["added_tokens"] if a["content"] not in SPECIAL or a["content"] in special]
        t = Tokenizer.from_str(json.dumps(known))
    return PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>", chat_template=template)


CASES = [
    {"prompts": ["What is parity?"]},
    {"prompts": ["You are <|im_start|>user brief\n"]},
    {"messages": [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "What is parity?"}]},
    {"messages": [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "What is parity?"},
                  {"role": "assistant", "content": "Golden."}, {"role": "user", "content": "And the reference?"}],
     "tools": [{"type": "function", "function": {"name": n, "parameters": {}}} for n in ("compare", "record")]},
]
FAULTS = [  # name, of which cases (0…2), cause, and what changes
    ("none", (0, 1, 2, 3), "", {}),
    ("BOS left out", (0, 1), "text/bos-missing", {"bos": False}),
    ("EOS added", (0, 1), "text/eos-added", {"eos": True}),
    ("specials unknown", (1,), "text/special", {"special": SPECIAL[:2]}),
    ("space before", (0,), "text/whitespace", {"prefix": True}),
    ("BOS in the template twice", (2,), "text/bos-twice", {"template": "{{ bos_token }}" + TEMPLATE}),
    ("no BOS in the template", (2,), "text/bos-missing", {"template": TEMPLATE.replace("{{ bos_token }}", "")}),
    ("no prompt for an answer", (2,), "text/template", {"template": TEMPLATE.split("{% if add")[0]}),
    ("system left out", (2,), "text/template", {"template": TEMPLATE.replace("messages %}", "messages if m.role != 'system' %}", 1)}),
    ("line breaks left out", (2,), "text/whitespace", {"template": TEMPLATE.replace("\n", "")}),
    ("earlier turns left out", (3,), "text/template", {"template": TEMPLATE.replace("messages %}", "[messages[0], messages[-1]] %}", 1)}),
    ("system at the end", (3,), "text/template", {"template": TEMPLATE.replace("messages %}", "messages[1:] + messages[:1] %}", 1)}),
    ("answers left out", (3,), "text/template", {"template": TEMPLATE.replace("messages %}", "messages if m.role != 'assistant' %}", 1)}),
    ("tools left out", (3,), "text/template", {"template": TEMPLATE.replace("if tools", "if false")}),
    ("another template", (2,), "text/template", {"template": "{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}"}),
]

out = []
for kind in TRAINED:
    right = build(kind)
    for fault, cases, cause, change in FAULTS:
        wrong = build(kind, **change)
        if kind == "metaspace" and "special" in change:
            continue  # its vocabulary has them as pieces, too
        for c in cases:
            golden, actual = texts.reference(CASES[c], lambda: right), texts.reference(CASES[c], lambda wrong=wrong: wrong)
            for a in actual:
                del a["mistakes"]
            out.append({"fault": f"{kind}: {fault}, case {c}", "cause": cause, "golden": golden, "actual": actual})
json.dump(out, sys.stdout)
