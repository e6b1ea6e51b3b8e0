package dump

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// RunFile is the name of the file that describes a dump.
const RunFile = "run.json"

// ProgramFile is the program that the reference ran, in the folder of a dump, and ConstantsFile its
// tensors: see package program.
const (
	ProgramFile   = "program.json"
	ConstantsFile = "program.safetensors"
)

// Schema is the version of run.json that is written. Versions 1 to Schema are read.
const Schema = 2

// Modes of a run, and forms of an injected one.
const (
	Standard = "standard" // each layer gets what its own model computed
	Injected = "injected" // each layer gets the golden inputs
	Nested   = "nested"   // injected in one graph, also inside of layers; a replaced input is kept as port computed_<n>
	Isolated = "isolated" // each layer alone on golden inputs, nothing replaced inside it
)

// Info is run.json: who ran what, and in which order the tensors were computed. docs/run-json.md
// describes each key.
type Info struct {
	Schema        int                `json:"schema"`
	Engine        string             `json:"engine"`
	Versions      map[string]string  `json:"versions,omitempty"`
	Device        string             `json:"device,omitempty"`
	Encoding      Encoding           `json:"encoding,omitzero"`
	Mode          string             `json:"mode,omitempty"`
	Injection     string             `json:"injection,omitempty"`
	Case          string             `json:"case,omitempty"`
	Prompt        string             `json:"prompt,omitempty"`
	ReferenceText string             `json:"reference_text,omitempty"` // what the reference generates for the case
	TokenIDs      json.RawMessage    `json:"token_ids,omitempty"`
	Date          string             `json:"date,omitempty"`
	Order         []OrderEntry       `json:"order,omitempty"`
	Injected      map[string]string  `json:"injected,omitempty"`
	Seconds       map[string]float64 `json:"seconds,omitempty"`
	PeakRSS       int64              `json:"peak_rss_bytes,omitempty"`
	Nonce         string             `json:"nonce,omitempty"`
	Inputs        map[string]string  `json:"inputs,omitempty"` // of a recording: what in the fixture it depends on
	SHA256        map[string]string  `json:"sha256,omitempty"` // of a recording: the hash of each file

	PadMask    [][]int             `json:"pad_mask,omitempty"`     // first step, [batch][token], 0 is padding; or nil
	Left       map[string]string   `json:"not_injected,omitempty"` // injected: input that was not replaced → why
	Raw        map[string]string   `json:"raw,omitempty"`          // headerless "<step>/<file>" → "f32:7x64"
	LoadAudit  *LoadAudit          `json:"load_audit,omitempty"`
	Uncaptured map[string][]string `json:"uncaptured,omitempty"` // by layer, tensors that no hook can record

	Attention  string             `json:"attn_implementation,omitempty"` // the kernel: "eager", "sdpa"
	Path       string             `json:"path,omitempty"`                // execution path; empty: OnePass
	Passes     [][]PassItem       `json:"passes,omitempty"`              // the forward passes, in the order of steps and rows
	PadMasks   map[string][][]int `json:"pad_masks,omitempty"`           // PadMask of the later steps that are padded
	Text       []Text             `json:"text,omitempty"`
	Images     [][]string         `json:"images,omitempty"` // the names of the files, by sequence
	Generation *Generation        `json:"generation,omitempty"`
	Weights    []string           `json:"weights,omitempty"` // files in the dump's folder: what the engine loaded
	Config     map[string]any     `json:"config,omitempty"`  // the model's settings as the engine read them, by the keys of config.json

	Activations *Activations `json:"activations,omitempty"` // how inputs of products were rounded; nil: they were not

	Modules map[string]Module `json:"modules,omitempty"` // by layer
	Costs   map[string]cost   `json:"costs,omitempty"`   // by layer

	Unfinished string `json:"unfinished,omitempty"` // why the run ended before its end; empty: it did not
}

// cost is what a layer took in one forward pass, all its calls.
type cost struct {
	Seconds float64
	Bytes   int64 // the most of a call, beyond what was held before it
}

// MarshalJSON writes the list that docs/run-json.md asks for.
func (c cost) MarshalJSON() ([]byte, error) { return json.Marshal([]any{c.Seconds, c.Bytes}) }

// UnmarshalJSON reads [seconds, bytes], neither of them negative.
func (c *cost) UnmarshalJSON(b []byte) error {
	if !unlist(b, &c.Seconds, &c.Bytes) || c.Seconds < 0 || c.Bytes < 0 {
		return fmt.Errorf("cost %.80s is not [seconds, bytes]", b)
	}
	return nil
}

// unlist reads a list with the values of some variables.
func unlist(b []byte, to ...any) bool {
	var l []json.RawMessage
	if json.Unmarshal(b, &l) != nil || len(l) != len(to) {
		return false
	}
	for i, v := range to {
		if json.Unmarshal(l[i], v) != nil {
			return false
		}
	}
	return true
}

// Module is the class of a layer, and the line at which it is defined.
type Module struct {
	Class, File string
	Line        int
}

// MarshalJSON writes the list that docs/run-json.md asks for.
func (m Module) MarshalJSON() ([]byte, error) { return json.Marshal([]any{m.Class, m.File, m.Line}) }

// UnmarshalJSON reads ["class","file",line].
func (m *Module) UnmarshalJSON(b []byte) error {
	if !unlist(b, &m.Class, &m.File, &m.Line) {
		return fmt.Errorf(`module %.80s is not ["class","file",line]`, b)
	}
	return nil
}

