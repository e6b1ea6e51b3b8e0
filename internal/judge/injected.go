package judge

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
)

// injected is what a port was in the run on golden inputs: an output, or for an input what had been
// computed before it was replaced.
type injected struct {
	result compare.Result
	agrees bool
	// Of outputs: ‖a_injected − g‖, ‖a_standard − a_injected‖ and the cosine of the two errors;
	// hasSplit says that they are known.
	hasSplit                bool
	local, inherited, angle float64

	sides *sides
}

// inject compares the injected run of a case, port by port of the standard comparison.
func (c *Comparison) inject(k Case, opt match.Options) error {
	if k.Injected == nil {
		return nil
	}
	opt.Partial = true
	res, err := k.Match(k.Injected, opt)
	if err != nil {
		return fmt.Errorf("injected run: %w", err)
	}
	for _, rule := range res.Unused {
		c.Note("injected run: " + rule)
	}
	ports := c.byKey()
	for _, pair := range res.Pairs {
		first := k.Golden.Entries[pair.Golden[0]]
		p := ports[k.key(first)]
		isInput := label.IsInput(first.Port)
		if p == nil || pair.Problem != "" || isInput != pair.Computed {
			continue // an input that was replaced is the golden one
		}
		g, err := view(k.Golden, pair.Golden, pair.GoldenView, pair.RowMask)
		if err != nil {
			return err
		}
		a, err := view(k.Injected, pair.Actual, pair.ActualView, pair.RowMask)
		if err != nil {
			return err
		}
		in := &injected{sides: &sides{k.Golden, k.Injected, pair}}
		if in.result, err = compare.Tensors(g, a, compare.Tolerance{}); err != nil {
			return err
		}
		in.agrees = in.result.Agrees(p.Floor.Max(compare.Floor(p.DType)))
		if p.Joined() && !isInput {
			if d, err := compare.Tensors(a, p.Actual, compare.Tolerance{}); err == nil {
				in.split(d.NormDiff, p.Base.Result.NormDiff)
			}
		}
		p.Injected = in
	}
	return nil
}

// split sets the two parts of the standard run's error, e_standard = e_local + e_inherited. Norms
// are not subtracted; the cosine follows from the three of them.
func (in *injected) split(inherited, standard float64) {
	in.hasSplit, in.local, in.inherited = true, in.result.NormDiff, inherited
	if p := in.local * inherited; p > 0 {
		in.angle = math.Max(-1, math.Min(1, (standard*standard-in.local*in.local-inherited*inherited)/(2*p)))
	}
}
