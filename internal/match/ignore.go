package match

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Ignore takes what a pattern matches out of the comparison, on both sides. The pattern is one of
// package label, for a layer ("**.dropout") or for one port of it ("**.self_attn-output_1").
type Ignore struct {
	Pattern string
	Reason  string // required
}

// Ignored is a port that an Ignore took out.
type Ignored struct {
	Golden bool // of the golden side
	Index  int
	Reason string
}

// applyIgnores lists the ports that are ignored, and returns them as a set without reasons, too. Of
// several reasons the first counts.
func (m *matcher) applyIgnores(golden, actual []Port) (all map[Ignored]bool, err error) {
	var errs []error
	all = map[Ignored]bool{}
	for _, ig := range m.opt.Ignore {
		if strings.TrimSpace(ig.Reason) == "" {
			errs = append(errs, fmt.Errorf("match: ignore %q has no reason: say why it is not compared", ig.Pattern))
			continue
		}
		p, err := label.CompilePattern(ig.Pattern)
		if err != nil {
			errs = append(errs, fmt.Errorf("match: ignore %q: %w", ig.Pattern, err))
			continue
		}
		hit := false
		for side, ports := range [][]Port{golden, actual} {
			for i, port := range ports {
				if !p.Match(port.Layer) && !p.Match(port.Label()) {
					continue
				}
				hit = true
				at := Ignored{Golden: side == 0, Index: i}
				if !all[at] {
					all[at] = true
					m.Ignored = append(m.Ignored, Ignored{at.Golden, i, ig.Reason})
				}
			}
		}
		if !hit && !m.opt.Partial {
			layers := collect(slices.Concat(golden, actual), func(p Port) string { return p.Layer })
			errs = append(errs, fmt.Errorf("match: ignore %q matches no layer or port of either run%s",
				ig.Pattern, didYouMean(ig.Pattern, layers)))
		}
	}
	return all, errors.Join(errs...)
}

// didYouMean ends a sentence about a name that is not there.
func didYouMean(name string, candidates []string) string {
	if near, ok := label.Nearest(name, candidates); ok {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}
