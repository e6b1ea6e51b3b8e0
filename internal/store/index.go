package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// IndexFile lists the runs that a folder keeps: goldens, or recorded runs of a candidate.
// All its other files are named by their content.
const IndexFile = "index.json"

// indexSchema is the version of [IndexFile].
const indexSchema = 1

// Index is what a folder keeps.
type Index struct {
	Schema int     `json:"schema"`
	SHA256 string  `json:"sha256"`          // of all the rest, see dump.Seal
	Paths  []Along `json:"paths,omitempty"` // how the reference itself does along execution paths
	Runs   []*Kept `json:"runs"`
}

// Kept is a run in an index.
type Kept struct {
	Variant string      `json:"variant,omitempty"` // of goldens: the reference that ran, "float32"
	Use     string      `json:"use,omitempty"`     // what the variant is for: "judge", "noise", "cost"; empty where no one said
	Formula string      `json:"formula,omitempty"` // of the use cost: what it judges by
	Command string      `json:"command,omitempty"`
	Blessed string      `json:"blessed,omitempty"` // why the candidate's output became golden
	Joined  dump.Joined `json:"joined,omitempty"`
	Program []string    `json:"program,omitempty"` // files of the program that the reference ran: itself, and its constants

	Raw  json.RawMessage `json:"info"` // as a run.json; its files lie beside the index
	Info dump.Info       `json:"-"`
}

// Along says how the reference itself does along an execution path: run along it, it has in each row
// what it has in one pass, or it has not, and then the path keeps goldens of its own.
type Along struct {
	Variant string `json:"variant"`
	Case    string `json:"case,omitempty"` // "" for a path that runs all cases together
	Path    string `json:"path"`           // "decode:8"
	// Own says that the path has goldens of its own, of the case [Along.Golden].
	Own bool `json:"own,omitempty"`
	// Left says that the case is not run along the path: with its images the reference itself is not
	// what it is in one pass.
	Left bool `json:"left,omitempty"`
	// RowRelL2 is how far the worst row is from that of one pass, ‖a − g‖ / ‖g‖, and Limit what it
	// may be; both are 0 where one pass has no such rows.
	RowRelL2 float64 `json:"row_rel_l2"`
	Limit    float64 `json:"limit"`
	Label    string  `json:"label,omitempty"` // of the tensor with the worst row
}

// Golden is the case under which goldens of the path's own are kept: "short@decode-8".
func (a Along) Golden() string { return dump.PathCase(a.Case, a.Path) }

// OnePass reports whether a run is the standard one of a case, and not along a path or a text.
func (k *Kept) OnePass() bool {
	_, along := dump.CutPathCase(k.Info.Case)
	return !along && k.Info.Mode != dump.Injected
}

// String names a run for messages.
func (k *Kept) String() string {
	what := k.Variant
	if what == "" {
		what = cmp.Or(k.Info.Mode, dump.Standard)
	}
	return fmt.Sprintf("%s of case %s", what, k.Info.Case)
}

// ReadIndex reads the index of a folder. The error is [fs.ErrNotExist] where there is none, and [ErrCorrupt].
func ReadIndex(dir string) (*Index, error) {
	x, _, err := readIndex(afero.NewOsFs(), dir)
	return x, err
}

// readIndex reads the index of a folder, and returns its bytes, too. The error is [fs.ErrNotExist] where
// there is none, and [ErrCorrupt].
func readIndex(disk afero.Fs, dir string) (*Index, []byte, error) {
	name := filepath.Join(dir, IndexFile)
	data, err := read(disk, name)
	if err != nil {
		return nil, nil, err
	}
	x, err := parseIndex(data)
	if err != nil {
		return nil, data, fmt.Errorf("%s: %w", name, err)
	}
	return x, data, nil
}

// parseIndex reads an index. The error is [ErrCorrupt].
func parseIndex(data []byte) (*Index, error) {
	corrupt := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w: restore the folder, or make it again", ErrCorrupt, fmt.Errorf(format, args...))
	}
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return nil, corrupt("it is a git-lfs pointer, not the file (%w): run git lfs pull", tensor.ErrLFSPointer)
	}
	var x Index
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return nil, corrupt("%w", mapfile.JSONError(data, err))
	}
	if x.Schema != indexSchema {
		return nil, corrupt("schema is %d, this version of goparity reads %d", x.Schema, indexSchema)
	}
	if err := dump.CheckSeal(data, x.SHA256); err != nil {
		return nil, corrupt("%w: a merge or an edit changed what it lists", err)
	}
	for i, k := range x.Runs {
		var err error
		if k.Info, err = dump.ParseInfo(IndexFile, k.Raw); err == nil {
			err = k.check()
		}
		if err != nil {
			return nil, corrupt("runs[%d]: %w", i, err)
		}
	}
	return &x, nil
}

