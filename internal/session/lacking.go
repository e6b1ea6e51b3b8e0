package session

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
)

// lackingGoldens lists the goldens and programs that the fixture asks for and that are not there.
func (f *Fixture) lackingGoldens() (out []string) {
	for _, what := range f.yaml.Lacking(func(variant, caseName string) int { return len(f.goldens.store.Steps(variant, caseName)) }) {
		out = append(out, fmt.Sprintf("golden: %s lacks %s, which %s asks for: make it: parity update %s",
			f.goldens.store.Dir(), what, f.yaml.File, f.dir))
	}
	return append(out, f.lackingPrograms()...)
}

// lackingLayers says which layers were compared when the run was recorded, and are not now.
func (f *Fixture) lackingLayers(c *judge.Comparison) (out []string) {
	joined, err := f.joined()
	if err != nil {
		return append(out, err.Error())
	}
	lost, gone := c.Require(joined)
	if n := len(lost); n > 0 && f.replay == "" && !f.isLive() {
		out = append(out, fmt.Sprintf("%d layers that were compared when the run %s was recorded have no counterpart in it now: %s: "+
			"restore %s and the names of fixture.yaml, or record it again", n, f.yaml.Replay, label.Few(lost), f.runDir(f.yaml.Replay)))
	} else if n > 0 {
		out = append(out, fmt.Sprintf("%d layers that the recorded run %s has were not recorded this time: %s", n, f.yaml.Replay, label.Few(lost)))
	}
	if n := len(gone); n > 0 {
		out = append(out, fmt.Sprintf("%d layers that were compared when the run %s was recorded have no golden now: %s: restore %s, "+
			"or if the reference has them no more, renew the list: go test -parity.record=%s",
			n, f.yaml.Replay, label.Few(gone), f.goldens.store.Dir(), f.yaml.Replay))
	}
	return out
}

// recordedNames lists the layers of the run that the fixture names, if it is there.
func (f *Fixture) recordedNames() (names []string) {
	if f.yaml.Replay == "" {
		return nil
	}
	runs, err := dump.OpenCases(f.runDir(f.yaml.Replay, dump.Standard), dump.Options{})
	if err != nil {
		return nil
	}
	defer dump.CloseAll(runs)
	for _, r := range runs {
		for _, e := range r.Entries {
			names = append(names, e.Layer)
		}
	}
	return names
}

// joined lists what was compared when the run that the fixture names was recorded; a recording of
// an older version does not say, and then it is what it has today. It is nil where there is none.
func (f *Fixture) joined() (all map[string]dump.Joined, err error) {
	if f.yaml.Replay == "" {
		return nil, nil
	}
	recorded := f.runs
	if f.replay != "" || f.isLive() {
		recorded, err = dump.OpenCases(f.runDir(f.yaml.Replay, dump.Standard), dump.Options{})
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // nothing was recorded yet
		}
		if err != nil {
			return nil, err
		}
		defer dump.CloseAll(recorded)
	}
	all = map[string]dump.Joined{}
	for _, r := range recorded {
		if r.Joined != nil {
			all[r.Info.Case] = r.Joined
		}
	}
	if len(all) > 0 || f.yaml.Alone {
		return all, nil
	}
	cases, err := f.cases(recorded)
	if err != nil {
		return nil, err
	}
	return judge.Outputs(cases, f.compareOptions().Match)
}
