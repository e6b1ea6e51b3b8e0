package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// printed is a pair of which a log shows only some values, rounded to decimals. What it shows can
// tell that something is wrong, never that all is right.
type printed struct {
	known        []int // row-major element numbers that both sides show
	n            int   // of so many
	golden       tensor.DType
	actual       tensor.DType
	atol, digits float64 // what printing hides: absolute, and relative to the value
}

// printedOf returns nil where both sides were dumped.
func printedOf(k Case, pair match.Pair) (p *printed) {
	for _, e := range []dump.Entry{k.Golden.Entries[pair.Golden[0]], k.Actual.Entries[pair.Actual[0]]} {
		if e.Printed == nil {
			continue
		}
		if p == nil {
			p = &printed{known: e.Printed.Known}
		}
		p.known = slices.DeleteFunc(slices.Clone(p.known), func(i int) bool {
			_, both := slices.BinarySearch(e.Printed.Known, i)
			return !both
		})
		if half := math.Pow(10, -float64(e.Printed.Decimals)) / 2; e.Printed.Decimals > 0 && e.Printed.Relative {
			p.digits += half
		} else if e.Printed.Decimals > 0 {
			p.atol += half
		}
	}
	return p
}

// gather replaces the tensors of a port by the values that are known on both sides.
func (p *printed) gather(port *Port, pair match.Pair) error {
	p.n, p.golden, p.actual = port.Golden.Len(), port.Golden.DType(), port.Actual.DType()
	for _, v := range []layout.View{pair.GoldenView, pair.ActualView} {
		for _, op := range v {
			if op.Kind != layout.Reshape && !p.whole() {
				port.Problem = fmt.Sprintf("a log shows %d of %d values, and cannot be viewed by %s: dump the tensor to a file", len(p.known), p.n, v)
				return nil
			}
		}
	}
	for _, t := range []**tensor.Tensor{&port.Golden, &port.Actual} {
		values := make([]float64, len(p.known))
		for i, at := range p.known {
			values[i] = (*t).At(at)
		}
		var err error
		if *t, err = tensor.Of(values, len(values)); err != nil {
			return err
		}
	}
	return nil
}

func (p *printed) whole() bool { return len(p.known) == p.n }

// criteria allows for the decimals that were not printed, besides what the types are allowed. Where
// a log has the digits of every value, they are judged together, as a tensor is: a value near zero
// is noise to the last digit.
func (p *printed) criteria(d tensor.DType) compare.Criteria {
	limit := compare.Floor(d).RowRelL2 + p.digits
	if p.atol == 0 && p.whole() {
		return compare.Criteria{compare.RelL2: limit}
	}
	return compare.Criteria{compare.Atol: p.atol, compare.Rtol: limit}
}

func (p *printed) text() string {
	return fmt.Sprintf("a log shows %d of %d values", len(p.known), p.n)
}
