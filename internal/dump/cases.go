package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/internal/mapfile"
)

// OpenCases opens the runs of several cases, in the order in which path lists them. path is one of:
//
//   - a folder with an [IndexFile], which keeps runs, or whose [RunFile] has several "cases";
//   - a folder of dumps, each a folder with a run.json, a folder whose name is one of opt.Cases, or
//     a folder with step folders;
//   - a single dump.
//
// The name of a run's case is that in its run.json, or else the name of its folder: if run.json has
// none, the one that parity run gives, or in opt.Cases the folder's and not its own.
func OpenCases(path string, opt Options) ([]*Run, error) {
	disk := afero.NewOsFs()
	for {
		x, data, err := ReadIndex(disk, path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !isFile(path) {
				return nil, fmt.Errorf("dump: open %q: %w", path, err)
			}
			break
		}
		runs, err := openIndexed(path, x, opt)
		if errors.Is(err, fs.ErrNotExist) {
			if _, now, _ := ReadIndex(disk, path); !bytes.Equal(data, now) {
				continue // another run has taken the place of this one
			}
		}
		return runs, err
	}
	data, err := mapfile.Read(filepath.Join(path, RunFile), mapfile.MaxListing)
	switch {
	case err == nil:
		if of, err := parseSeveral(filepath.Join(path, RunFile), data); of != nil || err != nil {
			if err != nil {
				return nil, err
			}
			return openSeveral(path, of, opt)
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

// KeepsRuns reports whether a folder keeps runs, and is no dump.
func KeepsRuns(dir string) bool { return isFile(filepath.Join(dir, IndexFile)) }

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
