"""What an engine's own tokenizer and template make of a case's prompts: key text of run.json."""

import asyncio
import json

from . import tokens
from .progress import warn


def asked(case):
    """The things that are asked: (API path, key of the entry, value)."""
    return [("completion", "prompt", p) for p in case.get("prompts") or []] + (
        [("chat", "messages", tokens.messages(case))] if case.get("messages") else [])  # fmt: skip


# --- the reference


def reference(case, tokenizer):
    """Returns the texts of a case, each with what the tokenizer makes of it when it is used wrongly."""
    out = []
    template, tools = tokens.template(case), case.get("tools")
    for path, key, value in asked(case):
        tok = tokenizer()
        entry = {"path": path, key: value}
        if key == "messages":
            entry["rendered"] = tok.apply_chat_template(value, tools=tools, chat_template=template, add_generation_prompt=True, tokenize=False)
            entry["token_ids"] = _chat(tok, value, template, tools)
        else:
            entry["token_ids"] = _ids(tok(value))
        entry["pieces"] = _pieces(tok, entry["token_ids"])
        entry["mistakes"] = _mistakes(tok, entry, template, tools)
        out.append(entry)
    return out


def _mistakes(tok, right, template, tools):
    """What others might make of it, each other than the right ids and those before it."""
    made, seen = [], [right["token_ids"]]
    wrong = _of_messages if "messages" in right else _of_prompt
    for cause, text, ids in wrong(tok, right, template, tools):
        if ids and ids not in seen:
            seen.append(ids)
            made.append({"cause": cause, "text": text, "token_ids": ids})
    return made


def _of_prompt(tok, right, template, tools):
    prompt = right["prompt"]
    for text, other in (("white space around the prompt is cut off", prompt.strip()), ("white space before the prompt is cut off", prompt.lstrip()),
                        ("white space after the prompt is cut off", prompt.rstrip()), ("a space is put before the prompt", " " + prompt),
                        ("a space is put after the prompt", prompt + " "), ("a line break is put after the prompt", prompt + "\n"),
                        ("line breaks are read as spaces", prompt.replace("\n", " ")), ("white space is collapsed", " ".join(prompt.split())),
                        ("line breaks are written as \\n", prompt.replace("\n", "\\n"))):  # fmt: skip
        yield "text/whitespace", text, _ids(tok(other))
    yield "text/special", "special tokens in the prompt are read as plain text", _split(tok, prompt)
    yield "text/special", "the tokenizer adds no special tokens", _ids(tok(prompt, add_special_tokens=False))
    if tok.bos_token and right["token_ids"][:1] == [tok.bos_token_id]:
        yield "text/bos-twice", f"{tok.bos_token!r} is put before the prompt, and the tokenizer adds it again", _ids(tok(tok.bos_token + prompt))
    elif tok.bos_token:
        yield "text/special", f"{tok.bos_token!r} is put before the prompt", _ids(tok(tok.bos_token + prompt))
    for text, messages in (("the prompt is sent as a conversation", [{"role": "user", "content": prompt}]),):
        yield "text/template", text, _tried(lambda: _chat(tok, messages, template))


def _of_messages(tok, right, template, tools):
    messages, rendered = right["messages"], right["rendered"]
    yield "text/bos-twice", "the rendered text is tokenized as a prompt, and gets its special tokens again", _ids(tok(rendered))
    yield "text/template", "the template is rendered without the prompt for an answer", _tried(lambda: _chat(tok, messages, template, tools, False))
    for role in ("system", "assistant", "tool"):
        rest = [m for m in messages if m["role"] != role]
        if rest and len(rest) < len(messages):
            yield "text/template", f"messages of role {role} are left out", _tried(lambda rest=rest: _chat(tok, rest, template, tools))
    for text, other in _turns(messages):
        yield "text/template", text, _tried(lambda other=other: _chat(tok, other, template, tools))
    yield "text/template", "no system message is added", _tried(lambda: _chat(tok, [{"role": "system", "content": ""}, *messages], template, tools))
    if any("tool_calls" in m for m in messages):
        silent = [{k: v for k, v in m.items() if k != "tool_calls"} for m in messages]
        yield "text/template", "the calls of tools are left out", _tried(lambda: _chat(tok, silent, template, tools))
        yield "text/template", "the arguments of calls are given to the template as texts", _tried(lambda: _chat(tok, _as_texts(messages), template, tools))
    if tools:
        yield "text/template", "the tools are left out", _tried(lambda: _chat(tok, messages, template))
        yield "text/template", "only the first tool is named", _tried(lambda: _chat(tok, messages, template, tools[:1]))
    yield "text/template", "the messages are sent without a template", _ids(tok("\n".join(m["content"] for m in messages)))
    yield "text/template", "the last message is sent without a template", _ids(tok(messages[-1]["content"]))
    stripped = [{**m, "content": m["content"].strip()} for m in messages]
    yield "text/whitespace", "white space around the messages is cut off", _tried(lambda: _chat(tok, stripped, template, tools))
    for text, other in (("white space after the text is cut off", rendered.rstrip()), ("line breaks after the text are cut off", rendered.rstrip("\n")),
                        ("a line break is put after the text", rendered + "\n"), ("a space is put before the text", " " + rendered)):  # fmt: skip
        yield "text/whitespace", text, _plain(tok, other)
    yield "text/special", "special tokens in the text are read as plain text", _split(tok, rendered, add_special_tokens=False)
    yield "text/special", "special tokens in the text are read as plain text, and others are added", _split(tok, rendered)
    yield "text/eos-added", "the text ends with the token that ends an answer", right["token_ids"] + [tok.eos_token_id] if tok.eos_token_id is not None else None


