package engine

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
)

//go:embed runner/*.py runner/goparity/*.py
var embedded embed.FS

// Requirements lists, by engine, the packages that it needs, in pip's format.
var Requirements = map[string]string{Torch: requirementsTorch, MAX: requirementsMAX, MLX: requirementsMLX}

// Names lists the engines of this package: "max, mlx or torch".
func Names() string {
	names := slices.Sorted(maps.Keys(Requirements))
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

//go:embed requirements.txt
var requirementsTorch string

//go:embed requirements-max.txt
var requirementsMAX string

//go:embed requirements-mlx.txt
var requirementsMLX string

// Unpack writes the Python runners to a folder in the user's cache that is named by their hash, and
// returns that folder. It rewrites only files that are missing or damaged; several processes may
// unpack at once.
func Unpack() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	files, err := fs.Sub(embedded, "runner")
	if err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	hash := sha256.New()
	content := map[string][]byte{}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		content[name] = data
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	dir := filepath.Join(cache, "runner", hex.EncodeToString(hash.Sum(nil))[:16])
	for name, data := range content {
		if err := put(filepath.Join(dir, filepath.FromSlash(name)), data); err != nil {
			return "", &Error{Class: ClassInfra, Msg: fmt.Sprintf("the runners cannot be unpacked: %v", err),
				Hint: "the user's cache folder must be writable", Err: err}
		}
	}
	return dir, nil
}

// put writes a file atomically, unless it already has this content.
func put(path string, data []byte) error {
	if have, err := mapfile.Read(path, mapfile.MaxConfig); err == nil && bytes.Equal(have, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return mapfile.Replace(path, 0o600, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// cacheDir returns goparity's folder in the user's cache.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &Error{Class: ClassInfra, Msg: fmt.Sprintf("there is no cache folder: %v", err),
			Hint: "set HOME or XDG_CACHE_HOME", Err: err}
	}
	return filepath.Join(dir, "goparity"), nil
}

// LogFile returns where the log of an engine's last run is kept by default: log/NAME.log in
// goparity's folder in the user's cache.
func LogFile(name string) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "log", name+".log"), nil
}

// CompileCache returns the folder in which MAX keeps compiled graphs: MODULAR_MAX_CACHE_DIR, or
// else max in goparity's folder in the user's cache.
func CompileCache(getenv func(string) string) (string, error) {
	if dir := getenv("MODULAR_MAX_CACHE_DIR"); dir != "" {
		return dir, nil
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "max"), nil
}
