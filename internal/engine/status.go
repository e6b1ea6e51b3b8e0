package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/sanitize"
)

// statusFile is the file by which CI tells a machine that failed from a model that is wrong.
const statusFile = "infra.txt"

// ReadStatus reads what [WriteStatus] left in a folder. Without such a file the error is
// fs.ErrNotExist.
func ReadStatus(dir string) (fixture, text string, err error) {
	data, err := mapfile.Read(filepath.Join(dir, statusFile), mapfile.MaxConfig)
	if err != nil {
		return "", "", err
	}
	class, rest, _ := strings.Cut(string(data), "\n")
	fixture, text, ok := strings.Cut(strings.TrimSpace(rest), ": ")
	if !ok {
		return "", strings.TrimSpace(string(data)), nil
	}
	return fixture, strings.TrimPrefix(class, "goparity ") + ": " + text, nil
}

// WriteStatus writes why nothing could be compared to dir/infra.txt, if dir is not empty, and to the
// file that Bazel asks for: a line with the class, and one with the error. Unless the machine is at
// fault, it instead removes the file of an earlier run.
func WriteStatus(dir, fixture string, err error) error {
	own := ""
	if dir != "" {
		own = filepath.Join(dir, statusFile)
	}
	if err == nil || !slices.Contains([]string{ClassInfra, classCrash, classTimeout, classStopped}, Class(err)) {
		if err := os.Remove(own); own != "" && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	text := fmt.Sprintf("goparity %s\n%s: %s\n", Class(err), fixture, sanitize.Line(err.Error()))
	for _, p := range []string{own, os.Getenv("TEST_INFRASTRUCTURE_FAILURE_FILE")} {
		if p == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
