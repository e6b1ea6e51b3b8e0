package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
)

// ParseInfo reads run.json, or one case of a recording's. Engines may add keys of their own. An
// unknown key that looks like a misspelt known one is refused.
func ParseInfo(path string, data []byte) (Info, error) {
	info, err := decodeInfo(data)
	if err == nil {
		err = info.check()
	}
	if err != nil {
		return Info{}, fmt.Errorf("dump: open %q: %w", path, err)
	}
	return info, nil
}

func decodeInfo(data []byte) (info Info, err error) {
	keys, err := object(data)
	if err == nil {
		err = decode(keys, "schema", &info.Schema)
	}
	if err == nil && (info.Schema < 1 || info.Schema > Schema) {
		err = fmt.Errorf("schema is %d, this version reads 1 to %d", info.Schema, Schema)
	}
	if err == nil {
		err = misspelt(keys)
	}
	for to, key := range fields(&info) {
		if err == nil {
			err = decode(keys, key, to)
		}
	}
	return info, err
}

// object returns the values of a JSON object. A key that is there twice is refused: JSON would keep the last.
func object(data []byte) (keys map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, mapfile.JSONError(data, err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	seen := map[string]bool{}
	for d.Token(); d.More(); {
		token, _ := d.Token() // it is JSON
		key, _ := token.(string)
		if seen[key] {
			return nil, fmt.Errorf("%s is there twice: which of them holds?", key)
		}
		seen[key] = true
		var value json.RawMessage
		d.Decode(&value)
	}
	return keys, nil
}

// wants says of some keys what their form is, in which no key is passed over.
var wants = map[string]string{
	"attn_implementation": `a string, "eager"`,
	"path":                `a string, "chunked:4"`,
	"passes":              `a list for each forward pass, [[{"sequence": 0, "from": 0, "to": 4}], …]`,
	"pad_masks":           `a mask by step, {"1": [[0, 1], [1, 1]]}`,
	"text": `[{"path": "chat", "messages": [{"role": "user", "content": "…"}], "rendered": "…", ` +
		`"token_ids": [1, 15]}, …]`,
	"images":      `a list of names for each sequence, [["cat.png"]]`,
	"generation":  `{"from": 8, "tokens": [15, 7]}`,
	"weights":     `a list of files in the dump's folder, ["weights.safetensors"]`,
	"config":      `an object, the model's config.json as the engine read it`,
	"activations": `{"block": 256, "layers": ["model.layers.0.mlp.up_proj"]}`,
	"modules":     `class, file and line by layer, {"model.layers.0.mlp": ["MLP", "llama.py", 88]}`,
	"unfinished":  `why the run ended early, "MemoryError: …"`,
	"costs":       `seconds and bytes by layer, {"model.layers.0.mlp": [0.002, 1048576]}`,
}

// decode decodes the value of a key, if there is one.
func decode(keys map[string]json.RawMessage, key string, to any) error {
	value, ok := keys[key]
	switch want := wants[key]; {
	case !ok:
		return nil
	case want == "":
		if err := json.Unmarshal(value, to); err != nil {
			return fmt.Errorf("%s: %w", key, plain(err))
		}
	default:
		if err := strict(value, to); err != nil {
			return fmt.Errorf("%s: %w: want %s", key, err, want)
		}
	}
	return nil
}

// strict decodes a value in which every key must be known.
func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err != nil {
		return plain(err)
	}
	return nil
}

// plain says of an error of package json what is wrong, without the types of Go.
func plain(err error) error {
	var typ *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &typ):
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	case typ.Field == "":
		return fmt.Errorf("it is a JSON %s", typ.Value)
	}
	return fmt.Errorf("%s is a JSON %s", typ.Field, typ.Value)
}

// misspelt refuses an unknown key that is close to a known one which the file does not have.
func misspelt(keys map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if slices.Contains(known, key) {
			continue
		}
		meant, near := label.Slip(key, known)
		if _, there := keys[meant]; near && (!there || strings.EqualFold(meant, key)) {
			return fmt.Errorf("run.json has the unknown key %q: did you mean %q? A key of your own needs a name less like it", key, meant)
		}
	}
	return nil
}

