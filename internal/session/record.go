package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/whole"
)

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// recordedModes are the folders of a recorded run.
var recordedModes = []string{dump.Standard, dump.Injected, pathsMode}

// record keeps the judged runs as runs/<name>/<mode>: equal tensors once, a file for each forward
// pass, and the list of what was compared. An older recording of that name is replaced at one
// stroke, all modes of it. The recorded run itself can be recorded under its own name, which renews
// the list; what made it stale stays so.
func (f *Fixture) record(name string) error {
	renew := f.replay == "" && !f.isLive()
	if renew && name != f.yaml.Replay {
		return fmt.Errorf("record: %s would be a copy of the recorded run %s: point PARITY_REPLAY to a dump", name, f.yaml.Replay)
	}
	joined := f.c.Joined()
	modes := map[string][]*dump.Run{}
	for _, r := range slices.Concat(f.runs, f.injected) {
		run := *r
		if !renew {
			run.Info.Inputs = f.runInputs(r.Info)
		}
		if run.Joined = nil; r.Info.Mode == dump.Standard {
			run.Joined = joined[r.Info.Case]
		}
		if run.Info.Date == "" {
			run.Info.Date = time.Now().UTC().Format(time.RFC3339)
		}
		modes[r.Info.Mode] = append(modes[r.Info.Mode], &run)
	}
	for _, p := range f.paths {
		for _, r := range p.runs {
			run := *r
			if !renew {
				run.Info.Inputs = f.runInputs(r.Info)
			}
			run.Info.Date = cmp.Or(run.Info.Date, time.Now().UTC().Format(time.RFC3339))
			modes[pathsMode] = append(modes[pathsMode], &run)
		}
	}
	for _, g := range f.answers {
		if g.actual == nil {
			continue
		}
		run, err := g.recorded()
		if err != nil {
			return fmt.Errorf("record: generation of case %s: %w", g.Case, err)
		}
		if !renew {
			run.Info.Inputs = f.runInputs(run.Info)
		}
		run.Info.Date = cmp.Or(run.Info.Date, time.Now().UTC().Format(time.RFC3339))
		modes[pathsMode] = append(modes[pathsMode], run)
	}
	dir := filepath.Join(f.dir, "runs", name)
	if err := f.writeRecording(dir, func() (map[string][]*dump.Run, error) { return modes, nil }); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// writeRecording writes a recorded run, a folder for each mode, and keeps what else is next to
// them. what says, while no other process writes it, what to write; nothing changes nothing.
func (r *runner) writeRecording(dir string, what func() (map[string][]*dump.Run, error)) error {
	dir = whole.Target(dir)
	unlock, err := whole.Lock(r.cfg.context(), dir, r.waits(dir))
	if err != nil {
		return err
	}
	defer unlock()
	if err := whole.Recover(whole.OS{}, dir); err != nil {
		return err
	}
	modes, err := what()
	if err != nil || len(modes) == 0 {
		return err
	}
	return whole.Folder(whole.OS{}, dir, func(tmp string) error {
		if err := keepOthers(dir, tmp); err != nil {
			return err
		}
		for mode, runs := range modes {
			to := filepath.Join(tmp, mode)
			if err := os.Mkdir(to, 0o755); err != nil {
				return err
			}
			if err := dump.Write(to, runs); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepOthers copies what lies in the folder of a recorded run besides its modes.
func keepOthers(dir, to string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		from, to := filepath.Join(dir, e.Name()), filepath.Join(to, e.Name())
		switch {
		case err != nil || slices.Contains(recordedModes, e.Name()):
		case e.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			err = mapfile.Copy(to, from)
		}
	}
	return err
}
