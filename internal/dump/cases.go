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
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/jsonline"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/seal"
	"github.com/goparity/goparity/internal/whole"
	"github.com/goparity/goparity/tensor"
)

// OpenCases opens the runs of several cases, in the order in which path lists them. path is one of:
//
//   - a recording: a folder whose run.json has "cases", with one file of tensors for each forward
//     pass;
//   - a folder of dumps, each a folder with a run.json, a folder whose name is one of opt.Cases, or
//     a folder with step folders;
//   - a single dump.
//
// The name of a run's case is that in its run.json, or else the name of its folder: if run.json has
// none, the one that parity run gives, or in opt.Cases the folder's and not its own.
//
// Where another recording takes the place of path meanwhile, it opens that.
func OpenCases(path string, opt Options) (runs []*Run, err error) {
	err = whole.Steady(path, func() (err error) {
		if err := CloseAll(runs); err != nil {
			return err
		}
		runs, err = openCases(path, opt)
		return err
	})
	return runs, err
}

func openCases(path string, opt Options) ([]*Run, error) {
	data, err := mapfile.Read(filepath.Join(path, RunFile), mapfile.MaxListing)
	switch {
	case err == nil:
		if rec, err := readRecording(filepath.Join(path, RunFile), data); err != nil {
			return nil, err
		} else if rec != nil {
			return openRecording(path, rec, opt)
		}
	case !errors.Is(err, fs.ErrNotExist) && !isFile(path):
		return nil, fmt.Errorf("dump: open %q: %w", path, err)
	default:
		if dirs := dumpFolders(path, opt); len(dirs) > 0 {
			return openAll(dirs, opt)
		}
	}
	r, err := Open(path, opt)
	if err != nil {
		return nil, err
	}
	return []*Run{r}, nil
}

// recordingSchema is the version of a recording's run.json that is written; the runs in it are of
// Schema. From this version on there is a hash of what it lists.
const recordingSchema = 3

// recording is the run.json of a recording.
type recording struct {
	Schema int               `json:"schema"`
	SHA256 string            `json:"sha256"` // of all the rest, see package seal
	Joined map[string]Joined `json:"joined"` // by case
	Cases  []json.RawMessage `json:"cases"`  // each as the run.json of a dump
}

// readRecording returns the run.json of a recording, nil if it is that of a dump.
func readRecording(name string, data []byte) (*recording, error) {
	var rec recording
	var has struct {
		Cases []json.RawMessage `json:"cases"`
	}
	if err := json.Unmarshal(data, &has); err != nil {
		return nil, fmt.Errorf("dump: open %q: %w", name, jsonline.Error(data, err))
	}
	if has.Cases == nil {
		return nil, nil
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, fmt.Errorf("dump: open %q: %w", name, jsonline.Error(data, err))
	}
	if rec.Schema > recordingSchema {
		return nil, fmt.Errorf("dump: open %q: schema is %d, this version reads 1 to %d", name, rec.Schema, recordingSchema)
	}
	if err := strict(data, &rec); rec.Schema > 1 && err != nil {
		return nil, fmt.Errorf(`dump: open %q: %w: next to "cases" want "schema", "sha256" and "joined" alone, `+
			`all other keys belong in each case`, name, err)
	}
	if rec.Schema >= recordingSchema || rec.SHA256 != "" {
		if err := seal.Check(data, rec.SHA256); err != nil {
			return nil, fmt.Errorf("dump: open %q: %w: a merge or an edit changed what it lists: "+
				"restore the folder or record the run again", name, err)
		}
	}
	return &rec, nil
}

// IsRecording reports whether OpenCases takes a folder for a recording.
func IsRecording(dir string) bool {
	name := filepath.Join(dir, RunFile)
	data, err := mapfile.Read(name, mapfile.MaxListing)
	if err != nil {
		return false
	}
	rec, err := readRecording(name, data)
	return rec != nil || err != nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}

// RunCase is the case of what parity run writes: it knows no fixture.
const RunCase = "run"

