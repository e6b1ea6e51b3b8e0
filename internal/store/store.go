// Package store keeps runs in a folder: the goldens of a reference, or the recorded runs of a candidate.
//
//	index.json                       who ran what, and where each tensor lies (Index)
//	CASE.STEP.<hash>.safetensors     the tensors of a forward pass in their own type, equal ones once
//	CASE.<hash>.json                 what the reference ran (package program), and its constants,
//	CASE.<hash>.safetensors          beside it
//
// Files are named by their content, and never change. Who replaces runs writes new files, renames the
// index, and removes what the new one does not list: whatever happens, and whoever reads or writes at the
// same time, a reader has the runs of one index, whole. Readers take no lock and write nothing.
package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Classes of errors, for [errors.Is].
var (
	// ErrNotFound: there is no run of that name, or no store, or a file is gone.
	ErrNotFound = errors.New("not found")
	// ErrCorrupt: the index cannot be read, or a file is not what it says.
	ErrCorrupt = errors.New("the store is damaged")
)

// renew is the command that makes goldens again.
const renew = "go test ./... -update"

func notFound(format string, args ...any) error { return &missing{fmt.Sprintf(format, args...)} }

type missing struct{ msg string }

func (e *missing) Error() string { return "store: " + e.msg }
func (e *missing) Unwrap() error { return ErrNotFound }

// Store is an open folder, a snapshot of one index. It is safe for concurrent use; its tensors must not
// be used after Close.
type Store struct {
	disk  afero.Fs
	dir   string
	index *Index
	files map[string]*content // all that the index lists

	mu   sync.Mutex
	runs map[*Kept]*dump.Run
}

// content is a file as it was when the store was opened.
type content struct {
	tensors *tensor.File // nil for a program
	program []byte
	err     error
}

// Open opens the store in dir. The error is [ErrNotFound] if there is no index, and [ErrCorrupt] if it is
// damaged, or lists something else than its hash says.
func Open(dir string) (*Store, error) { return openOn(afero.NewOsFs(), dir) }

// openOn is Open on another file system.
func openOn(disk afero.Fs, dir string) (*Store, error) {
	for {
		x, data, err := readIndex(disk, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, notFound("%s has no %s: make goldens: %s", dir, IndexFile, renew)
		case err != nil:
			return nil, fmt.Errorf("store: open %q: %w", dir, err)
		}
		s := with(disk, dir, x)
		if s.whole() {
			return s, nil
		}
		// A file is gone: either another index has taken the place of this one, or it is damaged.
		if _, now, err := readIndex(disk, dir); err == nil && bytes.Equal(data, now) {
			return s, nil
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
}

// with opens the files of an index. No descriptor stays open.
func with(disk afero.Fs, dir string, x *Index) *Store {
	s := &Store{disk: disk, dir: dir, index: x, files: map[string]*content{}, runs: map[*Kept]*dump.Run{}}
	for _, k := range x.Runs {
		for file := range k.Info.SHA256 {
			if s.files[file] == nil {
				s.files[file] = s.open(file)
			}
		}
	}
	return s
}

func (s *Store) open(file string) *content {
	c := &content{}
	name := filepath.Join(s.dir, file)
	tensors := filepath.Ext(file) == ".safetensors"
	if _, real := s.disk.(*afero.OsFs); real && tensors {
		c.tensors, c.err = safetensors.Open(name)
	} else if c.program, c.err = read(s.disk, name); tensors && c.err == nil {
		c.tensors, c.err = safetensors.Decode(name, c.program)
	}
	if errors.Is(c.err, fs.ErrNotExist) {
		c.err = notFound("%s does not exist, but %s lists it: restore it, or %s", name, IndexFile, renew)
	} else if c.err != nil {
		c.err = fmt.Errorf("store: %w: %w: restore it, or %s", ErrCorrupt, c.err, renew)
	}
	return c
}

func read(disk afero.Fs, name string) ([]byte, error) {
	if _, real := disk.(*afero.OsFs); real {
		return mapfile.Read(name, mapfile.MaxListing)
	}
	return afero.ReadFile(disk, name)
}

// whole reports whether all files are there.
func (s *Store) whole() bool {
	for _, c := range s.files {
		if errors.Is(c.err, ErrNotFound) {
			return false
		}
	}
	return true
}

// Close unmaps all files.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, c := range s.files {
		errs = append(errs, c.tensors.Close())
	}
	return errors.Join(errs...)
}

