package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
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
	files = r.tensorFiles(r.withoutWeights(".", files), opt)
	type stepDir struct{ step, dir string }
	steps := []stepDir{{"0", r.Path}}
	if len(files) == 0 {
		steps = nil
		for _, d := range folders {
			steps = append(steps, stepDir{d, filepath.Join(r.Path, d)})
		}
	} else if len(folders) > 0 {
		r.note(fmt.Sprintf("read as a flat folder: the folders %s in it were left out", strings.Join(folders, ", ")))
	}
	for _, s := range steps {
		if s.dir != r.Path {
			if files, _, err = list(s.dir); err != nil {
				return err
			}
			files = r.tensorFiles(r.withoutWeights(s.step, files), opt)
		}
		if err := r.openFiles(s.step, s.dir, files, opt); err != nil {
			return err
		}
	}
	return nil
}

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
	byLabel := map[string]*tensor.Tensor{}
	var labels []string
	for _, t := range all {
		if byLabel[t.Name] != nil {
			return fmt.Errorf("dump: open %q: %q is there twice, in files of different formats: keep one",
				dir, t.Name)
		}
		byLabel[t.Name] = t.Tensor
		labels = append(labels, t.Name)
	}
	order, by, err := r.order(dir, labels)
	if err != nil {
		return err
	}
	if r.OrderBy == "" || by == OrderNatural {
		r.OrderBy = by
	}
	for _, l := range order {
		layer, port := label.Split(l)
		r.Entries = append(r.Entries, Entry{Step: step, Layer: layer, Port: port, Tensor: byLabel[l]})
	}
	return nil
}

// withoutWeights leaves out the files of a folder that run.json calls weights.
func (r *Run) withoutWeights(dir string, files []string) []string {
	return slices.DeleteFunc(files, func(f string) bool {
		return slices.ContainsFunc(r.Info.Weights, func(w string) bool {
			return filepath.Clean(w) == filepath.Join(dir, f)
		})
	})
}

// order sorts labels as tensor_names.txt lists them; the others follow in natural order.
func (r *Run) order(dir string, labels []string) ([]string, string, error) {
	label.Sort(labels, func(l string) string { return l })
	data, err := mapfile.Read(filepath.Join(dir, "tensor_names.txt"), mapfile.MaxListing)
	if errors.Is(err, fs.ErrNotExist) {
		return labels, OrderNatural, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("dump: open %q: %w", dir, err)
	}
	rank := map[string]int{}
	have := map[string]bool{}
	for _, l := range labels {
		have[l] = true
	}
	var gone []string
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if _, ok := rank[l]; !ok {
			rank[l] = len(rank)
		}
		if !have[l] {
			gone = append(gone, l)
		}
	}
	if len(gone) > 0 {
		r.note(fmt.Sprintf("tensor_names.txt lists %d tensors that have no file, the first is %q", len(gone), gone[0]))
	}
	sort.SliceStable(labels, func(i, j int) bool {
		a, okA := rank[labels[i]]
		b, okB := rank[labels[j]]
		return okA && (!okB || a < b)
	})
	return labels, OrderNames, nil
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
