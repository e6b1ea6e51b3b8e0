package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/mapfile"
)

// overlayKey is the variable by which the runners learn that an overlay is on their path. They then
// mark the version (see dump.Info.EditedTransformers).
const overlayKey = "PARITY_TRANSFORMERS"

const (
	overlaid    = "transformers"
	overlayFile = "overlay.json"
)

// Overlay is an editable copy of the installed Python package transformers, in the folder
// .parity/transformers next to a module's go.mod. Engines find it before the installed package, which
// is not touched. It is for looking into the reference with a print, a parity_tap or a changed line.
// Since an edited copy is no longer the reference, runs say that they used it, and goldens are not
// updated from them.
type Overlay struct {
	Dir     string            `json:"-"` // the folder for PYTHONPATH, which holds the package
	Version string            `json:"version"`
	Source  string            `json:"source"` // the installed package
	Files   map[string]string `json:"files"`  // sha256 of each copied file, by its path in the package
}

// FindOverlay returns the overlay of the module that dir is in; nil if there is none.
func FindOverlay(dir string) (*Overlay, error) {
	at, err := OverlayFolder(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(at, overlayFile)
	data, err := mapfile.Read(path, mapfile.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(err)
	}
	o := &Overlay{Dir: at}
	if err := json.Unmarshal(data, o); err != nil || o.Version == "" || len(o.Files) == 0 {
		return nil, fmt.Errorf("transformers: %s is damaged: parity transformers restore --force removes the "+
			"copy, edits and all", path)
	}
	return o, nil
}

// OverlayFolder returns the folder for the overlay of the module that dir is in: next to the nearest
// go.mod or, if there is none, in dir.
func OverlayFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", wrap(err)
	}
	for at := range upwards(dir) {
		if isFile(filepath.Join(at, "go.mod")) {
			dir = at
			break
		}
	}
	return filepath.Join(dir, ".parity", overlaid), nil
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("transformers: %w", err)
}

// InstalledTransformers asks an interpreter for the folder and the version of its transformers.
func InstalledTransformers(ctx context.Context, python string) (source, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// With -I, a copy on PYTHONPATH is not taken for the installation.
	cmd := exec.CommandContext(ctx, python, "-I", "-c", `import importlib.metadata as m, importlib.util as u
print(u.find_spec("transformers").submodule_search_locations[0])
print(m.version("transformers"))`)
	out, err := cmd.Output()
	source, version, _ = strings.Cut(strings.ReplaceAll(strings.TrimSpace(string(out)), "\r\n", "\n"), "\n")
	if err != nil || version == "" {
		return "", "", fmt.Errorf("transformers: %s has no package transformers: pip install transformers, "+
			"or point PARITY_PYTHON to an interpreter that has it", python)
	}
	return source, version, nil
}

// MakeOverlay copies the installed package in source to dir, which must not exist. The copy appears
// complete or not at all.
func MakeOverlay(dir, source, version string) (_ *Overlay, err error) {
	defer func() { err = wrap(err) }()
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s exists already", dir)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	// The copy must not be committed.
	if err := os.WriteFile(filepath.Join(parent, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(parent, "."+overlaid+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	o := &Overlay{Dir: dir, Version: version, Source: source}
	o.Files, err = walk(source, func(rel, path string) (string, error) {
		return copyFile(path, filepath.Join(tmp, overlaid, rel))
	})
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", source, err)
	}
	data, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.Chmod(tmp, 0o755), os.WriteFile(filepath.Join(tmp, overlayFile), data, 0o644))
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// walk calls do for each file of a package and returns the results by the file's path, with
// slashes. It leaves out compiled files.
func walk(root string, do func(rel, path string) (string, error)) (map[string]string, error) {
	out := map[string]string{}
	return out, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__":
			return fs.SkipDir
		case d.IsDir() || !isFile(path):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(rel)], err = do(rel, path)
		return err
	})
}

// copyFile copies the content of a file, never a link, and returns its sha256.
func copyFile(from, to string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	if err := mapfile.Copy(to, from); err != nil {
		return "", err
	}
	return mapfile.Hash(to)
}

// Changes lists the edits, a line each: what it is (changed, added or removed), and the file.
func (o *Overlay) Changes() (lines []string, err error) {
	now, err := walk(o.Package(), func(_, path string) (string, error) { return mapfile.Hash(path) })
	if err != nil {
		return nil, wrap(err)
	}
	all := maps.Clone(o.Files)
	maps.Copy(all, now)
	for _, f := range slices.Sorted(maps.Keys(all)) {
		what := "changed"
		switch was, is := o.Files[f], now[f]; {
		case was == is:
			continue
		case was == "":
			what = "added"
		case is == "":
			what = "removed"
		}
		lines = append(lines, fmt.Sprintf("%-8s %s", what, f))
	}
	return lines, nil
}

// Package returns the folder of the copied package.
func (o *Overlay) Package() string { return filepath.Join(o.Dir, overlaid) }

// Lookup lists the files of the package whose path ends with the words of a module's name, "llama"
// or "modeling_llama" or "models/llama".
func (o *Overlay) Lookup(module string) []string {
	want := strings.TrimSuffix(strings.ReplaceAll(strings.TrimPrefix(module, overlaid+"."), ".", "/"), "/py")
	var out []string
	for _, f := range slices.Sorted(maps.Keys(o.Files)) {
		at := "/" + strings.TrimSuffix(f, ".py")
		if strings.HasSuffix(at, "/"+want) || strings.HasSuffix(filepath.ToSlash(filepath.Dir(at)), "/"+want) {
			out = append(out, f)
		}
	}
	return out
}

// RemoveOverlay deletes the folder of an overlay, and the folder .parity if nothing else is in it.
func RemoveOverlay(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return wrap(err)
	}
	parent := filepath.Dir(dir)
	if rest, err := os.ReadDir(parent); err == nil && len(rest) == 1 && rest[0].Name() == ".gitignore" {
		return os.RemoveAll(parent)
	}
	return nil
}

// Environ adds the overlay to env, in front of PYTHONPATH.
func (o *Overlay) Environ(env []string) []string {
	path := o.Dir
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, "PYTHONPATH="); ok {
			if v != "" {
				path += string(os.PathListSeparator) + v
			}
			break
		}
	}
	return append(slices.Clone(env), "PYTHONPATH="+path, overlayKey+"="+o.Dir)
}

// String describes the overlay in a line, for summaries.
func (o *Overlay) String() string {
	return fmt.Sprintf("transformers %s is the editable copy in %s; parity transformers restore removes it", o.Version, o.Dir)
}