// fields visits where the values of run.json go, with their keys.
func fields(info *Info) func(yield func(to any, key string) bool) {
	v := reflect.ValueOf(info).Elem()
	return func(yield func(any, string) bool) {
		for i := range v.NumField() {
			key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if !yield(v.Field(i).Addr().Interface(), key) {
				return
			}
		}
	}
}

// known lists the keys of run.json.
var known = func() (keys []string) {
	for _, key := range fields(&Info{}) {
		keys = append(keys, key)
	}
	return keys
}()

// checks keeps the first thing that is wrong.
type checks struct{ err error }

// fail says what is wrong.
func (c *checks) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// want says what is wrong unless something holds.
func (c *checks) want(holds bool, format string, args ...any) {
	if !holds {
		c.fail(format, args...)
	}
}

// within says where something is wrong.
func (c *checks) within(err error, where string, args ...any) {
	if err != nil {
		c.fail(where+": %w", append(args, err)...)
	}
}

// check refuses values that make no sense, whatever the engine.
func (i *Info) check() error {
	i.Mode = cmp.Or(i.Mode, Standard)
	var c checks
	c.want(slices.Contains([]string{Standard, Injected}, i.Mode), "mode is %q, want %s or %s", i.Mode, Standard, Injected)
	c.want(slices.Contains([]string{"", Nested, Isolated}, i.Injection),
		"injection is %q, want %s or %s", i.Injection, Nested, Isolated)
	for k, e := range i.Order {
		local := filepath.IsLocal(e.File) && (e.Step == "" || filepath.IsLocal(e.Step))
		c.want(local, "order entry %d: file %q of step %q leaves the dump's folder", k, e.File, e.Step)
		c.want(e.Layer != "" && e.Port != "", "order entry %d: layer or port is empty", k)
	}
	return cmp.Or(c.err, i.checkRun(), i.checkStages())
}

// checkRun checks the keys that say how the tokens were run.
func (i *Info) checkRun() error {
	_, err := ParsePath(i.Path)
	err = cmp.Or(i.Encoding.check(), i.checkTokenIDs(), i.Activations.Check(), checkMask("pad_mask", i.PadMask), err)
	c := checks{err}
	c.want(i.Path == "" || i.Path == OnePass || i.Passes != nil,
		"path is %q: want passes too, the forward passes that were run", i.Path)
	if c.err == nil && i.Passes != nil {
		c.err = i.checkPasses()
	}
	for _, step := range slices.Sorted(maps.Keys(i.PadMasks)) {
		c.want(step != "0", "pad_masks has step 0: want pad_mask for the first step, pad_masks for later ones")
		c.err = cmp.Or(c.err, checkMask(fmt.Sprintf("pad_masks[%q]", step), i.PadMasks[step]))
	}
	return c.err
}

// checkStages checks the keys that are judged by other stages than the comparison of tensors.
func (i *Info) checkStages() error {
	var c checks
	for k, t := range i.Text {
		c.within(t.check(), "text[%d]", k)
	}
	if i.Generation != nil {
		c.within(i.Generation.check(i.sequences()), "generation")
	}
	for k, f := range i.Weights {
		c.want(filepath.IsLocal(f), "weights[%d]: file %q leaves the dump's folder: want a file in it", k, f)
		c.want(!slices.Contains(i.Weights[:k], f), "weights[%d]: file %q is there twice: leave one out", k, f)
	}
	return c.err
}

// Text is what the engine made of a prompt along one of its API paths.
type Text struct {
	Path     string    `json:"path"` // the API path: "completion", "chat", …
	Prompt   string    `json:"prompt,omitempty"`
	Messages []Message `json:"messages,omitempty"` // instead of Prompt
	Rendered string    `json:"rendered,omitempty"` // after the chat template
	TokenIDs []int     `json:"token_ids,omitempty"`
	Pieces   []string  `json:"pieces,omitempty"`   // the text of each of TokenIDs
	Mistakes []Mistake `json:"mistakes,omitempty"` // of the reference: what others might make of it
}

// Mistake is what the reference's tokenizer makes of a prompt if something is done wrong on purpose.
type Mistake struct {
	Cause    string `json:"cause"` // text/…
	Text     string `json:"text"`  // what is done wrong
	TokenIDs []int  `json:"token_ids"`
}

