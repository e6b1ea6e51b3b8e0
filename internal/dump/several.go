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

// parseSeveral returns the cases of a [RunFile] of several, as recorders outside write it, each as the run.json of a
// dump; nil for that of one.
func parseSeveral(name string, data []byte) ([]json.RawMessage, error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil || keys["cases"] == nil { // ParseInfo says what is wrong
		return nil, nil
	}
	var of struct {
		Schema int               `json:"schema"`
		Cases  []json.RawMessage `json:"cases"`
	}
	err := strict(data, &of)
	switch {
	case err != nil:
		err = fmt.Errorf(`%w: next to "cases" want "schema" alone, all other keys belong in each case`, err)
	case of.Schema > severalSchema:
		err = fmt.Errorf("schema is %d, this version reads 1 to %d", of.Schema, severalSchema)
	case len(of.Cases) == 0:
		err = errors.New("it has no cases")
	default:
		return of.Cases, nil
	}
	return nil, fmt.Errorf("dump: open %q: %w", name, err)
}

// openSeveral opens cases, whose files lie in the folder path.
func openSeveral(path string, cases []json.RawMessage, opt Options) (runs []*Run, err error) {
	for _, data := range cases {
		one, err := openRun(path, Options{Unjudged: opt.Unjudged}, func(r *Run, opt Options) error {
			err := r.readInfo(filepath.Join(path, RunFile), data, opt)
			if err == nil {
				err = r.openOrder(path, opt)
			}
			return cmp.Or(err, r.checkHashes(), r.checkSteps())
		})
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
		if own := filepath.Join(path, one[0].Info.Case, ProgramFile); isFile(own) {
			one[0].Program = own
		} else if len(cases) > 1 {
			one[0].Program = ""
		}
		runs = append(runs, one...)
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