// dumpFolders lists the folders in a folder that are dumps; none if the folder itself has tensors.
func dumpFolders(path string, opt Options) (dirs []string) {
	files, folders, err := list(path)
	if err != nil {
		return nil
	}
	bare := !slices.ContainsFunc(files, isTensorFile)
	for _, d := range folders {
		dir := filepath.Join(path, d)
		_, isStep := strconv.Atoi(d)
		if isFile(filepath.Join(dir, RunFile)) ||
			bare && (hasSteps(dir) || isStep != nil && slices.Contains(opt.Cases, d)) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// hasSteps reports whether a folder has tensors in its folders, and none itself.
func hasSteps(dir string) bool {
	files, folders, err := list(dir)
	if err != nil || slices.ContainsFunc(files, isTensorFile) {
		return false
	}
	return slices.ContainsFunc(folders, func(step string) bool {
		files, _, err := list(filepath.Join(dir, step))
		return err == nil && slices.ContainsFunc(files, isTensorFile)
	})
}

func isTensorFile(name string) bool {
	_, known := opener[strings.ToLower(filepath.Ext(name))]
	return known
}

// caseName settles the case of a run in a folder of dumps.
func (i *Info) caseName(folder string, opt Options) string {
	if i.Case == "" || i.Case == RunCase || !slices.Contains(opt.Cases, i.Case) && slices.Contains(opt.Cases, folder) {
		return folder
	}
	return i.Case
}

func openAll(dirs []string, opt Options) (runs []*Run, err error) {
	for _, d := range dirs {
		r, err := Open(d, opt)
		if err != nil {
			return nil, errors.Join(err, CloseAll(runs))
		}
		r.Info.Case = r.Info.caseName(filepath.Base(d), opt)
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

// recordedProgram returns the program of a case of a recording: beside run.json where it is the only one, or in
// a folder of the case's name. It is "" where there is none.
func recordedProgram(path, caseName string, only bool) string {
	if name := filepath.Join(path, ProgramFile); only && isFile(name) {
		return name
	}
	if name := filepath.Join(path, caseName, ProgramFile); isFile(name) {
		return name
	}
	return ""
}

func openRecording(path string, rec *recording, opt Options) (runs []*Run, err error) {
	for _, c := range rec.Cases {
		r := &Run{Path: path}
		if err = r.readInfo(filepath.Join(path, RunFile), c, opt); err == nil {
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
		r.Program = recordedProgram(path, r.Info.Case, len(rec.Cases) == 1)
		r.Joined = rec.Joined[r.Info.Case]
		if rec.Schema < recordingSchema {
			r.note("no hash covers what the recorded run " + path + " lists, an older version wrote it: record it again")
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("dump: open %q: the recording has no cases", path)
	}
	if err := checkListed(path, runs); err != nil {
		return nil, errors.Join(err, CloseAll(runs))
	}
	return runs, nil
}

// checkListed refuses a recording whose files have more than run.json lists.
func checkListed(path string, runs []*Run) error {
	files := map[string][]string{} // by path, the tensors that no case lists
	for _, r := range runs {
		listed := map[*tensor.Tensor]bool{}
		for _, e := range r.Entries {
			listed[e.Tensor] = true
		}
		for _, f := range r.files {
			var lost []string
			for _, t := range f.Tensors {
				if before, other := files[f.Path]; !listed[t.Tensor] && (!other || slices.Contains(before, t.Name)) {
					lost = append(lost, t.Name)
				}
			}
			files[f.Path] = lost
		}
	}
	names, _, err := list(path)
	if err != nil {
		return fmt.Errorf("dump: open %q: %w", path, err)
	}
	for _, name := range names {
		name = filepath.Join(path, name)
		what := "no tensor of it"
		if lost, known := files[name]; known && len(lost) == 0 || filepath.Ext(name) != ".safetensors" {
			continue
		} else if known {
			what = "not all tensors of it: it lacks " + label.Few(lost)
		}
		return fmt.Errorf("dump: open %q: %s lists %s: a merge or an edit changed it: restore the folder or record the run again",
			name, RunFile, what)
	}
	return nil
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