// Changed returns an error if a file is not as it was when it was opened.
func (s *Store) Changed() error {
	for _, c := range s.files {
		if c.tensors == nil {
			continue
		}
		if err := c.tensors.Changed(); err != nil {
			return fmt.Errorf("store: %w: %w", ErrCorrupt, err)
		}
	}
	return nil
}

// Dir returns the folder as given to [Open].
func (s *Store) Dir() string { return s.dir }

// Runs returns what is kept, in order. The caller must not change it.
func (s *Store) Runs() []*Kept { return s.index.Runs }

// Paths returns what is known of the reference along execution paths. The caller must not change it.
func (s *Store) Paths() []Along { return s.index.Paths }

// Find returns the goldens of a case of a variant; nil for none.
func (s *Store) Find(variant, caseName string) *Kept {
	for _, k := range s.index.Runs {
		if k.Variant == variant && k.Info.Case == caseName && len(k.Info.Order) > 0 {
			return k
		}
	}
	return nil
}

// Steps returns how many steps the goldens of a case of a variant have.
func (s *Store) Steps(variant, caseName string) int {
	steps := map[string]bool{}
	if k := s.Find(variant, caseName); k != nil {
		for _, o := range k.Info.Order {
			steps[o.Step] = true
		}
	}
	return len(steps)
}

// Golden returns the goldens of a case of a variant, once their hashes are checked: what is damaged judges
// nothing. The errors are [ErrNotFound] and [ErrCorrupt].
func (s *Store) Golden(variant, caseName string) (*dump.Run, error) {
	k := s.Find(variant, caseName)
	if k == nil {
		return nil, notFound("%s has no golden %s of case %s: make it: %s", s.dir, variant, caseName, renew)
	}
	return s.Run(k)
}

// Run returns a run that is kept, whose tensors are those of the store.
func (s *Store) Run(k *Kept) (*dump.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[k]; r != nil {
		return r, nil
	}
	var entries []dump.Entry
	checked := map[string]bool{}
	for _, o := range k.Info.Order {
		if !checked[o.File] {
			if err := s.check(k, o.File); err != nil {
				return nil, err
			}
			checked[o.File] = true
		}
		t, err := s.tensor(o)
		if err != nil {
			return nil, err
		}
		entries = append(entries, dump.Entry{Step: o.Step, Layer: o.Layer, Port: o.Port, Tensor: t})
	}
	r := dump.New(s.dir, k.Info, dump.OrderRunFile, entries)
	r.Joined = k.Joined
	r.Watch(s.Changed)
	if k.Blessed != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("the golden is not the reference's: it is a run of %s of %s, blessed: %s", k.Info.Engine, k.Info.Date, k.Blessed))
	}
	s.runs[k] = r
	return r, nil
}

func (s *Store) file(name string) (*tensor.File, error) {
	c := s.files[name]
	if c == nil || c.err == nil && c.tensors == nil {
		return nil, fmt.Errorf("store: %w: %s lists no tensors in %s", ErrCorrupt, IndexFile, name)
	}
	return c.tensors, c.err
}

// HasProgram reports whether there is a program of a case, of any variant.
func (s *Store) HasProgram(caseName string) bool {
	return slices.ContainsFunc(s.index.Runs, func(k *Kept) bool { return k.Info.Case == caseName && len(k.Program) > 0 })
}

// Program is what [Store.Program] returns.
type Program struct {
	File      string       // the path of the program, for errors
	Data      []byte       // program.json
	Constants *tensor.File // nil if it has none; the store closes it
}

// Program returns the program of a case of a variant, as it was recorded: hashes are checked. It is
// nil if there is none. The errors are [ErrCorrupt] and [ErrNotFound].
func (s *Store) Program(variant, caseName string) (*Program, error) {
	i := slices.IndexFunc(s.index.Runs, func(k *Kept) bool {
		return k.Variant == variant && k.Info.Case == caseName && len(k.Program) > 0
	})
	if i < 0 {
		return nil, nil
	}
	k := s.index.Runs[i]
	for _, file := range k.Program {
		if err := s.check(k, file); err != nil {
			return nil, err
		}
	}
	p := &Program{File: filepath.Join(s.dir, k.Program[0]), Data: s.files[k.Program[0]].program}
	if len(k.Program) > 1 {
		p.Constants = s.files[k.Program[1]].tensors
	}
	return p, nil
}

