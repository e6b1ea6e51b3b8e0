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

	"github.com/goparity/goparity/internal/jsonline"
	"github.com/goparity/goparity/internal/nearest"
)

// parseInfo reads run.json, or one case of a recording's. Engines may add keys of their own. An
// unknown key that looks like a misspelt known one is refused; in schema 1 it is noted.
func parseInfo(path string, data []byte) (info Info, notes []string, err error) {
	if info, notes, err = decodeInfo(data); err == nil {
		err = info.check()
	}
	if err != nil {
		return Info{}, nil, fmt.Errorf("dump: open %q: %w", path, err)
	}
	return info, notes, nil
}

func decodeInfo(data []byte) (info Info, notes []string, err error) {
	var raw struct {
		Info
		Injected  json.RawMessage `json:"injected"` // a list of labels if nothing was injected
		Injection *string         `json:"injection"`
		// In schema 1 these keys are an engine's own, of any form.
		Attention  json.RawMessage `json:"attn_implementation"`
		Path       json.RawMessage `json:"path"`
		Passes     json.RawMessage `json:"passes"`
		PadMasks   json.RawMessage `json:"pad_masks"`
		Text       json.RawMessage `json:"text"`
		Images     json.RawMessage `json:"images"`
		Generation json.RawMessage `json:"generation"`
		Weights    json.RawMessage `json:"weights"`
		Config     json.RawMessage `json:"config"`

		Activations json.RawMessage `json:"activations"`
		Unfinished  json.RawMessage `json:"unfinished"`
	}
	var keys map[string]json.RawMessage
	err = json.Unmarshal(data, &raw)
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err != nil {
		return info, nil, jsonline.Error(data, err)
	}
	info = raw.Info
	if raw.Injection != nil {
		info.Injection = *raw.Injection
	}
	if len(raw.Injected) > 0 && raw.Injected[0] == '{' {
		if err := json.Unmarshal(raw.Injected, &info.Injected); err != nil {
			return info, nil, fmt.Errorf(`"injected": %w`, err)
		}
	}
	if info.Schema < 1 || info.Schema > Schema {
		return info, nil, fmt.Errorf("schema is %d, this version reads 1 to %d", info.Schema, Schema)
	}
	if key := twice(data); key != "" {
		return info, nil, fmt.Errorf("%s is there twice: which of them holds?", key)
	}
	if info.Schema == 1 {
		if key := ofSchema2(keys); key != "" {
			return info, nil, fmt.Errorf("%s is a key of schema 2, and would not be judged: write \"schema\": 2", key)
		}
		if bytes.HasPrefix(keys["encoding"], []byte("{")) {
			return info, nil, errors.New(`encoding is an object: in schema 1 want a string, or write "schema": 2`)
		}
		return info, slices.Concat(noteKeys(keys), info.noteTokens()), nil
	}
	if slip := slips(keys); len(slip) > 0 {
		return info, nil, fmt.Errorf("%s; a key of your own needs a name less like it", slip[0])
	}
	for _, f := range since2(&info) {
		if value, ok := keys[f.key]; ok {
			if err := strict(value, f.to); err != nil {
				return info, nil, fmt.Errorf("%s: %w: want %s", f.key, err, f.want)
			}
		}
	}
	return info, nil, nil
}

// field is a key of schema 2.
type field struct {
	key, want string
	to        any
}

// noteTokens notes token ids that cannot be compared with those of another run.
func (i *Info) noteTokens() []string {
	if err := i.checkTokenIDs(); err != nil {
		return []string{"run.json: " + err.Error() + ": it was not read"}
	}
	return nil
}

func since2(info *Info) []field {
	return []field{
		{"attn_implementation", `a string, "eager"`, &info.Attention},
		{"path", `a string, "chunked:4"`, &info.Path},
		{"passes", `a list for each forward pass, [[{"sequence": 0, "from": 0, "to": 4}], …]`, &info.Passes},
		{"pad_masks", `a mask by step, {"1": [[0, 1], [1, 1]]}`, &info.PadMasks},
		{"text", `[{"path": "chat", "messages": [{"role": "user", "content": "…"}], "rendered": "…", ` +
			`"token_ids": [1, 15]}, …]`, &info.Text},
		{"images", `a list of names for each sequence, [["cat.png"]]`, &info.Images},
		{"generation", `{"from": 8, "tokens": [15, 7]}`, &info.Generation},
		{"weights", `a list of files in the dump's folder, ["weights.safetensors"]`, &info.Weights},
		{"config", `an object, the model's config.json as the engine read it`, &info.Config},
		{"activations", `{"block": 256, "layers": ["model.layers.0.mlp.up_proj"]}`, &info.Activations},
		{"modules", `class, file and line by layer, {"model.layers.0.mlp": ["MLP", "llama.py", 88]}`, &info.Modules},
		{"unfinished", `why the run ended early, "MemoryError: …"`, &info.Unfinished},
		{"costs", `seconds and bytes by layer, {"model.layers.0.mlp": [0.002, 1048576]}`, &info.Costs},
	}
}

