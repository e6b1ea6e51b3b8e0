package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
)

// setNeighbours tells each port which ones are its like in the blocks before and after it.
func (c *Comparison) setNeighbours(allow bool) {
	last := map[localise.Key]*Port{} // by case, step and port, the layer without its numbers
	for _, p := range c.Ports {
		p.allowVacuous = allow
		if !p.Joined() || !p.Judged() {
			continue
		}
		kind := p.Key
		kind.Layer = label.Stars(p.Layer)
		if o := last[kind]; o != nil && slices.Equal(o.Actual.Shape(), p.Actual.Shape()) {
			o.neighbours, p.neighbours = append(o.neighbours, p), append(p.neighbours, o)
		}
		last[kind] = p
	}
}

// vacuous says which other tensor keeps limits that someone wrote at source, "" if none does. Unless that
// is allowed it is an error, a [*compare.MisuseError].
func (p *Port) vacuous(c compare.Criteria, source string) (what string, err error) {
	if !p.Judged() || p.printed != nil {
		return "", nil
	}
	var beside []compare.Beside
	for _, o := range p.neighbours {
		beside = append(beside, compare.Beside{Name: "the tensor of " + o.Layer, Tensor: o.Actual})
	}
	what, err = c.Vacuous(p.Golden, p.Actual, compare.References{Float64: p.Golden64, Encoded: p.Encoded, Encoding: p.DType}, beside)
	if err != nil || what == "" || p.allowVacuous {
		return what, err
	}
	return "", &compare.MisuseError{Msg: fmt.Sprintf("the limit of %s is vacuous: %s in place of the golden would pass, too. "+
		"Write a tighter one, or allow it: allow_vacuous in fixture.yaml, --allow-vacuous", source, what)}
}

// allowedVacuous is a note about the limits that were kept and say nothing.
func allowedVacuous(decisions []*Decision) []string {
	var names []string
	for _, j := range decisions {
		if j.vacuous != "" {
			names = append(names, fmt.Sprintf("%s %s (%s)", j.port.Layer, j.port.Port, j.vacuous))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"vacuous limits, which were allowed: what is no golden would pass, too: " + label.Few(names)}
}
