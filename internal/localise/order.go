package localise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// rivals lists the layers that may have been wrong before event i, where the order of execution is
// not known: their outputs differ and none of their inputs does, or an input differs that nothing
// recorded made, and nothing tells that they ran later. There is none if i is known to be first:
// its inputs agree, or it is wrong on the golden inputs.
func (p *Pass) rivals(i int) (layers []string) {
	e := &p.Events[i]
	switch j := p.Producer(i); {
	case !p.flow.Unordered[p.Case], e.Alone != nil && !e.Alone.Agrees, e.Input && j >= 0 && p.Events[j].known(),
		!e.Input && slices.ContainsFunc(p.of(e.Layer, true), func(in *Event) bool { return in.Joined }):
		return nil
	}
	for j := range p.Events {
		o := &p.Events[j]
		if !o.differs() || slices.Contains(layers, o.Layer) || label.Ordered(e.Layer, o.Layer) {
			continue
		}
		if o.Input && p.Producer(j) < 0 || !o.Input && !slices.ContainsFunc(p.of(o.Layer, true), (*Event).differs) {
			layers = append(layers, o.Layer)
		}
	}
	return layers
}

// unplaced returns the verdict where event i and its rivals differ and any of them may have been
// the first. The frontier has those before which no other is known to have run.
func (p *Pass) unplaced(i int, rivals []string) *Verdict {
	v := &Verdict{Kind: KindUnordered, at: i, Frontier: label.Unordered(append([]string{p.Events[i].Layer}, rivals...))}
	v.Text = fmt.Sprintf("the order of execution is not known, so any of %s may be the first that is wrong: write the names, one a line and in the order of "+
		"execution, into tensor_names.txt of the reference's folder", strings.Join(v.Frontier[:min(6, len(v.Frontier))], ", "))
	return v
}
