package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goparity/goparity/internal/jsonline"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/seal"
	"github.com/goparity/goparity/tensor"
)

// manifestFile is the name of the manifest in a store's folder.
const manifestFile = "manifest.json"

// schema is the version of the manifest that is written. Versions 1 to schema are read; sealed is
// the first that has a hash of what it lists.
const (
	schema = 7 // 3 has use, formula and attn_implementation; 4 has paths; 5 has text; 6 has activations; 7 has programs
	sealed = 2
)

// manifest is manifest.json.
type manifest struct {
	Schema   int       `json:"schema"`
	SHA256   string    `json:"sha256,omitempty"` // of all the rest, see package seal
	Passes   []Pass    `json:"passes"`           // sorted by variant, case and step
	Paths    []Path    `json:"paths,omitempty"`
	Programs []Program `json:"programs,omitempty"` // sorted by case
}

// Pass has the goldens of one forward pass, which are in one file.
type Pass struct {
	Variant    string     `json:"variant"` // dtype in which the reference ran: "float32", "float64", …
	Case       string     `json:"case"`
	Step       string     `json:"step"`                // "0" is the prefill
	File       string     `json:"file"`                // <variant>/<case>.<step>.safetensors, relative to the store
	Size       int64      `json:"size"`                // in bytes
	SHA256     string     `json:"sha256"`              // of the file, or of what SHA256Of says
	SHA256Of   string     `json:"sha256_of,omitempty"` // "" for the file, or ofParts
	Provenance Provenance `json:"provenance"`
	Tensors    []Record   `json:"tensors"` // in execution order
}

// ofParts says that the sha256 of a pass is that of the header of its file and of the sha256 of the
// tensors (in hexadecimal, in the order of the file): so that no byte is hashed twice.
const ofParts = "header, tensors"

// digest returns the sha256 of the parts. header returns the first n bytes of the file.
func (p *Pass) digest(header func(n int64) ([]byte, error)) (string, error) {
	seen := map[string]bool{}
	var hashes strings.Builder
	n := p.Size
	for _, r := range p.Tensors { // of equal ones the first is in the file
		if name := r.nameInFile(); !seen[name] {
			seen[name] = true
			n -= r.Length
			hashes.WriteString(r.SHA256)
		}
	}
	if n < 0 {
		return "", fmt.Errorf("%d bytes of tensors do not fit into it", p.Size-n)
	}
	h := sha256.New()
	head, err := header(n)
	if err != nil {
		return "", err
	}
	h.Write(head)
	io.WriteString(h, hashes.String())
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Provenance says where the goldens of a pass come from.
type Provenance struct {
	Engine   string            `json:"engine,omitempty"`
	Versions map[string]string `json:"versions,omitempty"` // torch, transformers, tokenizers, …
	Weights  string            `json:"weights,omitempty"`  // revision or hash, as given by the caller
	TokenIDs json.RawMessage   `json:"token_ids,omitempty"`
	PadMask  [][]int           `json:"pad_mask,omitempty"` // first step: [batch][token], 0 is padding
	// Path, Passes and PadMasks are those of a run along an execution path, as in its run.json.
	Path     string             `json:"path,omitempty"`
	Passes   json.RawMessage    `json:"passes,omitempty"`
	PadMasks map[string][][]int `json:"pad_masks,omitempty"`      // of steps behind the first
	Text     string             `json:"reference_text,omitempty"` // what the reference generated
	// Activations says which layers rounded their inputs, as in run.json.
	Activations json.RawMessage `json:"activations,omitempty"`
	// Texts has what the reference's tokenizer made of the case's prompts, as text in run.json.
	Texts  json.RawMessage `json:"text,omitempty"`
	Seed   *int64          `json:"seed,omitempty"`
	Device string          `json:"device,omitempty"`
	// Attention is the kernel with which the reference computed attention: "eager", "sdpa".
	Attention string `json:"attn_implementation,omitempty"`
	Use       string `json:"use,omitempty"`     // what the variant is for: "judge", "noise", "cost"; empty where no one said
	Formula   string `json:"formula,omitempty"` // of the use cost: what it judges by
	Date      string `json:"date,omitempty"`    // RFC 3339
	Nonce     string `json:"nonce,omitempty"`   // of the recording from which they were made
	Command   string `json:"command,omitempty"`
	Blessed   string `json:"blessed,omitempty"` // why the candidate's output became golden
	// Inputs is what the goldens depend on, by key: of a fixture the model, the case, what is
	// captured, and hashes of files. If one of them changes, the golden is stale.
	Inputs map[string]string `json:"inputs,omitempty"`
}

// Record is one golden tensor in the manifest.
type Record struct {
	Layer  string       `json:"layer"`
	Port   string       `json:"port"`
	Index  int          `json:"index"` // in the run, of which other ports may not have been kept
	DType  tensor.DType `json:"dtype"`
	Shape  []int        `json:"shape"`
	Name   string       `json:"name,omitempty"` // in the file; empty if it is the label
	Offset int64        `json:"offset"`         // in bytes from the beginning of the file
	Length int64        `json:"length"`         // in bytes
	SHA256 string       `json:"sha256"`         // of the values
	Stats
}

// Label returns "<layer>-<port>".
func (r Record) Label() string { return label.Join(r.Layer, r.Port) }

func (r Record) nameInFile() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Label()
}

