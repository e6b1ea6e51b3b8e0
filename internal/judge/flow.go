package judge

import (
	"slices"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// flow returns the golden's dataflow, entry i being that of c.Ports[i]. Bytes are not read for it:
// locate identifies the tensors of a failing run.
func (c *Comparison) flow() *localise.Flow {
	if c.traced == nil {
		entries := make([]localise.Entry, len(c.Ports))
		for i, p := range c.Ports {
			entries[i] = localise.Entry{Key: p.Key, Seq: p.Seq}
		}
		c.traced = localise.NewFlow(entries)
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

// twins finds the candidate's outputs that hold the same bytes as another output of their forward pass although the
// golden's differ. It returns the layer of that other one.
func (c *Comparison) twins() (map[*Port]string, error) {
	var ports []int
	var tensors []*tensor.Tensor
	for i, p := range c.Ports {
		if p.Joined() && p.Judged() && p.recorded != nil {
			ports, tensors = append(ports, i), append(tensors, p.recorded)
		}
	}
	same, err := localise.Identify(c.ctx, tensors)
	if err != nil {
		return nil, err
	}
	type content struct {
		caseName, step string
		bytes          int
	}
	copies := map[content][]int{}
	for n, i := range ports {
		if p := c.Ports[i]; same[n] > 0 {
			k := content{p.Case, p.Step, same[n]}
			copies[k] = append(copies[k], i)
		}
	}
	twins, golden := map[*Port]string{}, c.flow().Entries
	for _, of := range copies {
		for _, i := range of {
			p := c.Ports[i]
			at := slices.IndexFunc(of, func(j int) bool {
				return c.Ports[j].ActualSide.Name != p.ActualSide.Name && golden[i].Same != golden[j].Same
			})
			if at >= 0 {
				twins[p] = c.Ports[of[at]].Layer
			}
		}
	}
	return twins, nil
}