def _as_texts(messages):
    """Messages with the arguments of calls as OpenAI's API has them: texts of JSON."""
    def text(call):
        return {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}

    return [{**m, "tool_calls": list(map(text, m["tool_calls"]))} if "tool_calls" in m else m for m in messages]


def _ids(encoded):
    return list(map(int, encoded["input_ids"]))


def _plain(tok, text):
    return _ids(tok(text, add_special_tokens=False))


def _split(tok, text, **how):
    """The ids of a text in which special tokens are not known; None where the tokenizer cannot."""
    return _tried(lambda: _ids(tok(text, split_special_tokens=True, **how)))


def _chat(tok, messages, template, tools=None, ask=True):
    ids = tok.apply_chat_template(messages, tools=tools, chat_template=template, add_generation_prompt=ask, tokenize=True, return_dict=False)
    return list(map(int, ids))


def _turns(messages):
    """Conversations that others might make of one: turns that are left out, and system messages in another place."""
    system, turns = [m for m in messages if m["role"] == "system"], [m for m in messages if m["role"] != "system"]
    yield "only the last message is sent", messages[-1:]
    yield "turns before the last message are left out", [*system, *turns[-1:]]
    yield "the first turn is left out", [*system, *turns[1:]]
    yield "the last turn is left out", [*system, *turns[:-1]]
    if system and turns:
        first = "\n\n".join(m["content"] for m in [*system, turns[0]])
        yield "the system message is put at the end", [*turns, *system]
        yield "the system message is put before the last message", [*turns[:-1], *system, *turns[-1:]]
        yield "the system message is put into the first turn", [{**turns[0], "content": first}, *turns[1:]]


def _tried(make):
    """What a mistake makes; None where it is an error: templates refuse conversations."""
    try:
        return make()
    except Exception:
        return None


def _pieces(tok, ids):
    """The text of each id, with the space that a decoder of words drops at the beginning of a text."""
    words = tok.convert_ids_to_tokens(ids)
    return [" " + tok.decode([i]).lstrip(" ") if str(w).startswith("\u2581") else tok.decode([i]) for i, w in zip(ids, words)]


# --- MAX


def of_max(engine_tokenizer, case, model_name):
    """Returns the texts of a case as MAX's own tokenizer makes them, without a graph.

    A case with a template of its own has none: MAX takes one for the whole model.
    """
    from max.pipelines.modeling.types import RequestID, TextGenerationRequest, TextGenerationRequestMessage

    out = []
    if case.get("chat_template"):
        return out
    for path, key, value in asked(case):
        entry = {"path": path, key: value}
        messages = [TextGenerationRequestMessage(**m) for m in value] if key == "messages" else []
        request = TextGenerationRequest(request_id=RequestID(), model_name=model_name, prompt=value if key == "prompt" else None, messages=messages,
                                        tools=case.get("tools"))  # fmt: skip
        try:
            if messages:
                entry["rendered"] = engine_tokenizer.apply_chat_template(messages, case.get("tools"))
            context = asyncio.run(engine_tokenizer.new_context(request))
        except Exception as e:  # the run itself is on given ids
            warn(f"case {case['name']}: MAX's tokenizer makes nothing of its {key}: {type(e).__name__}: {e}")
            continue
        entry["token_ids"] = [int(t) for t in context.tokens.prompt]
        if delegate := getattr(engine_tokenizer, "delegate", None):
            entry["pieces"] = _pieces(delegate, entry["token_ids"])
        out.append(entry)
    return out


# --- mlx-lm


def of_mlx(folder, case):
    """Returns the texts of a case as mlx_lm.generate makes them of its own tokenizer."""
    if case.get("chat_template") or not asked(case):
        return []
    from pathlib import Path

    from mlx_lm.tokenizer_utils import load

    tok, out = load(Path(folder)), []
    for path, key, value in asked(case):
        entry = {"path": path, key: value}
        if key == "messages":
            entry["rendered"] = tok.apply_chat_template(value, tools=case.get("tools"), add_generation_prompt=True, tokenize=False)
            entry["token_ids"] = _of_template(tok.apply_chat_template(value, tools=case.get("tools"), add_generation_prompt=True))
        else:
            special = tok.bos_token is None or not value.startswith(tok.bos_token)
            entry["token_ids"] = list(map(int, tok.encode(value, add_special_tokens=special)))
        entry["pieces"] = _pieces(tok, entry["token_ids"])
        out.append(entry)
    return out


def _of_template(ids):
    return list(map(int, ids["input_ids"] if hasattr(ids, "keys") else ids))
