package golden

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/whole"
)

// PruneOptions says which passes stay.
type PruneOptions struct {
	// Keep reports whether a pass is still wanted; nil keeps all.
	Keep func(variant, caseName, step string) bool
	// Apply removes the files; without it Prune only lists them.
	Apply bool
	// Waiting is told which process changes the store at the moment, if Prune has to wait for one, and
	// "" where the file system has no locks; nil tells no one.
	Waiting func(holder string)
}

// Prune returns the files that are no longer wanted, relative to dir: passes that Keep refuses, and
// .safetensors files that are not in the manifest. With Apply it removes them, atomically, and gives
// a manifest of an older version the hash that it lacks. Prune refuses a store in which [Store.Verify] finds any other problem, and one of which nothing would
// be left. It also returns the errors of [Open].
func Prune(ctx context.Context, dir string, opt PruneOptions) ([]string, error) {
	dir = whole.Target(dir)
	if opt.Apply {
		unlock, err := whole.Lock(ctx, dir, opt.Waiting)
		if err != nil {
			return nil, fmt.Errorf("golden: prune: %w", err)
		}
		defer unlock()
		if err := whole.Recover(system{}, dir); err != nil {
			return nil, fmt.Errorf("golden: prune: %w", err)
		}
	}
	return prune(ctx, system{}, dir, opt)
}

func prune(ctx context.Context, d disk, dir string, opt PruneOptions) ([]string, error) {
	s, err := open(d, dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	gone := map[string]bool{}
	var files []string
	m := &manifest{Paths: slices.DeleteFunc(slices.Clone(s.manifest.Paths), func(p Path) bool {
		return opt.Keep != nil && (p.Own && !opt.Keep(p.Variant, p.Golden(), "0") || p.Case != "" && !opt.Keep(p.Variant, p.Case, "0"))
	})}
	for _, p := range s.manifest.Programs {
		if opt.Keep == nil || opt.Keep(p.Variant, p.Case, "0") {
			m.Programs = append(m.Programs, p)
			continue
		}
		for _, f := range p.Files {
			gone[f.File] = true
			files = append(files, f.File)
		}
	}
	for _, p := range s.manifest.Passes {
		if opt.Keep == nil || opt.Keep(p.Variant, p.Case, p.Step) {
			m.Passes = append(m.Passes, p)
			continue
		}
		gone[p.File] = true
		files = append(files, p.File)
	}
	problems, err := s.Verify(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		switch {
		case p.Extra:
			gone[p.File] = true
			files = append(files, p.File)
		case !gone[p.File]:
			return nil, fmt.Errorf("golden: prune %s: nothing is removed from a damaged store: %s: %w",
				dir, p.File, p.Err)
		}
	}
	if !opt.Apply || len(files) == 0 && s.Sealed() {
		return files, nil
	}
	if len(m.Passes)+len(m.Programs) == 0 {
		return nil, fmt.Errorf("golden: prune %s: the fixture wants none of its goldens, nothing would be left: "+
			"delete the folder if that is meant", dir)
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	err = whole.Folder(d, dir, func(tmp string) error {
		keep := func(rel string) bool { return rel != manifestFile && !gone[rel] }
		return errors.Join(copyTree(ctx, d, s.dir, tmp, keep), writeManifest(d, tmp, m))
	})
	if err != nil {
		err = fmt.Errorf("golden: prune: %w", err)
	}
	return files, err
}
