package golden

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// PruneOptions says which passes stay.
type PruneOptions struct {
	// Keep reports whether a pass is still wanted; nil keeps all.
	Keep func(variant, caseName, step string) bool
	// Apply removes the files; without it Prune only lists them.
	Apply bool
}

// Prune returns the files that are no longer wanted, relative to dir: passes that Keep refuses, and
// .safetensors files that are not in the manifest. With Apply it removes them, atomically. Prune
// refuses a store in which [Store.Verify] finds any other problem, and one of which nothing would
// be left. It also returns the errors of [Open].
func Prune(ctx context.Context, dir string, opt PruneOptions) ([]string, error) {
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
	m := &manifest{Schema: schema}
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
	if !opt.Apply || len(files) == 0 {
		return files, nil
	}
	if len(m.Passes) == 0 {
		return nil, fmt.Errorf("golden: prune %s: the fixture wants none of its goldens, nothing would be left: "+
			"delete the folder if that is meant", dir)
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	err = replace(d, dir, func(tmp string) error {
		keep := func(rel string) bool { return rel != manifestFile && !gone[rel] }
		return errors.Join(copyTree(ctx, d, filepath.Clean(dir), tmp, keep), writeManifest(d, tmp, m))
	})
	return files, err
}
