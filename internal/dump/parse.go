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

// checkStages checks the keys that are judged by other stages than the comparison of
// tensors.
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
