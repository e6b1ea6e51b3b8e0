package dump

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/jsonline"
	"github.com/goparity/goparity/internal/mapfile"
)

// OpenCases opens the runs of several cases, in the order in which path lists them. path is one of:
//
//   - a recording: a folder whose run.json has "cases", with one file of tensors for each forward
//     pass;
//   - a folder of dumps, each a folder with a run.json;
//   - a single dump.
//
// The name of a run's case is that in its run.json, or else the name of its folder.
func OpenCases(path string, opt Options) ([]*Run, error) {
	data, err := mapfile.Read(filepath.Join(path, RunFile), mapfile.MaxListing)
	switch {
	case err == nil:
		if cases, err := recordedCases(filepath.Join(path, RunFile), data); err != nil {
			return nil, err
		} else if cases != nil {
			return openRecording(path, cases)
		}
	case !errors.Is(err, fs.ErrNotExist) && !isFile(path):
		return nil, fmt.Errorf("dump: open %q: %w", path, err)
	default:
		if dirs := dumpFolders(path); len(dirs) > 0 {
			return openAll(dirs, opt)
		}
	}
	r, err := Open(path, opt)
	if err != nil {
		return nil, err
	}
	return []*Run{r}, nil
}

// recording is the run.json of a recording.
type recording struct {
	Schema int               `json:"schema"`
	Cases  []json.RawMessage `json:"cases"` // each as the run.json of a dump
}

// recordedCases returns the cases in the run.json of a recording, nil if it is that of a dump.
func recordedCases(name string, data []byte) ([]json.RawMessage, error) {
	var rec recording
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, fmt.Errorf("dump: open %q: %w", name, jsonline.Error(data, err))
	}
	if rec.Cases == nil {
		return nil, nil
	}
	if rec.Schema > Schema {
		return nil, fmt.Errorf("dump: open %q: schema is %d, this version reads 1 to %d", name, rec.Schema, Schema)
	}
	if err := strict(data, &rec); rec.Schema > 1 && err != nil {
		return nil, fmt.Errorf(`dump: open %q: %w: next to "cases" want "schema" alone, all other keys belong in each case`,
			name, err)
	}
	return rec.Cases, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}

// dumpFolders lists the folders in a folder that are dumps with a run.json.
func dumpFolders(path string) (dirs []string) {
	_, folders, err := list(path)
	if err != nil {
		return nil
	}
	for _, d := range folders {
		if isFile(filepath.Join(path, d, RunFile)) {
			dirs = append(dirs, filepath.Join(path, d))
		}
	}
	return dirs
}

func openAll(dirs []string, opt Options) (runs []*Run, err error) {
	for _, d := range dirs {
		r, err := Open(d, opt)
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
		if r.Info.Case == "" {
			r.Info.Case = filepath.Base(d)
		}
		for _, o := range runs {
			if o.Info.Case == r.Info.Case {
				err := fmt.Errorf("dump: open %q: %s and %s are both of case %q: name one of them", filepath.Dir(d),
					filepath.Base(o.Path), filepath.Base(d), r.Info.Case)
				return nil, errors.Join(err, r.Close(), CloseAll(runs))
			}
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func openRecording(path string, cases []json.RawMessage) (runs []*Run, err error) {
	for _, c := range cases {
		r := &Run{Path: path}
		if err = r.readInfo(filepath.Join(path, RunFile), c, Options{}); err == nil {
			err = r.openListed(Options{})
		}
		if err == nil && len(r.Entries) == 0 {
			err = fmt.Errorf("dump: open %q: case %q: %w", path, r.Info.Case, ErrEmpty)
		}
		if err == nil {
			err = r.checkHashes()
		}
		if err == nil {
			err = r.finish(Options{})
		}
		if err == nil {
			err = r.checkSteps()
		}
		runs = append(runs, r)
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("dump: open %q: the recording has no cases", path)
	}
	return runs, nil
}

// checkHashes reads each file of a recording and compares its hash with that in run.json.
func (r *Run) checkHashes() error {
	for _, file := range slices.Sorted(maps.Keys(r.Info.SHA256)) {
		if !filepath.IsLocal(file) {
			return fmt.Errorf("dump: open %q: file %q leaves the folder", filepath.Join(r.Path, RunFile), file)
		}
		m, err := mapfile.Open(filepath.Join(r.Path, file))
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		var sum [sha256.Size]byte
		err = mapfile.Guard(func() error { sum = sha256.Sum256(m.Data); return nil })
		if err = errors.Join(err, m.Close()); err != nil {
			return fmt.Errorf("dump: open %q: %w", filepath.Join(r.Path, file), err)
		}
		if got := hex.EncodeToString(sum[:]); got != r.Info.SHA256[file] {
			return fmt.Errorf("dump: open %q: the file is damaged: its sha256 is %.12s…, %s says %.12s…: "+
				"restore it or record the run again",
				filepath.Join(r.Path, file), got, RunFile, r.Info.SHA256[file])
		}
	}
	return nil
}

// CloseAll closes runs.
func CloseAll(runs []*Run) error {
	var errs []error
	for _, r := range runs {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// CaseNames lists the cases of runs, for messages.
func CaseNames(runs []*Run) string {
	var names []string
	for _, r := range runs {
		names = append(names, fmt.Sprintf("%q", r.Info.Case))
	}
	return strings.Join(names, ", ")
}
