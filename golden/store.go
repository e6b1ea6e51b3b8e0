package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Store is an open folder of goldens. It is safe for concurrent use. Its tensors must not be used after Close.
type Store struct {
	fs       afero.Fs
	dir      string // where the files are
	name     string // as it was given
	manifest *Manifest

	mu   sync.Mutex
	open map[string]*tensor.File // by Pass.File
}

// Open reads the manifest of the store in dir. If there is none the error is [ErrNotFound]; a manifest that cannot be believed is
// [ErrCorrupt]. The files themselves are opened when their tensors are asked for. Where an update died between its last two steps,
// the goldens from before it are opened.
func Open(fsys afero.Fs, dir string) (*Store, error) {
	s := &Store{fs: fsys, name: dir, open: map[string]*tensor.File{}}
	var data []byte
	var err error
	for _, s.dir = range []string{dir, beside(dir, "old")} {
		if data, err = afero.ReadFile(fsys, filepath.Join(s.dir, ManifestFile)); err == nil {
			break
		}
		if exists, _ := afero.DirExists(fsys, s.dir); exists || !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("%s has no %s: make goldens: %s", dir, ManifestFile, Renew)
	}
	if err != nil {
		return nil, fmt.Errorf("golden: open %q: %w", dir, err)
	}
	if s.manifest, err = parseManifest(filepath.Join(s.dir, ManifestFile), data); err != nil {
		return nil, err
	}
	return s, nil
}

// Close unmaps all files. The store can be used again after it, tensors from before it cannot.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.open {
		errs = append(errs, f.Close())
	}
	clear(s.open)
	return errors.Join(errs...)
}

// Dir is the folder as it was given to Open.
func (s *Store) Dir() string { return s.name }

// Passes lists the passes by variant, case and step; the caller must not change them.
func (s *Store) Passes() []Pass { return s.manifest.Passes }

// Variants lists the variants of a case; of all cases for "".
func (s *Store) Variants(caseName string) []string {
	var out []string
	for _, p := range s.manifest.Passes {
		if (caseName == "" || p.Case == caseName) && !slices.Contains(out, p.Variant) {
			out = append(out, p.Variant)
		}
	}
	return out
}

// Steps lists the steps of a case in their order.
func (s *Store) Steps(variant, caseName string) []string {
	var out []string
	for _, p := range s.manifest.Passes {
		if p.Variant == variant && p.Case == caseName {
			out = append(out, p.Step)
		}
	}
	return out
}

// Pass finds a pass. The error is [ErrNotFound].
func (s *Store) Pass(variant, caseName, step string) (*Pass, error) {
	for i := range s.manifest.Passes {
		if p := &s.manifest.Passes[i]; p.Variant == variant && p.Case == caseName && p.Step == step {
			return p, nil
		}
	}
	return nil, notFound("%s has no golden %s: make it: %s", s.name, passFile(variant, caseName, step), Renew)
}

// Entry is one golden tensor of a pass.
type Entry struct {
	Record
	pass  *Pass
	store *Store
}

// Tensors lists the goldens of a pass in execution order. It opens no file; the error is [ErrNotFound].
func (s *Store) Tensors(variant, caseName, step string) ([]Entry, error) {
	p, err := s.Pass(variant, caseName, step)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(p.Tensors))
	for i, r := range p.Tensors {
		entries[i] = Entry{r, p, s}
	}
	return entries, nil
}

// Tensor gives the values, a view of the file, which is opened for the first of its tensors. dtype, shape and place in the file are
// checked against the manifest, the values are not: see [Entry.Verify]. The error is [ErrCorrupt], or [ErrNotFound] without the file.
func (e Entry) Tensor() (*tensor.Tensor, error) {
	f, err := e.store.file(e.pass)
	if err != nil {
		return nil, err
	}
	t, err := lookup(f, e.Record)
	if err != nil {
		return nil, corrupt("%s: %s: %v", e.store.path(e.pass), e.Label(), err)
	}
	return t, nil
}

// Verify reads the tensor and compares its hash with the manifest's. The error is that of Tensor.
func (e Entry) Verify() error {
	t, err := e.Tensor()
	if err != nil {
		return err
	}
	if err := checkHash(t, e.Record); err != nil {
		return corrupt("%s: %s: %v", e.store.path(e.pass), e.Label(), err)
	}
	return nil
}