// Activations says that layers round what they are given. What is recorded as their input is what they
// were given.
type Activations struct {
	Type   string   `json:"type,omitempty"`  // "float8_e4m3fn", with a scale for each token; empty: int8
	Block  int      `json:"block,omitempty"` // of int8, inputs with one scale: 32 or 256
	Layers []string `json:"layers"`          // that do so
}

// Rule is how that is written in fixture.yaml: "int8/256"; "" for nil.
func (a *Activations) Rule() string {
	switch {
	case a == nil:
		return ""
	case a.Type != "":
		return a.Type
	}
	return fmt.Sprintf("int8/%d", a.Block)
}

// Check refuses types and blocks of another size than engines have.
func (a *Activations) Check() error {
	if a == nil || a.Type == "" && (a.Block == 32 || a.Block == 256) || a.Type == tensor.F8E4M3FN.String() && a.Block == 0 {
		return nil
	}
	return fmt.Errorf("activations: type %q with blocks of %d inputs: want %s without blocks, or blocks of 32 or 256 without a type",
		a.Type, a.Block, tensor.F8E4M3FN)
}

// LoadAudit compares the weights that a model loaded with those of the checkpoint. The names are
// those in the checkpoint.
type LoadAudit struct {
	Missing []string `json:"missing"` // the model asks for it, the checkpoint lacks it
	Unused  []string `json:"unused"`  // the checkpoint has it, the model did not ask for it
	Allowed []string `json:"allowed"` // missing or unused, but the fixture allows it
}

// OrderEntry is one tensor of a dump. Name is its name in a file of several tensors.
type OrderEntry struct{ Step, Layer, Port, File, Name string }

// MarshalJSON writes the list that docs/run-json.md asks for.
func (e OrderEntry) MarshalJSON() ([]byte, error) {
	l := []string{e.Step, e.Layer, e.Port, e.File}
	if e.Name != "" {
		l = append(l, e.Name)
	}
	return json.Marshal(l)
}

// UnmarshalJSON reads a list of four or five strings. The step may be a number.
func (e *OrderEntry) UnmarshalJSON(b []byte) error {
	var step json.RawMessage
	*e = OrderEntry{}
	if !unlist(b, &step, &e.Layer, &e.Port, &e.File) && !unlist(b, &step, &e.Layer, &e.Port, &e.File, &e.Name) {
		return fmt.Errorf(`order entry %.80s is not ["step","layer","port","file"]`, b)
	}
	var number json.Number
	if json.Unmarshal(step, &e.Step) != nil && json.Unmarshal(step, &number) != nil {
		return fmt.Errorf(`order entry %.80s: the step is neither a text nor a number`, b)
	}
	e.Step = cmp.Or(e.Step, number.String())
	return nil
}

// Encoding is the type in which a run was asked to compute. A port may be recorded in a wider one.
type Encoding struct {
	Compute string `json:"compute"`  // "bfloat16", or the engine's name of a quantised one; empty: the engine's choice
	KVCache string `json:"kv_cache"` // type of the cached keys and values; empty: the engine's choice for Compute
}

// String is the compute type, followed by the type of the KV cache if that is another one.
func (e Encoding) String() string {
	if e.KVCache == "" || e.KVCache == e.Compute {
		return e.Compute
	}
	return e.Compute + " with a KV cache in " + e.KVCache
}

type encodingObject Encoding

// MarshalJSON writes a string, as schema 1 does, if nothing is said about the KV cache.
func (e Encoding) MarshalJSON() ([]byte, error) {
	if e.KVCache == "" {
		return json.Marshal(e.Compute)
	}
	return json.Marshal(encodingObject(e))
}

// UnmarshalJSON reads a string, or an object with compute and kv_cache.
func (e *Encoding) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*e = Encoding{Compute: s}
		return nil
	}
	var o encodingObject
	err := strict(data, &o)
	if err == nil && (o.Compute == "" || o.KVCache == "") {
		err = errors.New("compute or kv_cache is empty")
	}
	if err != nil {
		return fmt.Errorf(`%w: want "bfloat16", or {"compute": "bfloat16", "kv_cache": "float8_e4m3fn"}`, err)
	}
	*e = Encoding(o)
	return nil
}

// check refuses a type that is a slip of a known one: its run would be judged by other limits. Engines
// have names of their own for quantised ones.
func (e Encoding) check() error {
	var c checks
	floats := []string{"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"}
	for _, name := range []string{e.Compute, e.KVCache} {
		_, err := tensor.ParseDType(name)
		meant, near := label.Slip(name, floats)
		c.want(err == nil || name == "" || !near, "encoding is %q: did you mean %q?", name, meant)
	}
	return c.err
}

// errSeal says that a file does not say what it said when it was written: a merge has lost something of it.
var errSeal = errors.New("the file does not fit its sha256")

// Seal returns the hash of a JSON object without its key "sha256". The order of keys, white space,
// escapes and the form of numbers do not matter: numbers are float64.
func Seal(data []byte) (string, error) {
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return "", err
	}
	delete(object, "sha256")
	canonical, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// CheckSeal compares a JSON object with the hash that it should have.
func CheckSeal(data []byte, want string) error {
	got, err := Seal(data)
	switch {
	case err != nil:
		return err
	case want == "":
		return fmt.Errorf("%w: it has none", errSeal)
	case got != want:
		return fmt.Errorf("%w: it says %.12s…, what it lists has %.12s…", errSeal, want, got)
	}
	return nil
}
