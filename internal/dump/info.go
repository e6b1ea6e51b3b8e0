package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/jsonline"
)

// RunFile is the name of the file that describes a dump.
const RunFile = "run.json"

// Modes of a run, and forms of an injected one.
const (
	Standard = "standard" // each layer sees what its own model computed
	Injected = "injected" // each layer gets the golden inputs
	Nested   = "nested"   // injected in one graph, children too; what was computed for an input is port computed_<n>
	Isolated = "isolated" // each layer alone on golden inputs, nothing replaced inside it
)

// Info is run.json: who ran what, and in which order the tensors were computed.
type Info struct {
	Schema        int                `json:"schema"`
	Engine        string             `json:"engine"`
	Versions      map[string]string  `json:"versions,omitempty"`
	Device        string             `json:"device,omitempty"`
	Encoding      string             `json:"encoding,omitempty"`
	Mode          string             `json:"mode,omitempty"`
	Injection     string             `json:"injection,omitempty"`
	Case          string             `json:"case,omitempty"`
	Prompt        string             `json:"prompt,omitempty"`
	ReferenceText string             `json:"reference_text,omitempty"` // what the reference says by itself to the case
	TokenIDs      json.RawMessage    `json:"token_ids,omitempty"`
	Date          string             `json:"date,omitempty"`
	Order         []OrderEntry       `json:"order,omitempty"`
	Injected      map[string]string  `json:"injected,omitempty"`
	Seconds       map[string]float64 `json:"seconds,omitempty"`
	PeakRSS       int64              `json:"peak_rss_bytes,omitempty"`
	Nonce         string             `json:"nonce,omitempty"`
	Inputs        map[string]string  `json:"inputs,omitempty"` // of a recording: what of the fixture it depends on
	SHA256        map[string]string  `json:"sha256,omitempty"` // of a recording: of each file

	PadMask    [][]int             `json:"pad_mask,omitempty"`     // of the first step, [batch][token], 0 for padding; nil without padding
	Left       map[string]string   `json:"not_injected,omitempty"` // of an injected run: input that was not replaced → why
	Raw        map[string]string   `json:"raw,omitempty"`          // "<step>/<file>" of a headerless file → dtype and shape, "f32:7x64"
	LoadAudit  *LoadAudit          `json:"load_audit,omitempty"`
	Uncaptured map[string][]string `json:"uncaptured,omitempty"` // by layer, arguments with tensors that no hook can record
}

// LoadAudit compares the weights that a model loaded with those of the checkpoint, by their names there.
type LoadAudit struct {
	Missing []string `json:"missing"` // the model asks for it, the checkpoint has it not
	Unused  []string `json:"unused"`  // the checkpoint has it, the model did not ask
	Allowed []string `json:"allowed"` // missing or unused, as the fixture allows
}

// OrderEntry is one tensor of a dump: step, layer, port, file, and where the file holds several tensors the name in it.
type OrderEntry struct{ Step, Layer, Port, File, Name string }

// MarshalJSON writes the entry as the list that the contract asks for.
func (e OrderEntry) MarshalJSON() ([]byte, error) {
	l := []string{e.Step, e.Layer, e.Port, e.File}
	if e.Name != "" {
		l = append(l, e.Name)
	}
	return json.Marshal(l)
}

// UnmarshalJSON reads a list of four or five strings; a step may be a number.
func (e *OrderEntry) UnmarshalJSON(b []byte) error {
	var l []any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&l); err != nil || len(l) < 4 || len(l) > 5 {
		return fmt.Errorf(`order entry %.80s is not ["step","layer","port","file"]`, b)
	}
	var s [5]string
	for i, v := range l {
		switch v := v.(type) {
		case string:
			s[i] = v
		case json.Number:
			s[i] = v.String()
		default:
			return fmt.Errorf(`order entry %.80s is not ["step","layer","port","file"]`, b)
		}
	}
	*e = OrderEntry{s[0], s[1], s[2], s[3], s[4]}
	return nil
}

// parseInfo reads run.json. Unknown keys are kept out, not refused: engines may add their own.
func parseInfo(path string, data []byte) (Info, error) {
	var raw struct {
		Info
		Injected  json.RawMessage `json:"injected"` // a list of labels where nothing was injected
		Injection *string         `json:"injection"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return Info{}, fmt.Errorf("dump: open %q: %w", path, jsonline.Error(data, err))
	}
	info := raw.Info
	if raw.Injection != nil {
		info.Injection = *raw.Injection
	}
	if info.Schema != 1 {
		return Info{}, fmt.Errorf("dump: open %q: schema is %d, this version reads 1", path, info.Schema)
	}
	if len(raw.Injected) > 0 && raw.Injected[0] == '{' {
		if err := json.Unmarshal(raw.Injected, &info.Injected); err != nil {
			return Info{}, fmt.Errorf(`dump: open %q: "injected": %w`, path, err)
		}
	}
	if info.Mode == "" {
		info.Mode = Standard
	}
	if !slices.Contains([]string{Standard, Injected}, info.Mode) {
		return Info{}, fmt.Errorf("dump: open %q: mode is %q, want %s or %s", path, info.Mode, Standard, Injected)
	}
	if !slices.Contains([]string{"", Nested, Isolated}, info.Injection) {
		return Info{}, fmt.Errorf("dump: open %q: injection is %q, want %s or %s", path, info.Injection, Nested, Isolated)
	}
	for i, e := range info.Order {
		if !filepath.IsLocal(e.File) || e.Step != "" && !filepath.IsLocal(e.Step) {
			return Info{}, fmt.Errorf("dump: open %q: order entry %d: file %q of step %q leaves the dump's folder", path, i, e.File, e.Step)
		}
		if e.Layer == "" || e.Port == "" {
			return Info{}, fmt.Errorf("dump: open %q: order entry %d: layer or port is empty", path, i)
		}
	}
	return info, nil
}
