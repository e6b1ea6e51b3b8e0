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
	"github.com/goparity/goparity/tensor/gguf"
	"github.com/goparity/goparity/tensor/maxckpt"
	"github.com/goparity/goparity/tensor/npy"
	"github.com/goparity/goparity/tensor/raw"
	"github.com/goparity/goparity/tensor/safetensors"
	"github.com/goparity/goparity/tensor/torchpt"
)

// opener has the function that opens a format, by the extension of the file.
var opener = map[string]func(string) (*tensor.File, error){
	".max":         maxckpt.Open,
	".pt":          torchpt.Open,
	".pth":         torchpt.Open,
	".npy":         npy.Open,
	".npz":         npy.Open,
	".safetensors": safetensors.Open,
	".gguf":        gguf.Open,
}

func isTensorFile(name string) bool {
	_, known := opener[strings.ToLower(filepath.Ext(name))]
	return known
}

// Formats lists the extensions of tensor files, for messages.
func Formats() string {
	ends := slices.Sorted(maps.Keys(opener))
	last := len(ends) - 1
	return strings.Join(ends[:last], ", ") + " or " + ends[last]
}

// sideFiles are the extensions of files that may lie next to tensors, and are never read as
// headerless tensors.
var sideFiles = []string{".json", ".txt", ".log", ".yaml", ".yml", ".md", ".png", ".html", ".py", ".csv"}

// OpenFile opens one file of tensors. Its extension says the format.
func OpenFile(path string) (*tensor.File, error) {
	open, ok := opener[strings.ToLower(filepath.Ext(path))]
	if !ok {
		return nil, &tensor.FormatError{Format: "dump", File: path, Offset: -1, Err: tensor.ErrUnsupported,
			Msg: "unknown kind of file, want " + Formats() + "; a headerless file needs --assume raw=DTYPE:SHAPE"}
	}
	return open(path)
}

// openFile opens a file as a dump of one step, or of those that a log shows.
func (r *Run) openFile(opt Options) (err error) {
	r.OrderBy = orderFile
	if r.Entries, err = r.read(r.Path, filepath.Base(r.Path), opt); err != nil {
		return err
	}
	if ext := strings.ToLower(filepath.Ext(r.Path)); ext == ".safetensors" || ext == ".gguf" { // writers sort by dtype and name
		r.OrderBy = OrderNatural
		label.Sort(r.Entries, Entry.Label)
	}
	return nil
}

// read opens a file of any format. Quantised weights of a checkpoint that is the run are what they stand for.
func (r *Run) read(path, file string, opt Options) (entries []Entry, err error) {
	if isLog(path) {
		return r.readLog(path)
	}
	named, err := r.load(path, file, opt)
	if err == nil && path == r.Path && strings.EqualFold(filepath.Ext(path), ".safetensors") {
		var notes []string
		named, notes, err = checkpoint.Dequantise(filepath.Dir(path), filepath.Base(path), named)
		r.Notes = append(r.Notes, notes...)
	}
	return entriesOf("0", named), err
}

// entriesOf are the tensors of a step by the labels that they have for names.
func entriesOf(step string, named []tensor.Named) (entries []Entry) {
	for _, t := range named {
		layer, port := label.Split(t.Name)
		entries = append(entries, Entry{Step: step, Layer: layer, Port: port, Tensor: t.Tensor})
	}
	return entries
}

// load opens a file and labels its tensors: the only tensor of a .max, .pt or .npy gets the file's
// name without its extension, those of a .pt with several in a folder get "<file>.<name>", and
// those of a container keep their names.
func (r *Run) load(path, file string, opt Options) ([]tensor.Named, error) {
	ext := strings.ToLower(filepath.Ext(file))
	stem := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	var f *tensor.File
	var err error
	if _, known := opener[ext]; !known && opt.Raw != nil {
		stem = filepath.Base(file)
		f, err = openRaw(path, stem, opt)
	} else if ext == ".npy" || ext == ".npz" {
		f, err = npy.OpenAs(path, opt.FP8)
	} else {
		f, err = OpenFile(path)
	}
	if errors.Is(err, ErrUnknownShape) && path != r.Path {
		r.note("left out a headerless file: " + err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.Watch(f.Changed)
	r.OnClose(f.Close)
	named := slices.Clone(f.Tensors)
	if ext == ".max" {
		if err := r.checkKey(path, stem, named[0].Name); err != nil {
			return nil, err
		}
	}
	whole := path == r.Path
	for i := range named {
		switch {
		case ext == ".safetensors" || ext == ".npz" || ext == ".gguf":
		case named[i].Name == "" || ext != ".pt" && ext != ".pth":
			named[i].Name = stem
		case !whole:
			named[i].Name = stem + "." + named[i].Name
		}
	}
	return named, nil
}

// checkKey compares the name inside a .max file with the file's. A file may have been renamed,
// which is noted; if there is a file of that name beside it, another tensor was written here.
func (r *Run) checkKey(path, stem, key string) error {
	if key == stem || key == "" {
		return nil
	}
	if mapfile.IsFile(filepath.Join(filepath.Dir(path), key+filepath.Ext(path))) {
		return &tensor.FormatError{Format: "maxckpt", File: path, Offset: -1, Err: tensor.ErrCorrupt,
			Msg: fmt.Sprintf("the file calls its tensor %q, as another file is called: it was written here by mistake: dump it again", key)}
	}
	r.note(fmt.Sprintf("%s calls its tensor %q: the file's name counts", filepath.Base(path), key))
	return nil
}

func openRaw(path, label string, opt Options) (*tensor.File, error) {
	st, err := os.Stat(path)
	var spec raw.Spec
	if err == nil {
		spec, err = opt.Raw(label, st.Size())
	}
	if err != nil {
		return nil, &tensor.FormatError{Format: "raw", File: path, Offset: -1, Err: err, Msg: err.Error()}
	}
	return raw.Open(path, spec)
}

// tensorFiles keeps the files of a folder of the run that hold tensors. A file of an unknown kind
// is a headerless tensor if opt says how to read it.
func (r *Run) tensorFiles(dir string, files []string, opt Options) []string {
	var keep, unknown []string
	for _, f := range files {
		switch {
		case r.isWeights(filepath.Join(dir, f)) || slices.Contains(sideFiles, strings.ToLower(filepath.Ext(f))):
		case isTensorFile(f):
			keep = append(keep, f)
		default:
			unknown = append(unknown, f)
		}
	}
	if len(keep) == 0 && opt.Raw != nil {
		return unknown
	}
	if len(unknown) > 0 {
		r.note("left out files of an unknown kind: " + strings.Join(unknown[:min(3, len(unknown))], ", "))
	}
	return keep
}

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
		st, err := os.Stat(filepath.Join(dir, e.Name())) // a link is what it leads to
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("dump: open %q: %w", dir, err)
		case strings.HasPrefix(e.Name(), "."):
		case st.IsDir():
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