// check compares a file with its hash.
func (s *Store) check(k *Kept, file string) error {
	c := s.files[file]
	if c.err != nil {
		return c.err
	}
	sum, err := hashOf(c.program), error(nil)
	if c.tensors != nil {
		sum, err = digest(c.tensors)
	}
	if want := k.Info.SHA256[file]; err != nil || sum != want {
		return cmp.Or(err, fmt.Errorf("store: %w: %s: its sha256 is %.12s…, %s says %.12s…: restore it, or make it again",
			ErrCorrupt, filepath.Join(s.dir, file), sum, IndexFile, want))
	}
	return nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Problem is one thing that [Store.Verify] found.
type Problem struct {
	File  string // relative to the store
	Err   error  // is ErrCorrupt or ErrNotFound
	Extra bool   // the file belongs to no run: Prune removes it, if it is one that a store writes
}

func (p Problem) String() string { return fmt.Sprintf("%s: %v", p.File, p.Err) }

// Verify reads everything, compares it with the hashes of the index, and looks for files that belong to
// no run. The error is for a context that ended, or a folder that cannot be read.
func (s *Store) Verify(ctx context.Context) (out []Problem, err error) {
	seen := map[string]bool{}
	for _, k := range s.index.Runs {
		for _, file := range slices.Sorted(maps.Keys(k.Info.SHA256)) {
			if err := ctx.Err(); err != nil {
				return out, fmt.Errorf("store: verify: %w", err)
			}
			if seen[file] {
				continue
			}
			seen[file] = true
			if err := s.check(k, file); err != nil {
				out = append(out, Problem{File: file, Err: err})
			}
		}
		for _, o := range k.Info.Order {
			if s.files[o.File].err != nil {
				continue
			}
			if _, err := s.tensor(o); err != nil {
				out = append(out, Problem{File: o.File, Err: err})
			}
		}
	}
	extra, err := s.extra()
	for _, file := range extra {
		fix := ": remove it with parity golden prune --apply"
		if !ours.MatchString(file) {
			fix = ", and goparity did not write it: delete it"
		}
		out = append(out, Problem{File: file, Extra: true, Err: fmt.Errorf("store: %w: %s does not list it%s", ErrCorrupt, IndexFile, fix)})
	}
	return out, err
}

// ours are names that a store gives: of its files, and of those that it has not finished.
var ours = regexp.MustCompile(`\.[0-9a-f]{8}\.(json|safetensors)$|^\.new-`)

// extra lists the files of a store that are not in its index. Where another index has taken its place
// since it was opened, there are none.
func (s *Store) extra() (files []string, err error) {
	x, _, err := readIndex(s.disk, s.dir)
	if err != nil || x.SHA256 != s.index.SHA256 {
		return nil, nil
	}
	return unlisted(s.disk, s.dir, x)
}

// unlisted lists what may be files of a store, and is not in its index.
func unlisted(disk afero.Fs, dir string, x *Index) (files []string, err error) {
	listed := map[string]bool{}
	for _, k := range x.Runs {
		for file := range k.Info.SHA256 {
			listed[file] = true
		}
	}
	entries, err := afero.ReadDir(disk, dir)
	if err != nil {
		return nil, fmt.Errorf("store: list %q: %w", dir, err)
	}
	for _, e := range entries {
		name := e.Name()
		tensors := strings.EqualFold(filepath.Ext(name), ".safetensors")
		if !e.IsDir() && !listed[name] && (tensors || ours.MatchString(name)) {
			files = append(files, name)
		}
	}
	return files, nil
}

// Prune returns what is no longer wanted: runs that are not to be kept, and files of a store that belong to no run.
// With apply it removes them, atomically. It refuses a store that is damaged, and one of which nothing
// would be left.
func Prune(ctx context.Context, dir string, apply bool, waiting func(holder string), keep func(*Kept) bool) (gone []string, err error) {
	prune := func(old *Store) (*Change, error) {
		c := &Change{Paths: old.Paths()}
		for _, k := range old.Runs() {
			if keep(k) {
				c.Keep = append(c.Keep, k)
			} else {
				gone = append(gone, k.String())
			}
		}
		problems, err := old.Verify(ctx)
		for _, p := range problems {
			if !p.Extra {
				return nil, fmt.Errorf("prune %s: nothing is removed from a damaged store: %w", dir, p.Err)
			}
			if ours.MatchString(p.File) {
				gone = append(gone, p.File)
			}
		}
		switch {
		case err != nil || len(gone) == 0:
			return nil, err
		case len(c.Keep) == 0:
			return nil, fmt.Errorf("prune %s: the fixture wants none of what it keeps, nothing would be left: delete the folder if that is meant", dir)
		}
		return c, nil
	}
	if apply {
		err = Update(ctx, dir, waiting, prune)
		return gone, err
	}
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	_, err = prune(s)
	return gone, err
}
