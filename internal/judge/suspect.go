package judge

import (
	"fmt"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// suspect is a layer of each side that may be one, in one case.
type suspect struct {
	Case
	match.Suspect
}

// lookalike is one of them whose outputs differ.
type lookalike struct {
	golden, candidate string
	error             float64 // relative L2 of the worst row
	times             int     // blocks and cases in which it is so
}

// String has the line to paste.
func (l *lookalike) String() string {
	golden, candidate := l.golden, l.candidate
	if l.times > 1 {
		golden, candidate = label.Stars(golden), label.Stars(candidate)
	}
	return fmt.Sprintf("%s of the golden and %s of the candidate stand in one place and differ (rel. L2 %.2g): if they are one layer, "+
		"join them in fixture.yaml: names: [{golden: %q, candidate: %q}]; if not, ignore both, with the reason",
		l.golden, l.candidate, l.error, golden, candidate)
}

// compareSuspects keeps those of the layers that may be one whose outputs differ. Nothing of this
// counts as compared.
func (c *Comparison) compareSuspects(opt Options) error {
	found := map[[2]string]*lookalike{} // by what they look like in any block
	of := map[string]*references{}      // by case
	for _, s := range c.suspects {
		if of[s.Name] == nil {
			of[s.Name] = s.references()
		}
		error, err := s.differ(opt, of[s.Name], c.encodings[s.Name].dtype)
		if err != nil {
			return err
		}
		if error == 0 {
			continue
		}
		look := [2]string{label.Stars(s.Suspect.Golden), label.Stars(s.Candidate)}
		if found[look] == nil {
			found[look] = &lookalike{golden: s.Suspect.Golden, candidate: s.Candidate, error: error}
			c.lookalikes = append(c.lookalikes, found[look])
		}
		found[look].times++
	}
	return nil
}

// differ returns by how much the outputs differ in the first pass in which they do: the relative L2
// of the worst row; 0 if they agree.
func (s *suspect) differ(opt Options, of *references, asked tensor.DType) (float64, error) {
	for _, pair := range s.Pairs {
		p, err := newPort(s.Case, pair, of)
		if err != nil {
			return 0, fmt.Errorf("case %s: %w", s.Name, err)
		}
		if p.measure(opt, asked); p.Err == nil && !p.passes() {
			return worst(p.Base.Result), nil
		}
	}
	return 0, nil
}
