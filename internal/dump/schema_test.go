package dump_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/store"
)

// full has every key of schema 2.
const full = `{
 "schema": 2, "engine": "max", "versions": {"max": "26.7.0"}, "device": "cpu",
 "encoding": {"compute": "bfloat16", "kv_cache": "float8_e4m3fn"},
 "mode": "injected", "injection": "nested", "case": "short", "prompt": "Hello", "reference_text": " world",
 "token_ids": [[1, 15, 7, 9], [1, 15, 7]], "date": "2026-11-22T10:00:00Z",
 "order": [["0", "a", "output", "a.max"], ["1", "a", "output", "all.safetensors", "x"]],
 "injected": {"a-input_0": "b-output"}, "seconds": {"load": 1.5}, "peak_rss_bytes": 7, "nonce": "n", "inputs": {"case.steps": "2"}, "sha256": {"a.max": "00"},
 "pad_mask": [[1, 1, 1], [0, 1, 1]], "not_injected": {"m": "a mask"}, "raw": {"0/a": "f32:2"}, "load_audit": {"missing": ["w"], "unused": [], "allowed": []},
 "uncaptured": {"m": ["kv"]},
 "attn_implementation": "eager", "path": "batch",
 "passes": [[{"sequence": 0, "from": 0, "to": 3}, {"sequence": 1, "from": 2, "to": 3, "cached_tokens": 2}],
            [{"sequence": 1, "from": 0, "to": 3, "fresh": true}, {"sequence": 0, "from": 3, "to": 4}]],
 "pad_masks": {"1": [[1, 1, 1], [0, 0, 1]]},
 "text": [{"path": "completion", "prompt": "Hello", "token_ids": [1, 15]},
          {"path": "chat", "messages": [{"role": "user", "content": "Hello"}], "rendered": "<u>Hello", "token_ids": [1, 3, 15]}],
 "images": [["cat.png"]], "weights": ["weights.safetensors"], "config": {"rope_theta": 10000}, "activations": {"block": 256, "layers": ["a"]},
 "modules": {"a": ["MLP", "llama.py", 88]}, "unfinished": "MemoryError",
 "costs": {"a": [0.25, 4096]}
}`

func TestRoundTrip(t *testing.T) {
	generation := `{"schema": 2, "engine": "max", "encoding": "q4_k", "mode": "standard", "token_ids": [[1, 15, 7, 9]], "path": "one-pass",
		"passes": [[{"sequence": 0, "from": 0, "to": 4}]], "generation": {"from": 2, "tokens": [7, 9, 4]}}`
	all := []string{full, generation}
	for _, pattern := range []string{"../../golden/testdata/*/run.json", "../../fixtures/*/runs/*/index.json"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			if filepath.Base(name) != store.IndexFile {
				data, err := os.ReadFile(name)
				require.NoError(t, err)
				all = append(all, string(data))
				continue
			}
			x, err := store.ReadIndex(filepath.Dir(name))
			require.NoError(t, err)
			for _, k := range x.Runs {
				all = append(all, string(k.Raw))
			}
		}
	}
	for _, text := range all {
		info, err := dump.ParseInfo(dump.RunFile, []byte(text))
		require.NoError(t, err)
		written, err := json.Marshal(info)
		require.NoError(t, err)
		assert.JSONEq(t, text, string(written))
	}
}

func TestEveryKeyIsTested(t *testing.T) {
	info, err := dump.ParseInfo(dump.RunFile, []byte(full))
	require.NoError(t, err)
	info.Generation = &dump.Generation{From: 1, Tokens: []int{1}} // of one sequence only
	written, err := json.Marshal(info)
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(written, &keys))
	assert.ElementsMatch(t, dump.Known, mapKeys(keys), "full has each key of Info with a value that is not empty")
}

