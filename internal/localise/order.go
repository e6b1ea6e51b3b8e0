package localise

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// rivals lists the layers that may have been wrong before event i, where the order of execution is
// not known: their outputs differ and none of their inputs does, or an input differs that nothing
// recorded made, and nothing tells that they ran later. There is none if i is known to be first:
// its inputs agree, or it is wrong on the golden inputs.
func (p *pass) rivals(i int) (layers []string) {
	e := &p.events[i]
	if !p.run.Unordered[p.Case] || e.Alone != nil && !e.Alone.Agrees {
		return nil
	}
	if j := p.Producer(i); e.Input && j >= 0 && p.events[j].known() {
		return nil
	}
	if !e.Input && p.sides[1][e.Layer].joined > 0 {
		return nil
	}
	seen := map[string]bool{}
	for j := range p.events {
		o := &p.events[j]
		if !o.differs() || seen[o.Layer] || label.Ordered(e.Layer, o.Layer) {
			continue
		}
		if o.Input && p.Producer(j) < 0 || !o.Input && p.sides[1][o.Layer].wrong == 0 {
			seen[o.Layer] = true
			layers = append(layers, o.Layer)
		}
	}
	return layers
}

// unplaced returns the verdict where event i and its rivals differ and any of them may have been
// the first. The frontier has those before which no other is known to have run.
func (p *pass) unplaced(i int, rivals []string) *Verdict {
	e := &p.events[i]
	v := &Verdict{Kind: KindUnordered, at: i, Frontier: label.Unordered(append([]string{e.Layer}, rivals...))}
	v.Text = fmt.Sprintf("the order of execution is not known, so any of %s may be the first that is wrong: write the names, one a line and in the order of "+
		"execution, into tensor_names.txt of the reference's folder", strings.Join(v.Frontier[:min(6, len(v.Frontier))], ", "))
	return v
}
