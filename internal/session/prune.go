package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/dump"
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

// wanted is what a fixture asks for of a run: all of it, the steps that its case has, or nil.
func (r *runner) wanted(k *store.Kept) *store.Kept {
	switch {
	case k.Variant == "" && !r.wants(k.Info.Case), k.Variant != "" && !r.yaml.Wants(k.Variant, k.Info.Case, "0"):
		return nil
	case k.Variant == "":
		return k
	}
	left := *k
	left.Info.Order, left.Info.SHA256 = nil, map[string]string{}
	for _, o := range k.Info.Order {
		if r.yaml.Wants(k.Variant, k.Info.Case, o.Step) {
			left.Info.Order, left.Info.SHA256[o.File] = append(left.Info.Order, o), k.Info.SHA256[o.File]
		}
	}
	if len(left.Info.Order) == len(k.Info.Order) {
		return k
	}
	for _, file := range k.Program {
		left.Info.SHA256[file] = k.Info.SHA256[file]
	}
	return &left
}

// wants reports whether the fixture has a case, and its execution path.
func (r *runner) wants(caseName string) bool {
	if _, ofPath := dump.CutPathCase(caseName); ofPath {
		return r.yaml.WantsPath(caseName)
	}
	return slices.Contains(r.yaml.CaseNames(), caseName)
}
