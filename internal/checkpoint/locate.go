package checkpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
)

// Location is where the weights are that a path stands for.
type Location struct {
	Files  []string // .safetensors files that are one set, or a file of torch.save
	GGUF   string   // or a .gguf file; else empty
	Unread []string // names of other files of weights in the folder
}

const (
	indexEnd = ".safetensors.index.json"   // of the name of an index
	single   = "model.safetensors"         // in which transformers looks first
	adapter  = "adapter_model.safetensors" // of a LoRA, which is no part of the model
	ofTorch  = "pytorch_model.bin"         // which is older, and read where a folder has nothing else
)

// Locate finds the weights of a .safetensors or .gguf file, an index, or a folder. Every command looks for them
// here. Of a folder it takes what transformers loads: model.safetensors, or another file though an index of its name
// is beside it; else what the only index lists; else all .safetensors files; else the only .gguf file.
func Locate(path string) (Location, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return Location{}, err
	case st.IsDir():
		return locateIn(path)
	case strings.HasSuffix(path, ".json"):
		files, err := indexed(path)
		return Location{Files: files}, err
	case strings.EqualFold(filepath.Ext(path), ".gguf"):
		return Location{GGUF: path}, nil
	}
	return Location{Files: []string{path}}, nil
}

// locateIn is Locate of a folder.
func locateIn(dir string) (l Location, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	named := func(is func(name string) bool) (names []string) {
		for _, e := range entries {
			if !e.IsDir() && is(e.Name()) {
				names = append(names, e.Name())
			}
		}
		return names
	}
	indices := named(func(name string) bool { return strings.HasSuffix(name, indexEnd) })
	ggufs := named(func(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gguf") })
	files := named(func(name string) bool { return strings.HasSuffix(name, ".safetensors") && name != adapter })
	if len(files) == 0 {
		files = named(func(name string) bool { return name == adapter }) // it was asked for by itself
	}
	whole := slices.DeleteFunc(slices.Clone(files), func(f string) bool {
		return f != single && !slices.Contains(indices, strings.TrimSuffix(f, ".safetensors")+indexEnd)
	})
	if slices.Contains(whole, single) {
		whole = []string{single}
	}
	switch {
	case len(whole) == 1:
		l.Files = []string{filepath.Join(dir, whole[0])}
	case len(indices) == 1 && len(whole) == 0:
		l.Files, err = indexed(filepath.Join(dir, indices[0]))
	case len(indices) > 1:
		return l, fmt.Errorf("%s has several indices, %s: name the one that is meant", dir, strings.Join(indices, ", "))
	case len(files) > 0:
		for _, f := range files {
			l.Files = append(l.Files, filepath.Join(dir, f))
		}
	case len(ggufs) == 1:
		l.GGUF = filepath.Join(dir, ggufs[0])
	case len(ggufs) > 1:
		return l, fmt.Errorf("%s has several .gguf files, %s: name the one that is meant", dir, strings.Join(ggufs, ", "))
	case slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ofTorch }):
		l.Files = []string{filepath.Join(dir, ofTorch)}
	default:
		return l, fmt.Errorf("%s: no .safetensors or .gguf file in this folder: %w", dir, fs.ErrNotExist)
	}
	for _, name := range slices.Concat(files, indices, ggufs) {
		path := filepath.Join(dir, name)
		isRead := slices.Contains(l.Files, path) || l.GGUF == path || len(whole) == 0 && slices.Contains(indices, name)
		if !isRead {
			l.Unread = append(l.Unread, name)
		}
	}
	return l, err
}

// Unread says of folders which of their files of weights were not read; nothing of files.
func Unread(paths ...string) (notes []string) {
	for _, path := range paths {
		l, err := Locate(path)
		if err != nil || len(l.Unread) == 0 {
			continue
		}
		read := filepath.Base(append(l.Files, l.GGUF)[0])
		if len(l.Files) > 1 {
			read = fmt.Sprintf("%s and %d more", read, len(l.Files)-1)
		}
		notes = append(notes, fmt.Sprintf("the weights of %s are those of %s; not read: %s", filepath.ToSlash(path), read, strings.Join(l.Unread, ", ")))
	}
	return notes
}

// indexed lists the files that an index names, which are next to it.
func indexed(path string) ([]string, error) {
	index, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for key, name := range index {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: %s lies in %q: want the name of a file next to the index", path, key, name)
		}
		if part := filepath.Join(filepath.Dir(path), name); !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: the weight_map is empty: give the .safetensors files themselves", path)
	}
	slices.Sort(out)
	return out, nil
}

// readIndex reads the files of tensors, by name.
func readIndex(path string) (map[string]string, error) {
	data, err := mapfile.Read(path, mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: want an index with a weight_map: %w", path, err)
	}
	return index.Map, nil
}

// inOtherFiles returns what tells the tensors that an index in the folder has in other files than
// this one. It is nil if no index there names the file.
func inOtherFiles(dir, file string) (func(name string) bool, error) {
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), indexEnd) {
			continue
		}
		index, err := readIndex(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if slices.Contains(slices.Collect(maps.Values(index)), file) {
			return func(name string) bool { return index[name] != "" && index[name] != file }, nil
		}
	}
	return nil, nil
}
