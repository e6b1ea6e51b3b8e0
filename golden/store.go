package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/whole"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Store is an open folder of goldens. It is safe for concurrent use. Its tensors must not be used
// after Close.
type Store struct {
	disk     *snapshot
	dir      string // where the files are: name, or the folder that an Import left next to it
	name     string // as given to Open
	manifest *manifest

	mu   sync.Mutex
	open map[string]*tensor.File // by Pass.File and ProgramFile.File
}

// Open reads the manifest of the store in dir. The store is a snapshot: whatever an [Import] or a
// [Prune] of another process does to dir from now on, all that is read is of one manifest and its
// files. A file is mapped when one of its tensors is read.
//
// The error is [ErrNotFound] if there is no manifest, and [ErrCorrupt] if it is damaged, lists
// something else than its hash says, or has another schema.
func Open(dir string) (*Store, error) { return open(system{}, dir) }

func open(d disk, dir string) (s *Store, err error) {
	err = d.Steady(dir, func() error {
		err := s.Close()
		if err == nil {
			s, err = openNow(d, dir)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openNow opens the store in dir, of which an update may go on at the same time.
func openNow(d disk, dir string) (*Store, error) {
	s := newStore(d, dir, whole.Find(d, dir), nil)
	name := filepath.Join(s.dir, manifestFile)
	data, err := readFile(d, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = notFound("%s has no %s: make goldens: %s", dir, manifestFile, renew)
	case err != nil:
		err = fmt.Errorf("golden: open %q: %w", dir, err)
	default:
		s.manifest, err = parseManifest(name, data)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	files := filesOf(s.manifest.Programs)
	for _, p := range s.manifest.Passes {
		files = append(files, p.File)
	}
	for _, file := range files {
		if err := s.disk.add(s.pathOf(file)); err != nil {
			return nil, errors.Join(fmt.Errorf("golden: open %q: %w", dir, err), s.Close())
		}
	}
	return s, nil
}

func newStore(d disk, name, dir string, m *manifest) *Store {
	return &Store{disk: hold(d, dir), name: name, dir: dir, manifest: m, open: map[string]*tensor.File{}}
}

// Close unmaps all files. The store can still be used after it, but tensors from before it cannot.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.disk.close()}
	for _, f := range s.open {
		errs = append(errs, f.Close())
	}
	clear(s.open)
	return errors.Join(errs...)
}

// Changed returns an error if a file that is open is not as it was when it was opened.
func (s *Store) Changed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.open {
		if err := f.Changed(); err != nil {
			return &classError{class: ErrCorrupt, cause: err, msg: err.Error()}
		}
	}
	return nil
}

// Dir returns the folder as given to [Open].
func (s *Store) Dir() string { return s.name }

// Sealed reports whether a hash covers what the manifest lists. Older versions of goparity wrote
// none.
func (s *Store) Sealed() bool { return s.manifest.Schema >= sealed }

// Passes returns all passes, sorted by variant, case and step. The caller must not change them.
func (s *Store) Passes() []Pass { return s.manifest.Passes }

// Variants returns the variants of a case, or of all cases for "", sorted.
func (s *Store) Variants(caseName string) []string {
	var out []string
	for _, p := range s.manifest.Passes {
		if (caseName == "" || p.Case == caseName) && !slices.Contains(out, p.Variant) {
			out = append(out, p.Variant)
		}
	}
	return out
}

// Steps returns the steps of a case in their order: "0", "1", … "10".
func (s *Store) Steps(variant, caseName string) []string {
	var out []string
	for _, p := range s.manifest.Passes {
		if p.Variant == variant && p.Case == caseName {
			out = append(out, p.Step)
		}
	}
	return out
}

// Pass returns a pass. The error is [ErrNotFound].
func (s *Store) Pass(variant, caseName, step string) (*Pass, error) {
	for i := range s.manifest.Passes {
		if p := &s.manifest.Passes[i]; p.Variant == variant && p.Case == caseName && p.Step == step {
			return p, nil
		}
	}
	return nil, notFound("%s has no golden %s: make it: %s", s.name, passFile(variant, caseName, step), renew)
}

// Entry is one golden tensor of a pass.
type Entry struct {
	Record
	pass  *Pass
	store *Store
}

// Tensors returns the goldens of a pass in execution order. It opens no file. The error is
// [ErrNotFound].
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

// Tensor returns the values as a view of the file, which is mapped when its first tensor is read.
// Type, shape and place in the file are checked against the manifest; the values are not, see
// [Entry.Verify]. The error is [ErrCorrupt], or [ErrNotFound] if the file is missing.
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

// Verify reads the values and compares their sha256 with that in the manifest. The errors are those
// of Tensor.
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

func (s *Store) path(p *Pass) string { return s.pathOf(p.File) }

// file opens the file of a pass once.
func (s *Store) file(p *Pass) (*tensor.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.open[p.File]; f != nil {
		return f, nil
	}
	f, err := openFile(s.disk, s.path(p), p.Size)
	if err != nil {
		return nil, err
	}
	if lost := p.unlisted(f); len(lost) > 0 {
		return nil, errors.Join(corrupt("%s: the manifest does not list %d of its %d tensors, %s: restore the manifest, or %s",
			s.path(p), len(lost), len(f.Tensors), label.Few(lost), renew), f.Close())
	}
	s.open[p.File] = f
	return f, nil
}

// unlisted returns the tensors of the pass's file that the manifest does not list.
func (p *Pass) unlisted(f *tensor.File) []string {
	used := make(map[string]bool, len(p.Tensors))
	for _, r := range p.Tensors {
		used[r.nameInFile()] = true
	}
	var out []string
	for _, t := range f.Tensors {
		if !used[t.Name] {
			out = append(out, t.Name)
		}
	}
	return out
}

// openFile maps a file of the operating system, and reads one of another disk. It refuses a file
// whose size is not that in the manifest.
func openFile(d disk, name string, size int64) (*tensor.File, error) {
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &classError{class: ErrNotFound, cause: err,
			msg: fmt.Sprintf("%s does not exist, but the manifest lists it: restore it, or %s", name, renew)}
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
	const pointer = 1024 // bytes; a git-lfs pointer is shorter, and is opened for its own error
	if st.Size() != size && st.Size() > pointer {
		return nil, wrongSize(name, st.Size(), size)
	}
	var out *tensor.File
	if real := onSystem(f); real != nil {
		out, err = mapped(name, real)
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

// mapped is safetensors.Open of a file that is open.
func mapped(name string, f *os.File) (*tensor.File, error) {
	m, err := mapfile.OpenFile(f)
	if err != nil {
		return nil, err
	}
	out, err := safetensors.Decode(name, m.Data)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	out.Mapping = m
	return out, nil
}

func wrongSize(name string, is, want int64) error {
	what := "is longer than the manifest says"
	if is < want {
		what = "is truncated"
	}
	return corrupt("%s %s: %d bytes of %d: restore it, or %s", name, what, is, want, renew)
}

// lookup finds the tensor of a record in its file, and checks the header against the manifest.
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
