package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/store"
)

// Prune returns what lies in a fixture's folder and belongs to no case of it: goldens, and cases of
// recorded runs. With apply it removes them.
func Prune(ctx context.Context, dir string, apply bool) (gone []string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &runner{dir: dir, name: filepath.Base(abs), cfg: &Config{Context: ctx}}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.readYAML(); err != nil {
		return nil, err
	}
	names, _ := os.ReadDir(filepath.Join(dir, "runs"))
	folders := []string{"golden"}
	for _, n := range names {
		if runName.MatchString(n.Name()) {
			folders = append(folders, filepath.Join("runs", n.Name()))
		}
	}
	for _, folder := range folders {
		from := filepath.Join(dir, folder)
		of, err := store.Prune(ctx, from, apply, r.waits(from), r.wanted)
		for _, what := range of {
			gone = append(gone, filepath.ToSlash(folder)+": "+what)
		}
		if err != nil {
			return gone, fmt.Errorf("%s: %w", filepath.ToSlash(folder), err)
		}
	}
	return gone, nil
}

// wanted reports whether the fixture asks for a run that is kept.
func (r *runner) wanted(k *store.Kept) bool {
	_, listed := r.yaml.Variant(k.Variant)
	return r.yaml.Wants(k.Info.Case) && (listed || k.Variant == "")
}
