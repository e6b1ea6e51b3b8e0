package session

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/whole"
)

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// record keeps the judged runs as runs/<name>/<mode>: equal tensors once, a file for each forward
// pass. An older recording of that name is replaced, each mode when all of it is written.
func (f *Fixture) record(name string) error {
	if f.replay == "" && !f.isLive() {
		return fmt.Errorf("record: %s would be a copy of the recorded run %s: point PARITY_REPLAY to a dump", name, f.yaml.Replay)
	}
	if err := f.recordMode(name, f.runs); err != nil {
		return err
	}
	if f.injected == nil {
		return os.RemoveAll(f.runDir(name, dump.Injected)) // that of an older candidate
	}
	return f.recordMode(name, f.injected)
}

func (f *Fixture) recordMode(name string, runs []*dump.Run) error {
	mode := runs[0].Info.Mode
	dir := f.runDir(name, mode)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+mode+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	kept := make([]*dump.Run, len(runs))
	for i, r := range runs {
		run := *r
		run.Info.Inputs = f.runInputs(r.Info)
		if run.Info.Date == "" {
			run.Info.Date = time.Now().UTC().Format(time.RFC3339)
		}
		kept[i] = &run
	}
	if err := dump.Write(tmp, kept); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	old := tmp + ".old"
	if err := whole.Swap(whole.OS{}, tmp, dir, old); err != nil {
		return err
	}
	return os.RemoveAll(old)
}
