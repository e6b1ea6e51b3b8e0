package golden

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/whole"
	"github.com/goparity/goparity/tensor"
)

// Program says where the store keeps what the reference ran for a case of the variant that judges:
// see package program. Its files are programs/<case>.json, and programs/<case>.safetensors with its
// constants if there are any.
type Program struct {
	Variant string        `json:"variant"`
	Case    string        `json:"case"`
	Files   []ProgramFile `json:"files"`
	// Provenance says where a program comes from that judges alone, without goldens; nil for one that was
	// recorded with goldens.
	Provenance *Provenance `json:"provenance,omitempty"`
}

// ProgramFile is a file of a program.
type ProgramFile struct {
	File   string `json:"file"`   // relative to the store
	Size   int64  `json:"size"`   // in bytes
	SHA256 string `json:"sha256"` // of the file
}

// programFiles are the names of the files of a case's program, the second is that of its constants.
func programFiles(caseName string) [2]string {
	base := path.Join(programFolder, caseName)
	return [2]string{base + ".json", base + ".safetensors"}
}

const programFolder = "programs"

// check looks at an entry of the manifest. seen has the files of the others.
func (p *Program) check(seen map[string]bool) error {
	if !partPattern.MatchString(p.Variant) || !isCase(p.Case) {
		return fmt.Errorf("variant %q and case %q: want letters, digits, - and _", p.Variant, p.Case)
	}
	names := programFiles(p.Case)
	if len(p.Files) == 0 || len(p.Files) > len(names) {
		return fmt.Errorf("case %q: want files of a program and its constants, not %d", p.Case, len(p.Files))
	}
	for i, f := range p.Files {
		if f.File != names[i] {
			return fmt.Errorf("file is %q, want %q", f.File, names[i])
		}
		if f.Size < 0 || !shaPattern.MatchString(f.SHA256) {
			return fmt.Errorf("%s: size %d or sha256 %.80q is impossible", f.File, f.Size, f.SHA256)
		}
		if folded := strings.ToLower(f.File); seen[folded] {
			return fmt.Errorf("%s is there twice", f.File)
		} else {
			seen[folded] = true
		}
	}
	return nil
}

// Programs lists the programs of the store, by case. The caller must not change them.
func (s *Store) Programs() []Program { return s.manifest.Programs }

// HasProgram reports whether the manifest lists a program of a case.
func (s *Store) HasProgram(caseName string) bool {
	return slices.ContainsFunc(s.manifest.Programs, func(p Program) bool { return p.Case == caseName })
}

// OpenProgram is what [Store.Program] returns.
type OpenProgram struct {
	File      string       // the path of the program, for errors
	Data      []byte       // program.json
	Constants *tensor.File // nil if it has none; the store closes it
}

