package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/mapfile"
)

// severalSchema is the last version of a [RunFile] with cases that is read.
const severalSchema = 3

// several is a [RunFile] of several cases, as recorders outside write it: the files of all lie beside it.
type several struct {
	Schema int               `json:"schema"`
	SHA256 string            `json:"sha256"` // of all the rest, see seal; it may be missing
	Joined map[string]Joined `json:"joined"` // by case
	Cases  []json.RawMessage `json:"cases"`  // each as the run.json of a dump
}

// parseSeveral returns what a run.json says of several cases; nil if it is that of one.
func parseSeveral(name string, data []byte) (*several, error) {
	var of several
	if err := json.Unmarshal(data, &struct {
		Cases *[]json.RawMessage `json:"cases"`
	}{&of.Cases}); err != nil {
		return nil, fmt.Errorf("dump: open %q: %w", name, mapfile.JSONError(data, err))
	}
	if of.Cases == nil {
		return nil, nil
	}
	err := json.Unmarshal(data, &of)
	switch {
	case err != nil:
		err = mapfile.JSONError(data, err)
	case of.Schema > severalSchema:
		err = fmt.Errorf("schema is %d, this version reads 1 to %d", of.Schema, severalSchema)
	case of.Schema > 1:
		if err = strict(data, &of); err != nil {
			err = fmt.Errorf(`%w: next to "cases" want "schema", "sha256" and "joined" alone, all other keys belong in each case`, err)
		}
	}
	if err == nil && of.SHA256 != "" {
		if err = CheckSeal(data, of.SHA256); err != nil {
			err = fmt.Errorf("%w: a merge or an edit changed what it lists: restore the folder or record the run again", err)
		}
	}
	if err == nil && len(of.Cases) == 0 {
		err = errors.New("it has no cases")
	}
	if err != nil {
		return nil, fmt.Errorf("dump: open %q: %w", name, err)
	}
	return &of, nil
}

// open opens the cases, whose files lie in the folder path.
func (of *several) open(path string, opt Options) (runs []*Run, err error) {
	for _, data := range of.Cases {
		r, err := (&Run{Path: path}).open(func(r *Run, opt Options) error { return r.openCase(of, data, opt) }, Options{Unjudged: opt.Unjudged})
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func (r *Run) openCase(of *several, data []byte, opt Options) error {
	err := r.readInfo(filepath.Join(r.Path, RunFile), data, opt)
	for _, step := range []func() error{func() error { return r.openOrder(r.Path, opt) }, r.checkHashes, r.checkSteps} {
		if err == nil {
			err = step()
		}
	}
	r.Joined = of.Joined[r.Info.Case]
	if len(of.Cases) > 1 {
		r.Program = ""
	}
	if own := filepath.Join(r.Path, r.Info.Case, ProgramFile); r.Program == "" && isFile(own) {
		r.Program = own
	}
	return err
}

// checkHashes compares the files of a run with the hashes that its run.json has.
func (r *Run) checkHashes() error {
	for _, file := range slices.Sorted(maps.Keys(r.Info.SHA256)) {
		if !filepath.IsLocal(file) {
			return fmt.Errorf("dump: open %q: file %q leaves the folder", filepath.Join(r.Path, RunFile), file)
		}
		got, err := mapfile.Hash(filepath.Join(r.Path, file))
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		if got != r.Info.SHA256[file] {
			return fmt.Errorf("dump: open %q: the file is damaged: its sha256 is %.12s…, %s says %.12s…: restore it or record the run again",
				filepath.Join(r.Path, file), got, RunFile, r.Info.SHA256[file])
		}
	}
	return nil
}
