package engine

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/sanitize"
)

// Interpreter finds the Python that runs the engines: PARITY_PYTHON, or else the virtual
// environment .venv next to a go.mod in dir or in a folder above it, the one that is active
// (VIRTUAL_ENV), the one that this command was installed into as a wheel, or python3 in PATH. The
// error is an [*Error].
func Interpreter(getenv func(string) string, dir string) (string, error) {
	if python := getenv("PARITY_PYTHON"); python != "" {
		path, err := exec.LookPath(python)
		if err != nil {
			return "", &Error{Class: ClassInfra, Msg: fmt.Sprintf("PARITY_PYTHON is %s: %v", python, err),
				Hint: "point it to an interpreter that has the engines", Err: err}
		}
		return filepath.Abs(path)
	}
	inVenv := filepath.Join("bin", "python")
	if runtime.GOOS == "windows" {
		inVenv = filepath.Join("Scripts", "python.exe")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	for at := range upwards(dir) {
		if python := filepath.Join(at, ".venv", inVenv); isFile(filepath.Join(at, "go.mod")) && isFile(python) {
			return python, nil
		}
	}
	for _, venv := range []string{getenv("VIRTUAL_ENV"), ownVenv()} {
		if python := filepath.Join(venv, inVenv); venv != "" && isFile(python) {
			return python, nil
		}
	}
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", &Error{Class: ClassInfra, Msg: "there is no Python", Err: exec.ErrNotFound,
		Hint: "make a virtual environment .venv next to go.mod with the engines, " +
			"or point PARITY_PYTHON to an interpreter that has them"}
}

// ownVenv returns the virtual environment whose scripts this program is one of; "" if it is none.
func ownVenv() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	venv := filepath.Dir(filepath.Dir(self))
	if !isFile(filepath.Join(venv, "pyvenv.cfg")) {
		return ""
	}
	return venv
}

// upwards visits a folder and those that it is in.
func upwards(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
	}
}

func isFile(path string) bool {
	st, err := os.Stat(path) // follows links: some installers link into their cache
	return err == nil && st.Mode().IsRegular()
}

// Program finds a program by its name: in PATH, or else beside the Python that runs the engines,
// where pip puts programs such as max. A name that is in neither is returned as it is.
func Program(getenv func(string) string, dir, name string) string {
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	if python, err := Interpreter(getenv, dir); err == nil {
		if beside := filepath.Join(filepath.Dir(python), name); isFile(beside) {
			return beside
		}
	}
	return name
}

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

// lookup returns the value of a variable; of several the last counts, as for os/exec.
func lookup(env []string, key string) (value string, set bool) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			value, set = v, true
		}
	}
	return value, set
}

func getter(env []string) func(key string) string {
	return func(key string) string { v, _ := lookup(env, key); return v }
}

// defaults are variables that engines read at import: no hub, no telemetry, no progress bars,
// reproducible results.
var defaults = []string{
	"HF_HUB_OFFLINE=1",
	"MODULAR_TELEMETRY_ENABLED=0",
	"MODULAR_CRASH_REPORTING_ENABLED=0",
	"MAX_SERVE_DISABLE_TELEMETRY=1",
	"OTEL_SDK_DISABLED=true",
	"ORT_DISABLE_TELEMETRY=1",
	"DO_NOT_TRACK=1",
	"HF_HUB_DISABLE_TELEMETRY=1",
	"HF_HUB_DISABLE_PROGRESS_BARS=1",
	"TOKENIZERS_PARALLELISM=false",
	"CUBLAS_WORKSPACE_CONFIG=:4096:8",
	"PYTHONHASHSEED=0", // transformers calls Gemma 3's rotary embedding in the order of a set of names
}

// offlineEnv adds the defaults to env. A variable that the user has set keeps its value: HF_HUB_OFFLINE=0
// asks the hub.
func offlineEnv(env []string) []string {
	out := slices.Clone(env)
	for _, kv := range defaults {
		if key, _, _ := strings.Cut(kv, "="); getter(env)(key) == "" {
			out = append(out, kv)
		}
	}
	return out
}

// maskTexts removes the secrets from the text files of a dump: run.json, lists of names, printed
// tensors.
func maskTexts(dir string, secrets *sanitize.Secrets) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		text := slices.Contains([]string{".json", ".txt", ".log"}, filepath.Ext(path))
		if err != nil || !text || !d.Type().IsRegular() {
			return err
		}
		return secrets.MaskFile(path)
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil // there is no dump: open will say so
	}
	return err
}

// Environ is the environment of a program that goparity starts: that of this process, without
// telemetry and without the hub unless it says otherwise, with the cache of compiled graphs.
func Environ() ([]string, error) {
	return withCache(offlineEnv(os.Environ()))
}

// withCache adds the folder of compiled graphs, and what Python needs to print at once and in UTF-8.
func withCache(env []string) ([]string, error) {
	cache, err := CompileCache(getter(env))
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(env), "MODULAR_MAX_CACHE_DIR="+cache, "PYTHONUNBUFFERED=1", "PYTHONIOENCODING=utf-8"), nil
}