// twice returns a key of the file that is there more than once, of which JSON would keep the last.
func twice(data []byte) string {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return ""
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return ""
		}
		if seen[key] {
			return key
		}
		seen[key] = true
	}
	return ""
}

// ofSchema2 returns a key of a file of schema 1 that says how the tokens were run in the form of
// schema 2: it was meant to be judged. What has another form is the engine's own.
func ofSchema2(keys map[string]json.RawMessage) string {
	var info Info
	for _, f := range since2(&info) {
		value, ok := keys[f.key]
		if !ok || !slices.Contains([]string{"path", "passes", "pad_masks", "generation"}, f.key) || string(value) == "null" || strict(value, f.to) != nil {
			continue
		}
		if _, err := ParsePath(info.Path); err == nil {
			return f.key
		}
	}
	return ""
}

// strict decodes a value in which every key must be known.
func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		if typ.Field == "" {
			return fmt.Errorf("it is a JSON %s", typ.Value)
		}
		return fmt.Errorf("%s is a JSON %s", typ.Field, typ.Value)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// noteKeys lists the keys of a file of schema 1 that have no effect, but look as if they had one.
func noteKeys(keys map[string]json.RawMessage) []string {
	notes := slips(keys)
	for _, f := range since2(&Info{}) {
		if _, ok := keys[f.key]; ok {
			notes = append(notes, fmt.Sprintf(
				`run.json has %q, which was not read: it is a key of schema 2, this file says "schema": 1`, f.key))
		}
	}
	return notes
}

// slips lists the unknown keys that are close to a known key which the file does not have.
func slips(keys map[string]json.RawMessage) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if slices.Contains(known, key) {
			continue
		}
		meant, near := nearest.Slip(key, known)
		if _, there := keys[meant]; near && (!there || strings.EqualFold(meant, key)) {
			out = append(out, fmt.Sprintf("run.json has the unknown key %q: did you mean %q?", key, meant))
		}
	}
	return out
}

// known lists the keys of run.json.
var known = func() (keys []string) {
	for t, i := reflect.TypeFor[Info](), 0; i < t.NumField(); i++ {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	return keys
}()

// check refuses values that make no sense, whatever the engine.
func (i *Info) check() error {
	if i.Mode == "" {
		i.Mode = Standard
	}
	if !slices.Contains([]string{Standard, Injected}, i.Mode) {
		return fmt.Errorf("mode is %q, want %s or %s", i.Mode, Standard, Injected)
	}
	if !slices.Contains([]string{"", Nested, Isolated}, i.Injection) {
		return fmt.Errorf("injection is %q, want %s or %s", i.Injection, Nested, Isolated)
	}
	for k, e := range i.Order {
		if !filepath.IsLocal(e.File) || e.Step != "" && !filepath.IsLocal(e.Step) {
			return fmt.Errorf("order entry %d: file %q of step %q leaves the dump's folder", k, e.File, e.Step)
		}
		if e.Layer == "" || e.Port == "" {
			return fmt.Errorf("order entry %d: layer or port is empty", k)
		}
	}
	if i.Schema == 1 {
		return nil
	}
	return cmp.Or(i.checkRun(), i.checkStages())
}

// checkRun checks the keys of schema 2 that say how the tokens were run.
func (i *Info) checkRun() error {
	if err := i.Encoding.check(); err != nil {
		return err
	}
	if err := i.checkTokenIDs(); err != nil {
		return err
	}
	if _, err := ParsePath(i.Path); err != nil {
		return err
	}
	if i.Path != "" && i.Path != OnePass && i.Passes == nil {
		return fmt.Errorf("path is %q: want passes too, the forward passes that were run", i.Path)
	}
	if i.Passes != nil {
		tokens, err := i.sequences()
		if err != nil {
			return fmt.Errorf("passes: %w", err)
		}
		if err := checkPasses(i.Passes, tokens); err != nil {
			return err
		}
	}
	if err := i.Activations.Check(); err != nil {
		return err
	}
	if err := checkMask("pad_mask", i.PadMask); err != nil {
		return err
	}
	for _, step := range slices.Sorted(maps.Keys(i.PadMasks)) {
		if step == "0" {
			return errors.New("pad_masks has step 0: want pad_mask for the first step, pad_masks for later ones")
		}
		if err := checkMask(fmt.Sprintf("pad_masks[%q]", step), i.PadMasks[step]); err != nil {
			return err
		}
	}
	return nil
}

// checkStages checks the keys of schema 2 that are judged by other stages than the comparison of
// tensors.
func (i *Info) checkStages() error {
	for k, t := range i.Text {
		if err := t.check(); err != nil {
			return fmt.Errorf("text[%d]: %w", k, err)
		}
	}
	if i.Generation != nil {
		tokens, err := i.sequences()
		if err == nil {
			err = i.Generation.check(tokens)
		}
		if err != nil {
			return fmt.Errorf("generation: %w", err)
		}
	}
	return checkWeights(i.Weights)
}