func mapKeys(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// with is a run.json of schema 2 with two sequences of 4 and 2 tokens.
func with(keys string) string {
	return `{"schema": 2, "engine": "max", "token_ids": [[1, 15, 7, 9], [1, 15]], ` + keys + `}`
}

// passes is with for a list of "sequence from to …" items, passes divided by |.
func passes(path, items string) string {
	var list []string
	for pass := range strings.SplitSeq(items, "|") {
		var l []string
		for item := range strings.SplitSeq(pass, ",") {
			f := strings.Fields(item)
			if len(f) == 0 {
				continue
			}
			s := fmt.Sprintf(`{"sequence": %s, "from": %s, "to": %s`, f[0], f[1], f[2])
			for _, extra := range f[3:] {
				key, value, _ := strings.Cut(extra, "=")
				s += fmt.Sprintf(`, %q: %s`, key, value)
			}
			l = append(l, s+"}")
		}
		list = append(list, "["+strings.Join(l, ",")+"]")
	}
	return with(fmt.Sprintf(`"path": %q, "passes": [%s]`, path, strings.Join(list, ",")))
}

func TestSchema2Refused(t *testing.T) {
	for _, tt := range []struct{ name, data, want, reason string }{
		{"encoding number", with(`"encoding": 16`), `encoding: it is a JSON number: want "bfloat16", or {"compute"`,
			"neither of the two forms"},
		{"encoding key", with(`"encoding": {"compute": "bfloat16", "cache": "float32"}`),
			`encoding: unknown field "cache": want`, "no key is passed over"},
		{"encoding half", with(`"encoding": {"compute": "bfloat16"}`), "encoding: compute or kv_cache is empty",
			"a string says that"},
		{"path", with(`"path": "chunks:4"`), `path is "chunks:4": want one-pass, decode, decode:N, chunked:N`,
			"no such path"},
		{"path without its number", with(`"path": "chunked"`), `path is "chunked": want`, "chunks of what?"},
		{"a cost without bytes", with(`"costs": {"a": [0.5]}`), `cost [0.5] is not [seconds, bytes]`, "both are measured"},
		{"a negative cost", with(`"costs": {"a": [-1, 5]}`), `cost [-1, 5] is not [seconds, bytes]`, "time goes on"},
		{"a module without a line", with(`"modules": {"a": ["MLP", "llama.py"]}`), `module ["MLP", "llama.py"] is not ["class","file",line]`, "the line is a number"},
		{"a block of 0 inputs", with(`"activations": {"block": 0, "layers": ["a"]}`), `activations: type "" with blocks of 0 inputs: want`, "nothing can be divided by it"},
		{"an unknown type of inputs", with(`"activations": {"type": "int4", "layers": ["a"]}`), `activations: type "int4" with blocks of 0 inputs: want float8_e4m3fn`, "it would not be judged as such"},
		{"kernel by layer", with(`"attn_implementation": {"text_config": "eager"}`), `attn_implementation: it is a JSON object: want a string`, "one for all"},
		{"path number", with(`"path": 4`), `path: it is a JSON number: want a string`,
			"a type error says what is wanted"},
		{"path alone", with(`"path": "chunked:4"`), `path is "chunked:4": want passes too`,
			"a claim without what was run"},
		{"no passes", with(`"passes": []`), "passes is empty", "an empty list says nothing"},
		{"empty pass", passes("batch", "0 0 4||1 0 2"), "passes[1] feeds no sequence", "a forward pass of nothing"},
		{"passes type", with(`"passes": [{"sequence": 0}]`),
			"passes: it is a JSON object: want a list for each forward pass", "a list of lists"},
		{"item key", with(`"passes": [[{"seq": 0, "from": 0, "to": 4}]]`), `passes: unknown field "seq": want`,
			"no key is passed over"},
		{"no id of a sequence", `{"schema": 2, "token_ids": [[]]}`, "token_ids[0] has no tokens", "that were run"},
		{"nothing but padding", `{"schema": 2, "token_ids": [[1, 2]], "pad_mask": [[0, 0]]}`, "pad_mask has no token, only padding", "want 1 for each"},
		{"a mask of other tokens", `{"schema": 2, "token_ids": [[1, 2, 3]], "pad_mask": [[1, 1, 0, 0, 0]]}`,
			"pad_mask[0] is of 5 tokens, 2 of them no padding, and token_ids[0] has 3", "want a 0 or 1"},
		{"half an id", `{"schema": 2, "token_ids": [[1, 1.5]]}`, "token_ids is [[1, 1.5]]: want a list", "no id"},
		{"no ids", `{"schema": 2, "passes": [[{"sequence": 0, "from": 0, "to": 4}]]}`, "passes: token_ids is missing",
			"what was fed is unknown"},
		{"flat ids", `{"schema": 2, "token_ids": [1, 2], "passes": [[{"sequence": 0, "from": 0, "to": 2}]]}`,
			"passes: token_ids is missing or has another form", "sequences are counted"},
		{"sequence", passes("batch", "2 0 1"), "passes[0][0]: sequence is 2, token_ids has 2: want 0 to 1",
			"no such sequence"},
		{"range", passes("decode", "0 0 2|0 2 2"), "passes[1][0]: from is 2 and to is 2: want 0 ≤ from < to",
			"nothing is fed"},
		{"negative", passes("decode", "0 -1 2"), "passes[0][0]: from is -1", "no such token"},
		{"beyond", passes("decode", "0 0 4|0 4 5"), "passes[1][0]: from is 4 and to is 5: want 0 ≤ from < to ≤ 4",
			"a token that token_ids lacks"},
		{"gap", passes("chunked:2", "0 0 2|0 3 4"),
			"passes[1][0]: from is 3, the cache of sequence 0 holds 2 tokens: want from 2",
			"token 2 is fed by no pass"},
		{"again", passes("chunked:2", "0 0 2|0 1 4"), `want from 2, or "fresh": true`, "a token is fed twice"},
		{"twice in a pass", passes("batch", "0 0 2, 0 2 4"), "passes[0][1]: sequence 0 is twice in one pass",
			"which row is which?"},
		{"cached", passes("prefix", "0 0 4|1 1 2 cached_tokens=2"), "from is 1, the cache of sequence 1 holds 2 tokens",
			"from is the number of cached tokens"},
		{"cached later", passes("prefix", "0 0 2|0 2 4 cached_tokens=2"),
			"cached_tokens is 2: want a number of tokens before the first item of sequence 0", "the prefix cache is asked once"},
		{"negative cached", passes("prefix", "0 0 4 cached_tokens=-1"), "cached_tokens is -1", "no number of tokens"},
		{"fresh and cached", passes("prefix", "0 1 4 fresh=true cached_tokens=1"),
			"cached_tokens is 1: want", "both cannot be"},
		{"ragged mask", with(`"pad_mask": [[1, 1], [1]]`), "pad_mask[1] has 1 tokens, pad_mask[0] has 2",
			"padding is part of the row"},
		{"grey mask", with(`"pad_mask": [[1, 2]]`), "pad_mask[0][1] is 2: want 0 for padding, 1 for a token",
			"a mask has two values"},
		{"mask of the first step", with(`"pad_masks": {"0": [[1]]}`), "pad_masks has step 0: want pad_mask",
			"one place for one thing"},
		{"text path", with(`"text": [{"prompt": "a", "token_ids": [1]}]`), "text[0]: want path",
			"of which API path"},
		{"text of nothing", with(`"text": [{"path": "chat", "token_ids": [1]}]`),
			"either prompt or messages", "what was asked"},
		{"text of both",
			with(`"text": [{"path": "chat", "prompt": "a", "messages": [{"role": "user", "content": "a"}], "token_ids": [1]}]`), "either prompt or messages", "which was asked?"},
		{"text without an answer", with(`"text": [{"path": "completion", "prompt": "a"}]`),
			"rendered, token_ids or both", "nothing to judge"},
		{"text role", with(`"text": [{"path": "chat", "messages": [{"content": "a"}], "token_ids": [1]}]`),
			"text[0]: messages[0]: role is empty", "a template needs it"},
		{"text id", with(`"text": [{"path": "chat", "prompt": "a", "token_ids": [1, -2]}]`),
			"text[0]: token_ids[1] is -2", "no token"},
		{"text key", with(`"text": [{"path": "chat", "prompts": ["a"]}]`), `text: unknown field "prompts": want`,
			"no key is passed over"},
		{"generation of two", with(`"generation": {"from": 2, "tokens": [7]}`),
			"generation: token_ids has 2 sequences: want one", "whose tokens are they?"},
		{"generation from", one4(`"generation": {"from": 0, "tokens": [7]}`), "generation: from is 0: want 1 to 4",
			"no row decides the first token"},
		{"too many tokens", one4(`"generation": {"from": 3, "tokens": [1, 2, 3]}`),
			"generation: tokens has 3 choices: want 1 to 2", "more tokens than rows that decide them"},
		{"no tokens", one4(`"generation": {"from": 3}`), "generation: tokens has 0 choices", "nothing to judge"},
		{"negative token", one4(`"generation": {"from": 3, "tokens": [-1]}`), "generation: tokens[0] is -1", "no token"},
		{"weights elsewhere", with(`"weights": ["../w.safetensors"]`),
			`weights[0]: file "../w.safetensors" leaves the dump's folder`, "nothing outside the folder is read"},
		{"weights twice", with(`"weights": ["w", "w"]`), `weights[1]: file "w" is there twice`,
			"a weight would be there twice"},
		{"slip", with(`"pases": [[{"sequence": 0, "from": 0, "to": 4}]]`),
			`unknown key "pases": did you mean "passes"? A key of your own`,
			"a slip would be a key that does nothing"},
		{"key twice", `{"schema": 2, "token_ids": [[1]], "engine": "max", "token_ids": [[2]]}`, "token_ids is there twice", "JSON would keep the last"},
		{"encoding slip", with(`"encoding": "bflaot16"`), `did you mean "bfloat16"?`, "it would be judged by other limits"},
		{"cache slip", with(`"encoding": {"compute": "bfloat16", "kv_cache": "flaot8_e4m3fn"}`), `did you mean "float8_e4m3fn"?`, "of the cache"},
		{"capitals", with(`"Path": "one-pass"`), `unknown key "Path": did you mean "path"?`, "keys are in lower case"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := dump.ParseInfo("x/run.json", []byte(tt.data))
			require.ErrorContains(t, err, `dump: open "x/run.json": `, tt.reason)
			require.ErrorContains(t, err, tt.want, tt.reason)
		})
	}
}