// Key names a golden tensor.
type Key struct{ Variant, Case, Step, Layer, Port string }

func (k Key) String() string {
	return fmt.Sprintf("%s/%s.%s %s", k.Variant, k.Case, k.Step, label.Join(k.Layer, k.Port))
}

func (p *Pass) key(r Record) Key { return Key{p.Variant, p.Case, p.Step, r.Layer, r.Port} }

func passFile(variant, caseName, step string) string {
	return path.Join(variant, caseName+"."+step+".safetensors")
}

// Names of variants, cases and steps become parts of file names.
var (
	partPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	casePattern = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_-]{0,99})?(@[a-z0-9-]{1,99})?$`) // see Path.Golden
)

func isCase(name string) bool { return name != "" && casePattern.MatchString(name) }

var shaPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseManifest reads a manifest and checks everything that can be checked without the files.
func parseManifest(name string, data []byte) (*manifest, error) {
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return nil, &classError{class: ErrCorrupt, cause: tensor.ErrLFSPointer,
			msg: fmt.Sprintf("%s is a git-lfs pointer, not the file: run git lfs pull", name)}
	}
	var version struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, corrupt("%s: %s", name, jsonline.Error(data, err))
	}
	if version.Schema == nil || *version.Schema < 1 || *version.Schema > schema {
		found := "no schema"
		if version.Schema != nil {
			found = fmt.Sprintf("schema %d", *version.Schema)
		}
		return nil, corrupt("%s has %s, this version of goparity reads 1 to %d: use the version that wrote it, "+
			"or delete the folder and make the goldens again: %s",
			name, found, schema, renew)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var m manifest
	if err := d.Decode(&m); err != nil {
		return nil, corrupt("%s: %s", name, jsonline.Error(data, err))
	}
	seen := map[string]bool{}
	for i := range m.Passes {
		p := &m.Passes[i]
		if err := p.check(); err != nil {
			return nil, corrupt("%s: passes[%d]: %v", name, i, err)
		}
		// Two passes must not share a file, not even on systems that ignore upper and lower case.
		if folded := strings.ToLower(p.File); seen[folded] {
			return nil, corrupt("%s: passes[%d]: %s is there twice", name, i, p.File)
		} else {
			seen[folded] = true
		}
	}
	for i := range m.Paths {
		if err := m.Paths[i].check(); err != nil {
			return nil, corrupt("%s: paths[%d]: %v", name, i, err)
		}
	}
	for i := range m.Programs {
		if err := m.Programs[i].check(seen); err != nil {
			return nil, corrupt("%s: programs[%d]: %v", name, i, err)
		}
	}
	if m.Schema >= sealed || m.SHA256 != "" {
		if err := seal.Check(data, m.SHA256); err != nil {
			return nil, corrupt("%s: %v: a merge or an edit changed what it lists: restore it with its files, or "+
				"delete the folder and make the goldens again: %s", name, err, renew)
		}
	}
	return &m, nil
}

func (p *Pass) check() error {
	for _, part := range []struct{ what, is string }{{"variant", p.Variant}, {"step", p.Step}} {
		if !partPattern.MatchString(part.is) {
			return fmt.Errorf("%s %q: want letters, digits, - and _", part.what, part.is)
		}
	}
	if !isCase(p.Case) {
		return fmt.Errorf("case %q: want letters, digits, - and _", p.Case)
	}
	if want := passFile(p.Variant, p.Case, p.Step); p.File != want || !filepath.IsLocal(filepath.FromSlash(p.File)) {
		return fmt.Errorf("file is %q, want %q", p.File, want)
	}
	if p.SHA256Of != "" && p.SHA256Of != ofParts {
		return fmt.Errorf("%s: sha256_of is %q, want %q or nothing", p.File, p.SHA256Of, ofParts)
	}
	if p.Size < 0 || !shaPattern.MatchString(p.SHA256) {
		return fmt.Errorf("%s: size %d or sha256 %.80q is impossible", p.File, p.Size, p.SHA256)
	}
	if len(p.Tensors) == 0 {
		return fmt.Errorf("%s has no tensors", p.File)
	}
	labels := map[string]bool{}
	last := -1
	for i, r := range p.Tensors {
		bytes, err := tensor.NumBytes(r.DType, r.Shape)
		switch {
		case r.Layer == "" || r.Port == "":
			return fmt.Errorf("tensors[%d]: no layer or port", i)
		case labels[r.Layer+"\x00"+r.Port]:
			return fmt.Errorf("tensors[%d]: %q is there twice", i, r.Label())
		case r.Index <= last:
			return fmt.Errorf("tensors[%d]: %q: index %d after %d: not in execution order", i, r.Label(), r.Index, last)
		case err != nil:
			return fmt.Errorf("tensors[%d]: %q: %w", i, r.Label(), err)
		case r.DType == tensor.Invalid:
			return fmt.Errorf("tensors[%d]: %q: no dtype", i, r.Label())
		case r.Length != int64(bytes):
			return fmt.Errorf("tensors[%d]: %q: length %d, but %s%s has %d bytes", i, r.Label(), r.Length, r.DType,
				tensor.FormatShape(r.Shape), bytes)
		case r.Offset < 0 || r.Offset > p.Size || r.Length > p.Size-r.Offset:
			return fmt.Errorf("tensors[%d]: %q: bytes %d+%d are outside the file of %d bytes",
				i, r.Label(), r.Offset, r.Length, p.Size)
		case !shaPattern.MatchString(r.SHA256):
			return fmt.Errorf("tensors[%d]: %q: sha256 %.80q is impossible", i, r.Label(), r.SHA256)
		}
		labels[r.Layer+"\x00"+r.Port] = true
		last = r.Index
	}
	return nil
}

// marshal returns the manifest in the current schema, sealed, with a line for each tensor, so that a
// diff shows what changed.
func (m *manifest) marshal() ([]byte, error) {
	lists, err := m.marshalLists()
	if err != nil {
		return nil, err
	}
	text := func(sum string) []byte { return fmt.Appendf(nil, "{\n \"schema\": %d,%s%s", schema, sum, lists) }
	sum, err := seal.Sum(text(""))
	if err != nil {
		return nil, fmt.Errorf("golden: manifest: %w", err)
	}
	return text(fmt.Sprintf("\n %q: %q,", seal.Key, sum)), nil
}

func (m *manifest) marshalLists() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("\n \"passes\": [")
	for i, p := range m.Passes {
		tensors := p.Tensors
		p.Tensors = nil
		head, err := marshalPlain(p)
		if err != nil {
			return nil, err
		}
		head, ok := bytes.CutSuffix(head, []byte(`,"tensors":null}`))
		if !ok {
			return nil, fmt.Errorf("golden: manifest: unexpected form of a pass: %s", head)
		}
		fmt.Fprintf(&b, "%s\n  ", comma(i))
		b.Write(head)
		b.WriteString(`,"tensors":[`)
		for j, r := range tensors {
			line, err := marshalPlain(r)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "%s\n   %s", comma(j), line)
		}
		b.WriteString("\n  ]}")
	}
	b.WriteString("\n ]")
	if err := errors.Join(writeList(&b, "paths", m.Paths), writeList(&b, "programs", m.Programs)); err != nil {
		return nil, err
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// writeList writes a further list of the manifest, unless it is empty.
func writeList[E any](b *bytes.Buffer, key string, list []E) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintf(b, ",\n %q: [", key)
	for i, e := range list {
		line, err := marshalPlain(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s\n  %s", comma(i), line)
	}
	b.WriteString("\n ]")
	return nil
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// marshalPlain returns JSON on one line in which <, > and & are not escaped.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("golden: manifest: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
