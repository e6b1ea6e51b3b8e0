package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			if python := filepath.Join(dir, ".venv", inVenv); isFile(python) {
				return python, nil
			}
		}
		if dir == filepath.Dir(dir) {
			break
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
