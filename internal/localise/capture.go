package localise

import "fmt"

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
	used, twin := 0, ""
	var where *event
	for _, j := range p.Copies(i) {
		if o := &p.events[j]; j > i && o.Joined {
			if !o.Agrees || jump*o.Error > e.Error { // as wrong, whatever its own floor says
				return ""
			}
			if used++; where == nil || !where.Input && o.Input {
				where = o
			}
		}
	}
	if e.Twin != "" {
		twin = fmt.Sprintf("it holds the same bytes as %s, which the reference's does not", e.Twin)
	}
	switch {
	case used > 0 && twin != "":
		return fmt.Sprintf("the same tensor agrees as %s of %s, and %s", where.Port, where.Layer, twin)
	case used > 0:
		return fmt.Sprintf("the same tensor agrees as %s of %s", where.Port, where.Layer)
	case twin != "":
		if c := p.enclosing(e.Layer); c != "" && p.right(c) {
			return fmt.Sprintf("%s, and the output of %s agrees", twin, c)
		}
	}
	return ""
}
