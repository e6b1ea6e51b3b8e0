package dump

import (
	"cmp"
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
	Cases  []json.RawMessage `json:"cases"` // each as the run.json of a dump
}

// parseSeveral returns what a run.json says of several cases; nil if it is that of one.
func parseSeveral(name string, data []byte) (*several, error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil || keys["cases"] == nil { // ParseInfo says what is wrong
		return nil, nil
	}
	var of several
	err := strict(data, &of)
	switch {
	case err != nil:
		err = fmt.Errorf(`%w: next to "cases" want "schema" alone, all other keys belong in each case`, err)
	case of.Schema > severalSchema:
		err = fmt.Errorf("schema is %d, this version reads 1 to %d", of.Schema, severalSchema)
	case len(of.Cases) == 0:
		err = errors.New("it has no cases")
	default:
		return &of, nil
	}
	return nil, fmt.Errorf("dump: open %q: %w", name, err)
}

// open opens the cases, whose files lie in the folder path.
func (of *several) open(path string, opt Options) (runs []*Run, err error) {
	for _, data := range of.Cases {
		r, err := (&Run{Path: path}).open(func(r *Run, opt Options) error {
			err := r.readInfo(filepath.Join(path, RunFile), data, opt)
			if err == nil {
				err = r.openOrder(path, opt)
			}
			return cmp.Or(err, r.checkHashes(), r.checkSteps())
		}, Options{Unjudged: opt.Unjudged})
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
		if own := filepath.Join(path, r.Info.Case, ProgramFile); isFile(own) {
			r.Program = own
		} else if len(of.Cases) > 1 {
			r.Program = ""
		}
		runs = append(runs, r)
	}
	return runs, nil
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
