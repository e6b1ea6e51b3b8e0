package session

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/store"
)

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// record keeps the judged runs as runs/<name>, and the list of what was compared. An older recording of
// that name is replaced at one stroke, all modes and paths of it. The recorded run itself can be recorded under its
// own name, which renews the list; what made it stale stays so.
func (f *Fixture) record(name string) error {
	renew := f.replay == "" && !f.isLive()
	if renew && name != f.yaml.Replay {
		return fmt.Errorf("record: %s would be a copy of the recorded run %s: point PARITY_REPLAY to a dump", name, f.yaml.Replay)
	}
	further, err := f.probes.recorded()
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	runs := slices.Concat(f.runs, f.injected, further)
	joined, c := f.c.Joined(), &store.Change{}
	for _, r := range runs {
		k := store.Kept{Info: r.Info}
		if !renew {
			k.Info.Inputs = f.runInputs(r.Info)
		}
		k.Info.Date = cmp.Or(k.Info.Date, time.Now().UTC().Format(time.RFC3339))
		if k.OnePass() {
			k.Joined = joined[r.Info.Case]
		}
		c.Add = append(c.Add, store.Recording{Kept: k, Run: r})
	}
	dir := f.runDir(name)
	err = store.Update(f.cfg.context(), dir, f.waits(dir), func(*store.Store) (*store.Change, error) { return c, nil })
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// runDir returns the folder of a recorded run.
func (f *Fixture) runDir(name string) string { return filepath.Join(f.dir, "runs", name) }