// Program returns the program of a case of a variant, as it was imported: hashes are checked. It is
// nil if there is none. The errors are [ErrCorrupt] and [ErrNotFound].
func (s *Store) Program(ctx context.Context, variant, caseName string) (*OpenProgram, error) {
	i := slices.IndexFunc(s.manifest.Programs, func(p Program) bool { return p.Variant == variant && p.Case == caseName })
	if i < 0 {
		return nil, nil
	}
	files := s.manifest.Programs[i].Files
	for _, f := range files {
		if err := s.verifyFile(ctx, f); err != nil {
			return nil, err
		}
	}
	out := &OpenProgram{File: s.pathOf(files[0].File)}
	var err error
	if out.Data, err = readFile(s.disk, out.File); err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	if len(files) > 1 {
		if out.Constants, err = s.constants(files[1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// constants opens the tensors of a program, once.
func (s *Store) constants(f ProgramFile) (*tensor.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.open[f.File]; open != nil {
		return open, nil
	}
	open, err := openFile(s.disk, s.pathOf(f.File), f.Size)
	if err == nil {
		s.open[f.File] = open
	}
	return open, err
}

func (s *Store) pathOf(file string) string { return filepath.Join(s.dir, filepath.FromSlash(file)) }

// verifyFile compares a file of a program with its hash.
func (s *Store) verifyFile(ctx context.Context, f ProgramFile) error {
	name := s.pathOf(f.File)
	hash, err := hashFile(ctx, s.disk, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &classError{class: ErrNotFound, cause: err,
			msg: fmt.Sprintf("%s does not exist, but the manifest lists it: restore it, or %s", name, recordAgain)}
	case err != nil:
		return err
	case hash != f.SHA256:
		return corrupt("%s: sha256 is %.12s…, the manifest says %.12s…: restore it, or %s", name, hash, f.SHA256, recordAgain)
	}
	return nil
}

// recordAgain is the command that makes the programs of goldens again.
const recordAgain = "record it again: parity program MODEL --golden DIR"

// verifyPrograms returns what is wrong with the programs of a store.
func (s *Store) verifyPrograms(ctx context.Context) (out []Problem, err error) {
	for _, p := range s.manifest.Programs {
		for _, f := range p.Files {
			err := s.verifyFile(ctx, f)
			if ctx.Err() != nil {
				return out, fmt.Errorf("golden: verify: %w", ctx.Err())
			}
			if err != nil {
				out = append(out, Problem{File: f.File, Err: err})
			}
		}
	}
	return out, nil
}

// programsAfter are the programs of old that opts do not replace. A program belongs to the goldens
// with which it was imported: new ones do not keep an old one.
func programsAfter(old []Program, opts []ImportOptions) []Program {
	return slices.DeleteFunc(slices.Clone(old), func(p Program) bool {
		return slices.ContainsFunc(opts, func(opt ImportOptions) bool {
			r := opt.Runs[p.Case]
			return r != nil && (r.Program != "" || opt.Variant == p.Variant)
		})
	})
}

// filesOf lists the files of programs.
func filesOf(programs []Program) (files []string) {
	for _, p := range programs {
		for _, f := range p.Files {
			files = append(files, f.File)
		}
	}
	return files
}

func sortPrograms(p []Program) {
	slices.SortStableFunc(p, func(a, b Program) int { return cmp.Compare(a.Case, b.Case) })
}

// writeProgram copies a program and its constants, which lie beside it, into the store that is made
// in dir.
func writeProgram(ctx context.Context, d disk, dir, variant, caseName, from string) (Program, error) {
	p := Program{Variant: variant, Case: caseName}
	beside := strings.TrimSuffix(from, filepath.Ext(from)) + filepath.Ext(dump.ConstantsFile)
	for i, name := range []string{from, beside} {
		f, err := copyIn(ctx, d, dir, programFiles(caseName)[i], name)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return p, fmt.Errorf("golden: the program of case %s: %w", caseName, err)
		}
		p.Files = append(p.Files, f)
	}
	return p, nil
}

// copyIn copies a file of the operating system to a store.
func copyIn(ctx context.Context, d disk, dir, to, from string) (ProgramFile, error) {
	in, err := mapfile.Regular(from)
	if err != nil {
		return ProgramFile{}, err
	}
	defer in.Close()
	s, err := create(d, filepath.Join(dir, filepath.FromSlash(to)))
	if err != nil {
		return ProgramFile{}, err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(s, h), &contextReader{ctx, in})
	err = s.finish(err)
	return ProgramFile{File: to, Size: s.size, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// AddPrograms keeps programs beside the goldens of a variant, in place of those that its cases have:
// programs has the file of each case's program.json, whose constants lie beside it. The goldens stay
// as they are. It is atomic, as [Import] is. A case without goldens of the variant is [ErrNotFound].
func AddPrograms(ctx context.Context, dir, variant string, programs map[string]string, waiting func(holder string)) error {
	return locked(ctx, dir, waiting, func(dir string) error {
		s, err := open(system{}, dir)
		if err != nil {
			return err
		}
		defer s.Close()
		for name := range programs {
			if len(s.Steps(variant, name)) == 0 {
				return notFound("%s has no golden %s of case %s, for a program to be beside", dir, variant, name)
			}
		}
		return addPrograms(ctx, s, variant, programs, nil)
	})
}

// ImportPrograms keeps programs that judge alone: in the place of the store's programs of their cases,
// and in a new store if there is none. provenance has where each comes from, by case. It returns which
// programs changed, as [Delta] has them, and is atomic.
func ImportPrograms(ctx context.Context, dir, variant string, programs map[string]string, provenance map[string]Provenance,
	waiting func(holder string)) (changed []string, err error) {
	err = locked(ctx, dir, waiting, func(dir string) error {
		s, err := open(system{}, dir)
		if errors.Is(err, ErrNotFound) {
			s, err = newStore(system{}, dir, dir, &manifest{}), nil
		}
		if err != nil {
			return fmt.Errorf("%w (what %s has would be lost: restore the manifest or delete the folder)", err, dir)
		}
		defer s.Close()
		if err := addPrograms(ctx, s, variant, programs, provenance); err != nil {
			return err
		}
		now, err := open(system{}, dir)
		if err != nil {
			return err
		}
		changed = programsDiffer(s, now, func(*Pass) bool { return true })
		return now.Close()
	})
	return changed, err
}

// locked calls change while no one else changes the store in dir.
func locked(ctx context.Context, dir string, waiting func(holder string), change func(dir string) error) error {
	dir = whole.Target(dir)
	unlock, err := whole.Lock(ctx, dir, waiting)
	if err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	defer unlock()
	if err := whole.Recover(system{}, dir); err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	return change(dir)
}

// addPrograms replaces the programs of some cases in the folder of a store, which it closes.
func addPrograms(ctx context.Context, s *Store, variant string, programs map[string]string, provenance map[string]Provenance) error {
	m := *s.manifest
	m.Programs = slices.DeleteFunc(slices.Clone(m.Programs), func(p Program) bool { return programs[p.Case] != "" })
	kept := filesOf(m.Programs)
	return whole.Folder(system{}, s.name, func(tmp string) error {
		err := copyTree(ctx, system{}, s.dir, tmp, func(rel string) bool {
			return rel != manifestFile && (!strings.HasPrefix(rel, programFolder+"/") || slices.Contains(kept, rel))
		})
		for _, name := range slices.Sorted(maps.Keys(programs)) {
			if err != nil {
				break
			}
			var p Program
			if p, err = writeProgram(ctx, system{}, tmp, variant, name, programs[name]); err == nil {
				if from, ok := provenance[name]; ok {
					p.Provenance = &from
				}
				m.Programs = append(m.Programs, p)
			}
		}
		if err != nil {
			return err
		}
		sortPrograms(m.Programs)
		return errors.Join(writeManifest(system{}, tmp, &m), s.Close())
	})
}