func (s *Store) path(p *Pass) string { return filepath.Join(s.dir, filepath.FromSlash(p.File)) }

// file opens the file of a pass once.
func (s *Store) file(p *Pass) (*tensor.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.open[p.File]; f != nil {
		return f, nil
	}
	f, err := openFile(s.fs, s.path(p), p.Size)
	if err != nil {
		return nil, err
	}
	s.open[p.File] = f
	return f, nil
}

// openFile maps a file where it is a real one, and reads it otherwise. A file of another size than the manifest says is not read.
func openFile(fsys afero.Fs, name string, size int64) (*tensor.File, error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &classError{class: ErrNotFound, cause: err, msg: fmt.Sprintf("%s does not exist, but the manifest lists it: restore it, or %s", name, Renew)}
	}
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("golden: %s: %w", name, err)
	}
	if !st.Mode().IsRegular() {
		return nil, corrupt("%s is not a regular file", name)
	}
	const pointer = 1024 // a git-lfs pointer is shorter: it is opened to be named as such
	if st.Size() != size && st.Size() > pointer {
		return nil, wrongSize(name, st.Size(), size)
	}
	var out *tensor.File
	if path, ok := realPath(f); ok {
		out, err = safetensors.Open(path)
	} else {
		data := make([]byte, st.Size())
		if n, err := f.ReadAt(data, 0); n != len(data) {
			return nil, fmt.Errorf("golden: %s: read %d of %d bytes: %w", name, n, len(data), err)
		}
		out, err = safetensors.Decode(name, data)
	}
	switch {
	case err != nil && !errors.Is(err, tensor.ErrLFSPointer) && st.Size() != size:
		return nil, wrongSize(name, st.Size(), size)
	case err != nil:
		return nil, &classError{class: ErrCorrupt, cause: err, msg: err.Error()}
	case st.Size() != size:
		return nil, errors.Join(wrongSize(name, st.Size(), size), out.Close())
	}
	return out, nil
}

func wrongSize(name string, is, want int64) error {
	what := "is longer than the manifest says"
	if is < want {
		what = "is truncated"
	}
	return corrupt("%s %s: %d bytes of %d: restore it, or %s", name, what, is, want, Renew)
}

// realPath gives the path of a file of the operating system, through whatever file systems wrap it.
func realPath(f afero.File) (string, bool) {
	for {
		switch file := f.(type) {
		case *os.File:
			return file.Name(), true
		case *afero.BasePathFile:
			f = file.File
		default:
			return "", false
		}
	}
}

// lookup finds the tensor of a record in its file and checks that the header says what the manifest says.
func lookup(f *tensor.File, r Record) (*tensor.Tensor, error) {
	t, ok := f.Lookup(r.nameInFile())
	switch {
	case !ok:
		return nil, fmt.Errorf("the file has no tensor %q", r.nameInFile())
	case t.DType() != r.DType || !slices.Equal(t.Shape(), r.Shape):
		return nil, fmt.Errorf("the file has %s, the manifest says %s%s", t, r.DType, tensor.FormatShape(r.Shape))
	case t.Place().Offset != r.Offset:
		return nil, fmt.Errorf("the file has it at byte %d, the manifest says %d", t.Place().Offset, r.Offset)
	}
	return t, nil
}

// Stale compares what the goldens were made of with what the fixture says now: inputs gives it by case (the Inputs of its package
// fixture). Each stale variant and case is one [*StaleError]; goldens of other cases are not looked at, see [Prune].
func (s *Store) Stale(inputs map[string]map[string]string) []error {
	var out []error
	seen := map[[2]string]bool{}
	for _, p := range s.manifest.Passes {
		now, ok := inputs[p.Case]
		if !ok || seen[[2]string{p.Variant, p.Case}] {
			continue
		}
		if changes := fixture.Changed(p.Provenance.Inputs, now); len(changes) > 0 {
			seen[[2]string{p.Variant, p.Case}] = true
			out = append(out, &StaleError{Dir: s.name, Variant: p.Variant, Case: p.Case, Changes: changes})
		}
	}
	return out
}