// check refuses files that are elsewhere, or have no hash.
func (k *Kept) check() error {
	files := slices.Clone(k.Program)
	for _, o := range k.Info.Order {
		files = append(files, o.File)
	}
	for _, file := range files {
		if file != filepath.Base(file) || !filepath.IsLocal(file) {
			return fmt.Errorf("file %q leaves the folder", file)
		}
		if k.Info.SHA256[file] == "" {
			return fmt.Errorf("file %q has no sha256", file)
		}
	}
	return nil
}

// Marshal returns the index, sealed, with a line for each tensor, so that a diff shows what changed.
func (x *Index) Marshal() ([]byte, error) {
	bare, err := x.text("")
	if err != nil {
		return nil, err
	}
	sum, err := dump.Seal(bare)
	if err != nil {
		return nil, err
	}
	return x.text(sum)
}

func (x *Index) text(sum string) ([]byte, error) {
	of := Index{Schema: indexSchema, SHA256: sum, Paths: x.Paths, Runs: []*Kept{}}
	for _, k := range x.Runs {
		info, err := json.Marshal(k.Info)
		if err != nil {
			return nil, err
		}
		bare := *k
		bare.Raw = info
		of.Runs = append(of.Runs, &bare)
	}
	data, err := json.Marshal(of)
	for _, at := range []string{`"runs":[`, `"info":{`, `["`} { // in a text, quotation marks are escaped
		data = bytes.ReplaceAll(data, []byte(","+at), []byte(",\n "+at))
	}
	data = bytes.ReplaceAll(data, []byte(`[["`), []byte("[\n [\""))
	return append(data, '\n'), err
}

// digest returns the hash by which a file of tensors is named and checked: of their names, types, shapes
// and hashes, which all cores compute.
func digest(f *tensor.File) (string, error) {
	sums := make([]string, len(f.Tensors))
	err := mapfile.Guard(func() error {
		return vec.Each(context.Background(), len(sums), func(i int) (err error) {
			return mapfile.Guard(func() error { sums[i], err = safetensors.Hash(f.Tensors[i].Tensor); return err })
		})
	})
	return digestOf(f.Tensors, sums), err
}

// digestOf is digest of tensors whose hashes are known.
func digestOf(tensors []tensor.Named, sums []string) string {
	h := sha256.New()
	for i, t := range tensors {
		fmt.Fprintf(h, "%q %s %v %s\n", t.Name, t.Tensor.DType(), t.Tensor.Shape(), sums[i])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// KeepsRuns reports whether a folder keeps runs, and is no dump.
func KeepsRuns(dir string) bool {
	return mapfile.IsFile(filepath.Join(dir, IndexFile))
}

// OpenCases opens runs as [dump.OpenCases] does, also those of a folder that keeps runs: the standard ones of one
// variant, or those of another mode that is asked for; along paths and texts where all are to be opened.
func OpenCases(dir string, opt dump.Options) (runs []*dump.Run, err error) {
	if !KeepsRuns(dir) {
		return dump.OpenCases(dir, opt)
	}
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if runs, err = s.standard(opt); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	left := len(runs)
	for _, r := range runs {
		r.OnClose(func() error {
			if left--; left > 0 {
				return nil
			}
			return s.Close()
		})
	}
	return runs, nil
}

func (s *Store) standard(opt dump.Options) (runs []*dump.Run, err error) {
	var variants []string
	injected := !slices.ContainsFunc(s.Runs(), func(k *Kept) bool { return k.Info.Mode != dump.Injected }) || opt.Mode == dump.Injected
	for _, k := range s.Runs() {
		along := !k.OnePass() && k.Info.Mode != dump.Injected
		if len(k.Info.Order) == 0 || (k.Info.Mode == dump.Injected) != injected || along && !opt.Unjudged {
			continue
		}
		if !slices.Contains(variants, k.Variant) {
			variants = append(variants, k.Variant)
		}
		r, err := s.Run(k)
		if err == nil && !opt.Unjudged {
			err = k.Info.Judgeable()
		}
		if err != nil {
			return nil, fmt.Errorf("open %q: %w", s.dir, err)
		}
		if len(k.Program) > 0 {
			r.Program = filepath.Join(s.dir, k.Program[0])
		}
		runs = append(runs, r)
	}
	switch {
	case len(variants) > 1:
		return nil, fmt.Errorf("store: open %q: it keeps goldens of %s: want one run for each case", s.dir, variants)
	case len(runs) == 0:
		return nil, fmt.Errorf("store: open %q: %s lists no such run: %w", s.dir, IndexFile, dump.ErrEmpty)
	}
	return runs, nil
}