// Message is one turn of a chat.
type Message struct {
	Role       string           `json:"role" yaml:"role"`
	Content    string           `json:"content" yaml:"content,said"`
	ToolCalls  []map[string]any `json:"tool_calls,omitempty" yaml:"tool_calls,call"` // as OpenAI's API has them, but with arguments as an object
	ToolCallID string           `json:"tool_call_id,omitempty" yaml:"tool_call_id"`
	Name       string           `json:"name,omitempty" yaml:"name"` // of the tool that answers
}

// Equal reports whether two messages say the same.
func (m Message) Equal(other Message) bool { return reflect.DeepEqual(m, other) }

// Generation has the tokens that the engine itself chose along a forced continuation of the prompt:
// row From − 1 + k decides Tokens[k].
type Generation struct {
	From   int   `json:"from"` // number of prompt tokens; token_ids also has the forced continuation
	Tokens []int `json:"tokens"`
}

func (t Text) check() error {
	var c checks
	c.want(t.Path != "" && (t.Prompt == "") != (len(t.Messages) == 0) && (t.Rendered != "" || len(t.TokenIDs) > 0),
		`want path, that of the API, "completion" or "chat"; either prompt or messages, what the engine was asked; `+
			`rendered, token_ids or both, what it made of it`)
	for i, m := range t.Messages {
		c.want(m.Role != "", `messages[%d]: role is empty: want "system", "user" or "assistant"`, i)
	}
	n := len(t.Pieces)
	c.want(n == 0 || n == len(t.TokenIDs),
		"pieces has %d texts: want one for each of the %d token_ids", n, len(t.TokenIDs))
	for i, m := range t.Mistakes {
		c.want(m.Cause != "" && len(m.TokenIDs) > 0, "mistakes[%d]: want a cause and token_ids", i)
		c.wantTokens(fmt.Sprintf("mistakes[%d].token_ids", i), m.TokenIDs)
	}
	c.wantTokens("token_ids", t.TokenIDs)
	return c.err
}

func (g Generation) check(tokens [][]int, err error) error {
	c := checks{err}
	c.want(len(tokens) == 1, "token_ids has %d sequences: want one, a case for each generation", len(tokens))
	if c.err != nil {
		return c.err
	}
	n := len(tokens[0])
	c.want(g.From >= 1 && g.From <= n, "from is %d: want 1 to %d, the tokens of the prompt in token_ids", g.From, n)
	rows := n - g.From + 1
	c.want(len(g.Tokens) > 0 && len(g.Tokens) <= rows,
		"tokens has %d choices: want 1 to %d, the rows from %d to the end of token_ids", len(g.Tokens), rows, g.From-1)
	c.wantTokens("tokens", g.Tokens)
	return c.err
}

func (c *checks) wantTokens(key string, ids []int) {
	for i, id := range ids {
		c.want(id >= 0, "%s[%d] is %d: want a token id", key, i, id)
	}
}

// EditedTransformers returns the version of transformers if the run used an edited copy of it, which the
// runners mark so; else "".
func (i *Info) EditedTransformers() string {
	if v := i.Versions["transformers"]; strings.HasSuffix(v, "(edited copy)") {
		return v
	}
	return ""
}

// NotJudged lists what the run contains that this version reads but does not judge.
func (i *Info) NotJudged() (what []string) {
	if i.Generation != nil {
		what = append(what, fmt.Sprintf("generation (%d tokens from %d)", len(i.Generation.Tokens), i.Generation.From))
	}
	return what
}

// Describe says in words what the keys of schema 2 say about the run, a line each.
func (i *Info) Describe() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if i.Path != "" {
		say("path: %s", i.Path)
	}
	for k, pass := range i.Passes {
		var items []string
		for _, p := range pass {
			items = append(items, p.String())
		}
		say("pass %d: %s", k, strings.Join(items, ", "))
	}
	for _, step := range slices.Sorted(maps.Keys(i.PadMasks)) {
		say("padding in step %s: mask of %d sequences", step, len(i.PadMasks[step]))
	}
	for _, t := range i.Text {
		say("text of %s: %d token ids, rendered %q", t.Path, len(t.TokenIDs), t.Rendered)
	}
	if g := i.Generation; g != nil {
		say("generation: from %d, tokens %v", g.From, g.Tokens)
	}
	for _, f := range i.Weights {
		say("weights: %s", f)
	}
	return lines
}
