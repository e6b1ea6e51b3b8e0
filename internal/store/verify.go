package store

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/afero"
)

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
