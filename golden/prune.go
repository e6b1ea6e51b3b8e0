package golden

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/afero"
)

// PruneOptions says what stays.
type PruneOptions struct {
	// Keep reports whether the fixture asks for a pass; nil keeps all.
	Keep func(variant, caseName, step string) bool
	// Apply removes; without it Prune only lists.
	Apply bool
}

// Prune lists the files that nothing asks for: passes that Keep refuses and .safetensors files that the manifest does not list. With
// Apply they are removed, atomically. A store in which Verify finds anything else is not pruned, nor one of which nothing would stay.
func Prune(ctx context.Context, fsys afero.Fs, dir string, opt PruneOptions) ([]string, error) {
	s, err := Open(fsys, dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	gone := map[string]bool{}
	var files []string
	m := &Manifest{Schema: Schema}
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
			return nil, fmt.Errorf("golden: prune %s: nothing is removed from a damaged store: %s: %w", dir, p.File, p.Err)
		}
	}
	if !opt.Apply || len(files) == 0 {
		return files, nil
	}
	if len(m.Passes) == 0 {
		return nil, fmt.Errorf("golden: prune %s: the fixture asks for none of its goldens, nothing would stay: delete the folder if that is meant", dir)
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	err = replace(fsys, dir, func(tmp string) error {
		keep := func(rel string) bool { return rel != ManifestFile && !gone[rel] }
		return errors.Join(copyTree(ctx, fsys, filepath.Clean(dir), tmp, keep), writeManifest(fsys, tmp, m))
	})
	return files, err
}
