package localise

import (
	"fmt"
	"math"
)

// captured says why a wrong output is an error of the recording; "" if it is none.
//
// Either the reference recorded the same tensor again where it is used, and there the candidate is
// right. Or the candidate wrote the same bytes for two outputs that differ in the reference, while
// what was computed from this one is right.
func (p *pass) captured(i int) string {
	e := &p.events[i]
	if e.Input {
		return ""
	}
	twin := ""
	copies := p.later(i)
	where := copies.used
	if where != nil && (math.IsInf(copies.worst, 1) || jump*copies.worst > e.Error) { // as wrong, whatever its own floor says
		return ""
	}
	if e.Twin != "" {
		twin = fmt.Sprintf("it holds the same bytes as %s, which the reference's does not", e.Twin)
	}
	switch {
	case where != nil && twin != "":
		return fmt.Sprintf("the same tensor agrees as %s of %s, and %s", where.Port, where.Layer, twin)
	case where != nil:
		return fmt.Sprintf("the same tensor agrees as %s of %s", where.Port, where.Layer)
	case twin != "":
		if c := p.enclosing(e.Layer); c != "" && p.right(c) {
			return fmt.Sprintf("%s, and the output of %s agrees", twin, c)
		}
	}
	return ""
}