// one4 is with for one sequence of 4 tokens.
func one4(keys string) string {
	return `{"schema": 2, "engine": "max", "token_ids": [[1, 15, 7, 9]], ` + keys + `}`
}

func TestSchema2(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		unjudged   string // the key that this version cannot judge
		notJudged  []string
		reason     string
	}{
		{"plain", with(`"mode": "standard"`), "", nil, "the keys of schema 2 may be left out"},
		{"encoding of its own", with(`"encoding": "q4_k"`), "", nil, "an engine's own name of a quantised one"},
		{"short encoding", with(`"encoding": "fp32"`), "", nil, "another name"},
		{"own key", with(`"sequence": [[1]], "model_class": "m.M", "host": "h"`), "", nil, "engines may add their own"},
		{"own key like one that is there", with(`"mode": "standard", "model": "m"`), "",
			nil, "mode is there, so model is no slip of it"},
		{"one pass", one4(`"path": "one-pass", "passes": [[{"sequence": 0, "from": 0, "to": 4}]]`), "",
			nil, "what a run without passes is"},
		{"mask", with(`"pad_mask": [[1, 1, 1, 1], [0, 0, 1, 1]]`), "", nil, "padding of the first step is judged"},
		{"no sequences", `{"schema": 2, "engine": "func", "token_ids": []}`, "", nil, "a module has no tokens"},
		{"part", one4(`"passes": [[{"sequence": 0, "from": 0, "to": 3}]]`), "passes", nil, "a row that no pass fed"},
		{"cached", one4(`"passes": [[{"sequence": 0, "from": 2, "to": 4, "cached_tokens": 2}]]`), "passes",
			nil, "rows from the prefix cache"},
		{"chunks of one pass",
			one4(`"passes": [[{"sequence": 0, "from": 0, "to": 2}], [{"sequence": 0, "from": 2, "to": 4}]]`), "passes",
			nil, "two forward passes"},
		{"sequences", passes("one-pass", "0 0 4, 1 0 2"), "passes", nil, "several sequences"},
		{"decode", passes("decode", "0 0 2|0 2 3|0 3 4"), "path", nil, "another path"},
		{"chunked", passes("chunked:2", "0 0 2|0 2 4"), "path", nil, "another path"},
		{"batch", passes("batch", "0 0 4, 1 0 2|1 0 2 fresh=true, 0 0 4 fresh=true"), "path", nil, "both orders"},
		{"prefix", passes("prefix", "0 0 4|1 1 2 cached_tokens=1"), "path", nil, "a hit"},
		{"later padding", with(`"pad_masks": {"1": [[1], [0]]}`), "pad_masks", nil, "padding after the first step"},
		{"text", with(`"text": [{"path": "chat", "prompt": "a", "token_ids": [1]}, {"path": "completion", "prompt": "a", "rendered": "a"}]`), "", nil, "judged by what the reference made"},
		{"generation", one4(`"generation": {"from": 2, "tokens": [7, 9, 3]}`), "",
			[]string{"generation (3 tokens from 2)"}, "as many tokens as rows"},
		{"weights", with(`"weights": ["a", "b"]`), "", nil, "what judges decides"},
		{"empty", with(`"text": [], "weights": [], "generation": null, "passes": null`), "", nil, "nothing is nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info, err := dump.ParseInfo("run.json", []byte(tt.data))
			require.NoError(t, err, tt.reason)
			assert.Equal(t, tt.notJudged, info.NotJudged(), tt.reason)
			err = info.Judgeable()
			if tt.unjudged == "" {
				require.NoError(t, err, tt.reason)
				return
			}
			require.ErrorIs(t, err, dump.ErrUnjudged, tt.reason)
			require.ErrorContains(t, err, tt.unjudged+" ", tt.reason)
		})
	}
}

