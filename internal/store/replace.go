package store

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Recording is a run that is to be kept.
type Recording struct {
	Kept
	Run     *dump.Run // its tensors, in the order of execution; nil for those that it has already
	Program string    // the file of the program that the reference ran, whose constants lie beside it; "" for none
}

// Change says what takes the place of what.
type Change struct {
	Keep  []*Kept // of the runs that are there; their files stay
	Add   []Recording
	Paths []Along // all of them
	// Accept is told what changes before it does: an error of it leaves the store as it is. nil
	// accepts all.
	Accept func(now *Store) error
}

// Update changes the store in dir, which it makes if there is none, while no other process does: change
// says how, of the store as it is. It is atomic; nil changes nothing. waiting, which may be nil, is told
// which process changes the store at the moment, and "" where the file system has no locks. An index that
// is damaged is not replaced: the error is [ErrCorrupt].
func Update(ctx context.Context, dir string, waiting func(holder string), change func(old *Store) (*Change, error)) error {
	unlock, err := lock(ctx, dir, waiting)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer unlock()
	return updateOn(ctx, afero.NewOsFs(), dir, change)
}

// lock keeps other processes from changing the store. The file of the lock lies in the store, so that
// containers which share the folder share the lock.
func lock(ctx context.Context, dir string, waiting func(holder string)) (unlock func(), err error) {
	_, gone := os.Stat(dir)
	file := filepath.Join(dir, ".lock")
	release, err := supervise.LockFile(ctx, file, waiting)
	if errors.Is(err, errors.ErrUnsupported) {
		os.Remove(file)
		if waiting != nil {
			waiting("")
		}
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() {
		os.Remove(file)
		release()
		if gone != nil {
			os.Remove(dir) // fails where a store was made
		}
	}, nil
}

// updateOn is Update on another file system, without a lock.
func updateOn(ctx context.Context, disk afero.Fs, dir string, change func(old *Store) (*Change, error)) error {
	old, err := openOn(disk, dir)
	if errors.Is(err, ErrNotFound) {
		old, err = with(disk, dir, &Index{}), nil
	}
	if err != nil {
		return fmt.Errorf("%w (what else is in %s would be lost: restore it, or delete the folder)", err, dir)
	}
	defer old.Close()
	c, err := change(old)
	if err != nil || c == nil {
		return err
	}
	w := &writer{ctx: ctx, disk: disk, dir: dir}
	x, err := w.write(c)
	if err == nil && c.Accept != nil {
		now := with(disk, dir, x)
		err = errors.Join(c.Accept(now), now.Close())
	}
	if err == nil {
		err = errors.Join(ctx.Err(), old.Close()) // Windows does not remove files that are mapped
	}
	if err == nil {
		err = w.commit(x)
	}
	w.sweep()
	if err != nil {
		err = fmt.Errorf("store: update %s: %w", dir, err)
	}
	return err
}

// writer writes the files of a store.
type writer struct {
	ctx  context.Context
	disk afero.Fs
	dir  string
}

// write writes the files of new runs, and returns the index that lists them.
func (w *writer) write(c *Change) (*Index, error) {
	if err := w.disk.MkdirAll(w.dir, 0o755); err != nil {
		return nil, err
	}
	x := &Index{Paths: c.Paths, Runs: slices.Clone(c.Keep)}
	for _, r := range c.Add {
		k := r.Kept
		k.Info.Schema, k.Info.SHA256, k.Info.Weights = dump.Schema, map[string]string{}, nil
		if r.Run != nil {
			k.Info.Order = nil
			if err := w.tensors(&k, r.Run); err != nil {
				return nil, err
			}
		}
		for _, o := range k.Info.Order {
			k.Info.SHA256[o.File] = cmp.Or(k.Info.SHA256[o.File], r.Info.SHA256[o.File])
		}
		if err := w.program(&k, r.Program); err != nil {
			return nil, fmt.Errorf("the program of case %s: %w", k.Info.Case, err)
		}
		x.Runs = append(x.Runs, &k)
	}
	slices.SortStableFunc(x.Runs, func(a, b *Kept) int {
		if c := cmp.Compare(a.Variant, b.Variant); c != 0 || a.Variant == "" {
			return c
		}
		return label.Natural(a.Info.Case, b.Info.Case)
	})
	return x, nil
}

// tensors writes a file for each step of a run, in which equal tensors are there once.
func (w *writer) tensors(k *Kept, run *dump.Run) error {
	for _, step := range run.Steps() {
		var named []tensor.Named
		var order []dump.OrderEntry
		for _, e := range run.Entries {
			if e.Step == step && k.Info.Injected[e.Label()] == "" { // a replaced input is the golden one
				named = append(named, tensor.Named{Name: e.Label(), Tensor: e.Tensor})
				order = append(order, dump.OrderEntry{Step: step, Layer: e.Layer, Port: e.Port})
			}
		}
		var sum string
		file, err := w.file(k.Info.Case+"."+step, ".safetensors", func(to io.Writer) (string, error) {
			ranges, err := safetensors.WriteUnique(to, named, nil)
			var own []tensor.Named
			var sums []string
			for i, r := range ranges {
				if r.Name != named[i].Name {
					order[i].Name = r.Name
					continue
				}
				own, sums = append(own, named[i]), append(sums, r.SHA256)
			}
			sum = digestOf(own, sums)
			return sum, err
		})
		if err != nil {
			return fmt.Errorf("case %s, step %s: %w", k.Info.Case, step, err)
		}
		for i := range order {
			order[i].File = file
		}
		k.Info.Order, k.Info.SHA256[file] = append(k.Info.Order, order...), sum
	}
	return run.Changed()
}

// program copies a program and its constants, which lie beside it.
func (w *writer) program(k *Kept, from string) error {
	if from == "" {
		return nil
	}
	k.Program = nil
	data, err := mapfile.Read(from, mapfile.MaxListing)
	if err != nil {
		return err
	}
	sum := hashOf(data)
	file, err := w.file(k.Info.Case, ".json", func(to io.Writer) (string, error) { _, err := to.Write(data); return sum, err })
	if err != nil {
		return err
	}
	k.Program, k.Info.SHA256[file] = []string{file}, sum
	constants, err := safetensors.Open(strings.TrimSuffix(from, filepath.Ext(from)) + ".safetensors")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer constants.Close()
	if sum, err = digest(constants); err != nil {
		return err
	}
	file, err = w.file(k.Info.Case, ".safetensors", func(to io.Writer) (string, error) {
		return sum, safetensors.Write(to, constants.Tensors, constants.Metadata)
	})
	k.Program, k.Info.SHA256[file] = append(k.Program, file), sum
	return err
}

// file writes a file that is named by the hash that write returns.
func (w *writer) file(base, ext string, write func(io.Writer) (sum string, err error)) (name string, err error) {
	err = w.put(func(to io.Writer) (string, error) {
		sum, err := write(to)
		if err == nil {
			name = fileName(base) + "." + sum[:8] + ext
		}
		return name, err
	})
	return name, err
}

// put writes a file, which has the name that write returns once it is on the disk.
func (w *writer) put(write func(io.Writer) (name string, err error)) error {
	f, err := afero.TempFile(w.disk, w.dir, ".new-")
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	name, err := write(b)
	if err = errors.Join(err, b.Flush(), w.ctx.Err()); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = w.disk.Chmod(f.Name(), 0o644)
	}
	if err != nil {
		return err
	}
	return w.disk.Rename(f.Name(), filepath.Join(w.dir, name))
}

