package golden

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Verify reads everything and returns the problems that it finds. It compares with the manifest the
// sha256 and the header of each file, and the sha256 and statistics of each tensor, and looks for
// .safetensors files and programs that belong to no golden. The error is for a context that ended, or a folder
// that cannot be read.
func (s *Store) Verify(ctx context.Context) ([]Problem, error) {
	var out []Problem
	for i := range s.manifest.Passes {
		p := &s.manifest.Passes[i]
		problems, err := s.verifyPass(ctx, p)
		if err != nil {
			return out, err
		}
		out = append(out, problems...)
	}
	problems, err := s.verifyPrograms(ctx)
	if err != nil {
		return out, err
	}
	out = append(out, problems...)
	extra, err := s.extra()
	if err != nil {
		return out, err
	}
	for _, file := range extra {
		out = append(out, Problem{File: file, Extra: true,
			Err: corrupt("the manifest does not list it: remove it with parity golden prune")})
	}
	return out, nil
}

func (s *Store) verifyPass(ctx context.Context, p *Pass) ([]Problem, error) {
	f, err := openFile(s.disk, s.path(p), p.Size) // not mapped before: the file may have changed since
	if err != nil {
		return []Problem{{File: p.File, Err: err}}, nil
	}
	defer f.Close()
	var out []Problem
	hash, err := s.hash(ctx, p)
	if err != nil {
		return nil, err
	}
	if hash != p.SHA256 {
		out = append(out, Problem{File: p.File,
			Err: corrupt("sha256 is %.12s…, the manifest says %.12s…: restore it, or %s", hash, p.SHA256, renew)})
	}
	type checked struct {
		stats Stats
		err   error
	}
	known := map[string]checked{} // by name in the file: equal tensors are read once
	for _, r := range p.Tensors {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("golden: verify: %w", err)
		}
		name := r.nameInFile()
		t, err := lookup(f, r)
		if err == nil {
			c, ok := known[name]
			if !ok {
				if c.stats, c.err = statsOf(t); c.err == nil {
					c.err = checkHash(t, r)
				}
				known[name] = c
			}
			if err = c.err; err == nil && !c.stats.near(r.Stats) {
				err = fmt.Errorf("its statistics are %+v, the manifest says %+v", c.stats, r.Stats)
			}
		}
		if err != nil {
			out = append(out, Problem{File: p.File, Tensor: r.Label(), Err: corrupt("%v", err)})
		}
	}
	for _, name := range p.unlisted(f) {
		out = append(out, Problem{File: p.File, Tensor: name, Err: corrupt("the manifest does not list it")})
	}
	return out, nil
}

// hash returns what the manifest should say of the file of a pass.
func (s *Store) hash(ctx context.Context, p *Pass) (string, error) {
	if p.SHA256Of == "" {
		return hashFile(ctx, s.disk, s.path(p))
	}
	hash, err := p.digest(func(n int64) ([]byte, error) {
		f, err := s.disk.Open(s.path(p))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		head := make([]byte, n)
		_, err = f.ReadAt(head, 0)
		return head, err
	})
	if err != nil {
		return "", fmt.Errorf("golden: verify %s: %w", p.File, err)
	}
	return hash, nil
}

func checkHash(t *tensor.Tensor, r Record) error {
	var hash string
	err := mapfile.Guard(func() (err error) {
		hash, err = safetensors.Hash(t)
		return err
	})
	if err == nil && hash != r.SHA256 {
		err = fmt.Errorf("sha256 of the values is %.12s…, the manifest says %.12s…", hash, r.SHA256)
	}
	return err
}

// extra lists the .safetensors files and the programs that are not in the manifest, relative to the
// store. Where an update has replaced the folder since it was opened, there are none.
func (s *Store) extra() ([]string, error) {
	known := map[string]bool{}
	for _, p := range s.manifest.Passes {
		known[p.File] = true
	}
	for _, file := range filesOf(s.manifest.Programs) {
		known[file] = true
	}
	var out []string
	err := s.disk.Walk(s.dir, func(name string, info fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		ours := strings.EqualFold(path.Ext(rel), ".safetensors") || path.Dir(rel) == programFolder && path.Ext(rel) == ".json"
		if !info.IsDir() && ours && !known[rel] {
			out = append(out, rel)
		}
		return nil
	})
	if !s.disk.folder.Same() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("golden: list %q: %w", s.dir, err)
	}
	return out, nil
}

// hashFile returns the sha256 of a file, which it reads a block at a time.
func hashFile(ctx context.Context, d disk, name string) (string, error) {
	h := sha256.New()
	if err := stream(ctx, d, name, h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func stream(ctx context.Context, d disk, name string, w io.Writer) error {
	f, err := d.Open(name)
	if err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(w, &contextReader{ctx, f}); err != nil {
		return fmt.Errorf("golden: read %s: %w", name, err)
	}
	return nil
}

// contextReader returns an error once its context has ended.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
