package session

import (
	"fmt"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/store"
)

// lackingGoldens lists the goldens and programs that the fixture asks for and that are not there.
func (f *Fixture) lackingGoldens() (out []string) {
	for _, what := range f.yaml.Lacking(f.goldens.Steps, f.goldens.HasProgram) {
		out = append(out, fmt.Sprintf("golden: %s lacks %s, which %s asks for: make it: parity golden update %s",
			f.goldens.Dir(), what, f.yaml.File, f.dir))
	}
	return out
}

// lackingLayers says which layers were compared when the run was recorded, and are not now.
func (f *Fixture) lackingLayers(c *judge.Comparison) (out []string) {
	lost, gone := c.Require(f.joined())
	for _, of := range []struct {
		layers    []string
		lack, fix string
	}{
		{lost, "are not in the candidate's run now", "restore " + f.runDir(f.yaml.Replay) + " and the names of fixture.yaml"},
		{gone, "have no golden now", "restore " + f.goldens.Dir()},
	} {
		if n := len(of.layers); n > 0 {
			out = append(out, fmt.Sprintf("%d layers that were compared when the run %s was recorded %s: %s: %s, or if they are no more, "+
				"record it again: go test -parity.record=%[2]s", n, f.yaml.Replay, of.lack, label.Few(of.layers), of.fix))
		}
	}
	return out
}

// recordedNames lists the layers of the run that the fixture names, if it is there.
func (f *Fixture) recordedNames() (names []string) {
	for _, k := range f.recordedRuns() {
		for _, o := range k.Info.Order {
			names = append(names, o.Layer)
		}
	}
	return names
}

// recordedRuns are what is kept of the run that the fixture names; nil if it is not there.
func (f *Fixture) recordedRuns() []*store.Kept {
	if f.yaml.Replay == "" {
		return nil
	}
	x, err := store.ReadIndex(f.runDir(f.yaml.Replay))
	if err != nil {
		return nil
	}
	return x.Runs
}

// joined lists what was compared when the run that the fixture names was recorded; nil where there is
// none.
func (f *Fixture) joined() map[string]dump.Joined {
	all := map[string]dump.Joined{}
	for _, k := range f.recordedRuns() {
		if k.Joined != nil {
			all[k.Info.Case] = k.Joined
		}
	}
	return all
}