// commit puts the index in its place, once all that it lists is on the disk.
func (w *writer) commit(x *Index) error {
	data, err := x.Marshal()
	if err != nil {
		return err
	}
	if _, err := parseIndex(data); err != nil {
		return fmt.Errorf("the index would not be readable: %w", err)
	}
	if err := w.syncDir(); err != nil {
		return err
	}
	err = w.put(func(to io.Writer) (string, error) { _, err := to.Write(data); return IndexFile, err })
	if err == nil {
		w.syncDir() // a crash from here on has the old index or the new one
	}
	return err
}

// syncDir writes to disk which files the folder has. Windows cannot, and need not.
func (w *writer) syncDir() error {
	f, err := w.disk.Open(w.dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// sweep removes what a store wrote and the index that is there does not list. What cannot be removed, because
// someone reads it, the next update removes.
func (w *writer) sweep() {
	x, _, err := readIndex(w.disk, w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		x, err = &Index{}, nil
	}
	if err != nil {
		return
	}
	files, _ := unlisted(w.disk, w.dir, x)
	for _, name := range files {
		if ours.MatchString(name) {
			w.disk.Remove(filepath.Join(w.dir, name))
		}
	}
}

// fileName makes the name of a case and step fit for a file. It need not be reversible: the index
// says which file is whose.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._- ", r) ||
			!unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}
