package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/goparity/goparity/internal/dump"
)

// Save writes runs of one engine, one for each case, to a folder that is there, as dump.OpenCases reads them: equal tensors once, a file
// for each forward pass, and run.json. A run that names no case is called "case".
func Save(dir string, runs []*dump.Run) error {
	var cases []dump.Info
	for _, r := range runs {
		named := *r
		named.Info.Case = cmp.Or(r.Info.Case, "case")
		info, err := writeCase(dir, &named)
		if err != nil {
			return fmt.Errorf("save: %w", err)
		}
		cases = append(cases, info)
	}
	return writeRunFile(dir, cases)
}

// writeRunFile writes the run.json of a recording.
func writeRunFile(dir string, cases []dump.Info) error {
	data, err := json.MarshalIndent(struct {
		Schema int         `json:"schema"`
		Cases  []dump.Info `json:"cases"`
	}{1, cases}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, dump.RunFile), append(data, '\n'), 0o644)
}

// fileName makes a name from a dump fit for a file of one folder: run.json says which file is whose.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._- ", r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}
