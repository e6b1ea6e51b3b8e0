"""Token ids: made by the tokenizer, checked against the model, forced upon decode steps."""

from . import config
from .errors import JobError, ModelError, UsageError

TEMPLATE_HINT = "give the case a chat_template, or a prompt; cases: {auto: texts} in fixture.yaml plans no conversations and no images"


def tokenizer_of(job):
    """Returns a function that returns the job's tokenizer.

    Its first call loads it: cases with token ids need none.
    """
    kept = []

    def get():
        if not kept:
            kept.append(_load(job))
        return kept[0]

    return get


def _load(job):
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(job.tokenizer, revision=job.revision if job.tokenizer == job.model else None,
                                             trust_remote_code=job.trust_remote_code)  # fmt: skip
    except Exception as e:
        raise ModelError(f"tokenizer of {job.tokenizer}: {e}", "give token_ids, or name a tokenizer in model.tokenizer") from e


def known_ids(tokenizer):
    """How many ids the tokenizer has; None if there is no tokenizer.

    Models often have logits for more, which no engine samples.
    """
    try:
        return len(tokenizer())
    except JobError:
        return None


def encode(job, case, tokenizer):
    """Returns the token ids of a case, one list per sequence."""
    if case.get("token_ids"):
        return _given(case)
    if case.get("messages"):
        try:
            ids = tokenizer().apply_chat_template(messages(case), tools=case.get("tools"), chat_template=template(case), add_generation_prompt=True,
                                                  tokenize=True, return_dict=False)  # fmt: skip
        except Exception as e:  # a template is a program of its own
            raise UsageError(f"case {case['name']}: its chat template: {e}", TEMPLATE_HINT) from e
        return [list(map(int, ids))]
    if not case.get("prompts"):
        raise UsageError(f"case {case['name']} has no prompt, messages or token_ids")
    return [list(map(int, tokenizer()(p)["input_ids"])) for p in case["prompts"]]


def messages(case):
    """The conversation of a case, as templates take it: with calls of tools whose arguments are objects."""
    return [{"content": "", **m} for m in case["messages"]]


def template(case):
    """The case's own chat template; None for the tokenizer's."""
    if not case.get("chat_template"):
        return None
    with open(case["chat_template"], encoding="utf-8") as f:
        return f.read()


def _given(case):
    return [list(map(int, ids)) for ids in case["token_ids"]]


def check(case, ids, vocab, longest, steps):
    """Refuses ids outside the vocabulary and sequences beyond the model's length.

    Engines read past their tables without a word.
    """
    for row, sequence in enumerate(ids):
        if not sequence:
            raise UsageError(f"case {case['name']}: sequence {row} has no tokens")
        for i, t in enumerate(sequence):
            if t < 0 or vocab and t >= vocab:
                raise UsageError(f"case {case['name']}: token id {t} at {i} of sequence {row} is not in 0…{(vocab or 0) - 1}",
                                 "look at the tokenizer: it is that of another model")  # fmt: skip
        length = len(sequence) + steps - 1
        if longest and length > longest:
            raise UsageError(f"case {case['name']}: {len(sequence)} tokens and {steps} steps need a length of {length}, the model has {longest}",
                             "shorten the case, or set engine.max_length if the model's own limit is higher")  # fmt: skip


def check_early(job):
    """Refuses what can be refused before an engine is imported, which takes half a minute."""
    if not job.local or job.task == "module":
        return
    limits = config.Limits(config.override(config.load(job.model), job))
    for case in job.cases:
        if case.get("token_ids"):
            check(case, _given(case), limits.vocab, limits.longest, case.get("steps") or 1)


def forced(case, rows):
    """The tokens that decode steps are fed, by sequence; None where the model feeds itself."""
    tokens = case.get("forced")
    if not tokens:
        return None
    steps = case.get("steps") or 1
    if len(tokens) != rows or any(len(f) < steps - 1 for f in tokens):
        raise UsageError(f"case {case['name']}: forced tokens are not {rows} lists of {steps - 1} or more")
    return tokens


def steps(ids, n):
    """The forward passes of n steps: all sequences, and then a token more of each in every pass."""
    lengths = list(enumerate(map(len, ids)))
    return [[{"sequence": s, "from": m + k - 1 if k else 0, "to": m + k} for s, m in lengths] for k in range(n)]


def follow(forced, k, rows, best):
    """Goes on with each sequence by the token that is forced upon step k + 1, or else by best(), the model's own."""
    for row, t in zip(rows, [f[k] for f in forced] if forced and k < len(forced[0]) else best()):
        row.append(int(t))


def repeats(ids):
    """The period (1…8) of an endless repetition at the end, 0 if there is none.

    It takes 4 rounds and 12 tokens to tell.
    """
    for period in range(1, 9):
        span = max(4 * period, 12)
        tail = ids[-span:]
        if len(tail) == span and all(tail[i] == tail[i - period] for i in range(period, span)):
            return period
    return 0
