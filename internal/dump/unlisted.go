package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// openUnlisted opens a folder whose tensors are not listed in a run.json.
func (r *Run) openUnlisted(opt Options) error {
	files, folders, err := list(r.Path)
	if err != nil {
		return err
	}
	if files = r.tensorFiles(".", files, opt); len(files) > 0 {
		if len(folders) > 0 {
			r.note(fmt.Sprintf("read as a flat folder: the folders %s in it were left out", strings.Join(folders, ", ")))
		}
		return r.openFiles("0", r.Path, files, opt)
	}
	for _, d := range folders {
		dir := filepath.Join(r.Path, d)
		if files, _, err = list(dir); err == nil {
			err = r.openFiles(d, dir, r.tensorFiles(d, files, opt), opt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openFiles opens the files of a step, in a folder.
func (r *Run) openFiles(step, dir string, files []string, opt Options) error {
	var all []tensor.Named
	for _, f := range files {
		named, err := r.load(filepath.Join(dir, f), f, opt)
		if err != nil {
			return err
		}
		all = append(all, named...)
	}
	if quantised, err := checkpoint.IsQuantised(dir); err != nil {
		return err
	} else if quantised && !r.HasInfo {
		if all, _, err = checkpoint.Dequantise(dir, "", all); err != nil {
			return err
		}
	}
	by, err := r.order(dir, all)
	if err != nil {
		return err
	}
	if r.OrderBy == "" || by == OrderNatural {
		r.OrderBy = by
	}
	r.Entries = append(r.Entries, entriesOf(step, all)...)
	return nil
}

// isWeights reports whether run.json calls a file of a folder weights.
func (r *Run) isWeights(path string) bool {
	return slices.ContainsFunc(r.Info.Weights, func(w string) bool { return filepath.Clean(w) == path })
}

// order sorts tensors as tensor_names.txt lists them; the others follow in natural order. It returns who said so.
func (r *Run) order(dir string, all []tensor.Named) (by string, err error) {
	label.Sort(all, func(t tensor.Named) string { return t.Name })
	data, err := mapfile.Read(filepath.Join(dir, "tensor_names.txt"), mapfile.MaxListing)
	if errors.Is(err, fs.ErrNotExist) {
		return OrderNatural, nil
	}
	if err != nil {
		return "", fmt.Errorf("dump: open %q: %w", dir, err)
	}
	rank := map[string]int{} // below 0, that of what is not listed
	for i, l := range slices.Backward(strings.Split(string(data), "\n")) {
		rank[strings.TrimSpace(l)] = i - len(data) - 1
	}
	delete(rank, "")
	slices.SortStableFunc(all, func(a, b tensor.Named) int { return rank[a.Name] - rank[b.Name] })
	for _, t := range all {
		delete(rank, t.Name)
	}
	if len(rank) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(rank)), func(a, b string) int { return rank[a] - rank[b] })
		r.note(fmt.Sprintf("tensor_names.txt lists %d tensors that have no file, the first is %q", len(rank), first))
	}
	return OrderNames, nil
}

// list returns the visible files and folders of a folder in natural order.
func list(dir string) (files, folders []string, err error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("dump: open %q: %w", dir, err)
	}
	for _, e := range es {
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			st, err := os.Stat(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, nil, fmt.Errorf("dump: open %q: %w", dir, err)
			}
			isDir = st.IsDir()
		}
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case isDir:
			folders = append(folders, e.Name())
		default:
			files = append(files, e.Name())
		}
	}
	if slices.Contains(files, ProgramFile) { // its constants are no tensors of the dump
		files = slices.DeleteFunc(files, func(f string) bool { return f == ConstantsFile })
	}
	for _, l := range [][]string{files, folders} {
		slices.SortFunc(l, label.Natural)
	}
	return files, folders, nil
}
