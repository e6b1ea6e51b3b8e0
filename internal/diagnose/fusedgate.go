package diagnose

import (
	"fmt"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// halves gives gate and up of a fused projection as two ports of their own, "….gate_up_proj.gate" and "….gate_up_proj.up", so that what is
// made of one of them has a name. nil for other ports.
func halves(p *Port) []*Port {
	if !fusedGateNames.has(lastPart(p.Layer)) || localise.RoleOf(p.Port) != localise.Output || p.Golden.RowLen()%2 != 0 || p.Golden.RowLen() == 0 {
		return nil
	}
	half := func(t *tensor.Tensor, k int) *tensor.Tensor {
		if t == nil || t.RowLen() != p.Golden.RowLen() {
			return nil
		}
		n := t.RowLen() / 2
		part, err := t.Slice(len(t.Shape())-1, k*n, (k+1)*n)
		if err != nil {
			return nil
		}
		return part
	}
	var out []*Port
	for k, name := range []string{"gate", "up"} {
		q := *p
		q.Layer += "." + name
		q.Golden, q.Actual, q.Injected = half(p.Golden, k), half(p.Actual, k), half(p.Injected, k)
		if q.Golden == nil {
			return nil
		}
		out = append(out, &q)
	}
	return out
}

// part is out = the columns of in from one on: gate or up of a fused projection.
type part struct {
	in, out *value
	from    int
}

func (o *part) inputs() []*value { return []*value{o.in} }

func (o *part) eval(e *evaluation, rows []int) []float64 {
	x := e.get(o.in, rows)
	if x == nil {
		return nil
	}
	out := make([]float64, 0, len(rows)*o.out.width)
	for i := o.from; i < len(x); i += o.in.width {
		out = append(out, x[i:i+o.out.width]...)
	}
	return out
}

// faults are those of the projection, and of what is made of its parts.
func (o *part) faults(*graph, *value) []fault { return nil }

// alternate: gate and up are taken from alternate columns and not from halves.
func (o *part) alternate() fault {
	first := min(o.from, 1)
	return fault{id: "linear/gate-up", text: fmt.Sprintf("%s is taken from every second column of %s, from column %d on", lastPart(o.out.name()), o.in.text(), first),
		eval: func(e *evaluation, rows []int) []float64 {
			x := e.get(o.in, rows)
			if x == nil {
				return nil
			}
			out := make([]float64, 0, len(x)/2)
			for i := first; i < len(x); i += 2 {
				out = append(out, x[i])
			}
			return out
		}}
}