func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/run-json.md")
	require.NoError(t, err)
	for _, key := range dump.Known {
		assert.Contains(t, string(doc), "`"+key+"`")
	}
	blocks := strings.Split(string(doc), "```json\n")[1:]
	require.Len(t, blocks, 3)
	for _, b := range blocks {
		text, _, _ := strings.Cut(b, "```")
		_, err := dump.ParseInfo("docs/run-json.md", []byte(text))
		require.NoError(t, err, text)
	}
}

const sealed = `{"schema": 2, "layers": [["a", 1], ["b", 0.00001]], "of": {"x": null, "y": "<ü>"}}`

func TestSeal(t *testing.T) {
	want, err := dump.Seal([]byte(sealed))
	require.NoError(t, err)
	for _, c := range []struct {
		text, reason string
		same         bool
	}{
		{strings.ReplaceAll(sealed, " ", "\r\n\t"), "white space", true},
		{`{"of": {"y": "\u003c\u00fc>", "x": null}, "layers": [["a", 1.0], ["b", 1e-5]], "schema": 2}`,
			"keys, escapes and numbers in another form", true},
		{strings.Replace(sealed, "{", `{"sha256": "0123", `, 1), "its own key", true},
		{strings.Replace(sealed, `["a", 1], `, "", 1), "an entry is gone", false},
		{strings.Replace(sealed, `["a", 1], ["b", 0.00001]`, `["b", 0.00001], ["a", 1]`, 1), "the order is another", false},
		{strings.Replace(sealed, `"x": null, `, "", 1), "a key is gone", false},
		{strings.Replace(sealed, `"schema": 2`, `"schema": 1`, 1), "a value is another", false},
		{strings.Replace(sealed, `"of": {`, `"of": {"sha256": "0123", `, 1), "a key of that name, deeper", false},
	} {
		got, err := dump.Seal([]byte(c.text))
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.same, got == want, c.reason)
		if err := dump.CheckSeal([]byte(c.text), want); c.same {
			require.NoError(t, err, c.reason)
		} else {
			require.ErrorIs(t, err, dump.ErrSeal, c.reason)
		}
	}
	require.ErrorIs(t, dump.CheckSeal([]byte(sealed), ""), dump.ErrSeal, "a file that lost its hash")
	for _, bad := range []string{"", "[]", "{", "1"} {
		_, err := dump.Seal([]byte(bad))
		require.Error(t, err, "%q is no object", bad)
	}
}

func FuzzSeal(f *testing.F) {
	f.Add([]byte(sealed))
	f.Add([]byte(`{"sha256":1,"a":{"":[1e400]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sum, err := dump.Seal(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, json.Indent(&b, data, " ", "\t"))
		again, err := dump.Seal(b.Bytes())
		require.NoError(t, err)
		require.Equal(t, sum, again)
		require.NoError(t, dump.CheckSeal(data, sum), fmt.Sprintf("%q", data))
	})
}
