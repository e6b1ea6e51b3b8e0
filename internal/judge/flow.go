package judge

import (
	"bytes"
	"slices"

	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// flow returns the golden's dataflow, entry i being that of c.Ports[i]. Bytes are not read for it:
// locate identifies the tensors of a failing run.
func (c *Comparison) flow() *trace.Trace {
	if c.traced == nil {
		entries := make([]trace.Entry, len(c.Ports))
		for i, p := range c.Ports {
			entries[i] = trace.Entry{Key: p.Key, Seq: p.Seq}
		}
		c.traced = trace.New(entries)
	}
	return c.traced
}

// identify reads the golden's tensors, so that it is known which of them are one.
func (c *Comparison) identify() error {
	tensors := make([]*tensor.Tensor, len(c.Ports))
	for i, p := range c.Ports {
		tensors[i] = p.entry
	}
	return c.flow().Identify(c.ctx, tensors)
}

// twins finds the candidate's outputs and wrong inputs that hold the same bytes as another output
// although the golden's differ. It returns the layer of that other one, by the index of the port.
func (c *Comparison) twins(flow *trace.Trace) (map[int]string, error) {
	type place struct {
		pass  *trace.Pass
		bytes int
	}
	var ports []int // of all passes
	var tensors []*tensor.Tensor
	for i, p := range c.Ports {
		if p.Joined() && (p.Judged() || !p.Agrees) && p.recorded != nil {
			ports, tensors = append(ports, i), append(tensors, p.recorded)
		}
	}
	identity, err := trace.Identify(c.ctx, tensors)
	if err != nil {
		return nil, err
	}
	copies := map[place][]int{}
	for n, i := range ports {
		if same := identity.Of(tensors[n]); same > 0 {
			k := place{flow.Pass(c.Ports[i].Case, c.Ports[i].Step), same}
			copies[k] = append(copies[k], i)
		}
	}
	differ := func(i, j int) bool {
		same := flow.Entries[i].Same
		return (same == 0 || same != flow.Entries[j].Same) && !equalBytes(c.Ports[i].Golden, c.Ports[j].Golden)
	}
	twins := map[int]string{}
	for _, ports := range copies {
		for _, i := range ports {
			of := slices.IndexFunc(ports, func(j int) bool {
				return c.Ports[j].Judged() && c.Ports[j].ActualSide.Name != c.Ports[i].ActualSide.Name && differ(i, j)
			})
			if of >= 0 {
				twins[i] = c.Ports[ports[of]].Layer
			}
		}
	}
	return twins, nil
}

func equalBytes(a, b *tensor.Tensor) bool {
	x, okX := a.Bytes()
	y, okY := b.Bytes()
	return okX && okY && bytes.Equal(x, y)
}
