package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/internal/dump"
)

// Prune returns what lies in a fixture's folder and belongs to no case of it: goldens, and cases of
// recorded runs. With apply it removes them.
func Prune(ctx context.Context, dir string, apply bool) (gone []string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &runner{dir: dir, name: filepath.Base(abs), cfg: &Config{Context: ctx}}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.readYAML(); err != nil {
		return nil, err
	}
	goldens := filepath.Join(dir, "golden")
	files, err := golden.Prune(ctx, goldens, golden.PruneOptions{Keep: r.yaml.Wants, Apply: apply, Waiting: r.waits(goldens)})
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		gone = append(gone, "golden/"+f)
	}
	names, err := os.ReadDir(filepath.Join(dir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return gone, err
	}
	for _, n := range names {
		if !runName.MatchString(n.Name()) {
			continue // what an update that was killed left
		}
		cases, err := r.pruneRun(filepath.Join(dir, "runs", n.Name()), apply)
		if err != nil {
			return gone, fmt.Errorf("prune: %w", err)
		}
		gone = append(gone, cases...)
	}
	return gone, nil
}

// pruneRun removes the cases from a recorded run that the fixture does not have.
func (r *runner) pruneRun(dir string, apply bool) (gone []string, err error) {
	if !apply {
		_, gone, err = r.wanted(dir)
		return gone, err
	}
	err = r.writeRecording(dir, func() (kept map[string][]*dump.Run, err error) {
		if kept, gone, err = r.wanted(dir); len(gone) == 0 {
			kept = nil
		}
		return kept, err
	})
	return gone, err
}

// wanted opens a recorded run, and returns by mode what the fixture has cases for and what it has
// not. The runs are closed when the session ends.
func (r *runner) wanted(dir string) (kept map[string][]*dump.Run, gone []string, err error) {
	kept = map[string][]*dump.Run{}
	for _, mode := range recordedModes {
		path := filepath.Join(dir, mode)
		if !dump.IsRecording(path) {
			continue
		}
		runs, err := dump.OpenCases(path, dump.Options{Unjudged: mode == pathsMode})
		if err != nil {
			return nil, nil, err
		}
		r.opened = append(r.opened, runs...)
		for _, run := range runs {
			if r.wants(run) {
				kept[mode] = append(kept[mode], run)
			} else {
				gone = append(gone, fmt.Sprintf("runs/%s/%s: case %s", filepath.Base(dir), mode, run.Info.Case))
			}
		}
	}
	if len(gone) > 0 && kept[dump.Standard] == nil {
		return nil, nil, fmt.Errorf("the fixture has none of the cases of %s, nothing would be left: delete the folder if that is meant",
			filepath.ToSlash(dir))
	}
	return kept, gone, nil
}

// wants reports whether the fixture has the case of a recorded run, and its execution path.
func (r *runner) wants(run *dump.Run) bool {
	if _, ofPath := dump.CutPathCase(run.Info.Case); ofPath {
		return r.yaml.WantsPath(run.Info.Case)
	}
	_, err := r.yaml.Case(run.Info.Case)
	return err == nil
}
