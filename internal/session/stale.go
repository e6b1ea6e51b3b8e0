package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/label"
)

// staleGoldens says what changed in the fixture since its goldens, or the programs that judge alone, were made, of what
// begins with one of the keys, or all. It skips those of cases that the fixture no longer has.
func (f *Fixture) staleGoldens(keys ...string) []string {
	var stale changed
	what := "the goldens %s are stale: %s; renew them: go test ./... -update"
	if f.yaml.Alone {
		what = "the program of case %s is stale: %s; record it again: parity golden update " + f.dir
	}
	for _, k := range f.goldens.Runs() {
		base, ofPath := dump.CutPathCase(k.Info.Case)
		if _, err := f.yaml.Case(base); err != nil && !ofPath || len(k.Info.Order) == 0 && !f.yaml.Alone {
			continue
		}
		name := k.String()
		if f.yaml.Alone {
			name = k.Info.Case
		}
		changes := slices.DeleteFunc(fixture.Changed(k.Info.Inputs, f.yaml.GoldenInputs(k.Variant, base)), func(change string) bool {
			return len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(change, key) })
		})
		stale.add(strings.Join(changes, "; "), name)
	}
	return stale.texts("golden: " + f.goldens.Dir() + ": " + what)
}

// staleRuns says what changed in the fixture since its runs were recorded.
func (f *Fixture) staleRuns() (out []string) {
	var stale changed
	for _, r := range slices.Concat(f.runs, f.injected, f.probes.runs()) {
		if !f.yaml.Wants(r.Info.Case) {
			text := fmt.Sprintf("the recorded run %s has a case %s, which %s does not have: remove it: parity golden prune --apply %s",
				f.yaml.Replay, r.Info.Case, f.yaml.File, f.dir)
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
			continue
		}
		name := r.Info.Case
		if r.Info.Mode == dump.Injected {
			name += " (injected)"
		}
		stale.add(strings.Join(fixture.Changed(r.Info.Inputs, f.runInputs(r.Info)), "; "), name)
	}
	again := "PARITY_REPLAY=DUMP go test -parity.record=" + f.yaml.Replay
	if f.injected != nil {
		again = "go test -parity.run=cpu -parity.mode=both -parity.record=" + f.yaml.Replay
	}
	return slices.Concat(out, stale.texts("the recorded run "+f.yaml.Replay+" of case %s is stale: %s; record it again: "+again))
}

// changed groups what is stale by what changed: most often it is one thing for all.
type changed struct {
	whys []string // in the order in which they came
	of   map[string][]string
}

// add says that something is stale; "" is no reason.
func (c *changed) add(why, what string) {
	if why == "" {
		return
	}
	if c.of == nil {
		c.of = map[string][]string{}
	}
	if c.of[why] == nil {
		c.whys = append(c.whys, why)
	}
	c.of[why] = append(c.of[why], what)
}

// texts are a line for each reason; format takes what is stale, and why.
func (c *changed) texts(format string) (out []string) {
	for _, why := range c.whys {
		out = append(out, fmt.Sprintf(format, label.Few(c.of[why]), why))
	}
	return out
}
