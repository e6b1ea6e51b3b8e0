package judge

import (
	"bytes"
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
	type content struct {
		caseName, step string
		bytes          int
	}
	var ports []*Port
	var tensors []*tensor.Tensor
	for _, p := range c.Ports {
		if p.Joined() && p.Judged() && p.recorded != nil {
			ports, tensors = append(ports, p), append(tensors, p.recorded)
		}
	}
	same, err := localise.Identify(c.ctx, tensors)
	if err != nil {
		return nil, err
	}
	copies := map[content][]*Port{}
	for i, p := range ports {
		if same[i] > 0 {
			k := content{p.Case, p.Step, same[i]}
			copies[k] = append(copies[k], p)
		}
	}
	twins := map[*Port]string{}
	for _, of := range copies {
		for _, p := range of {
			i := slices.IndexFunc(of, func(q *Port) bool {
				return q.ActualSide.Name != p.ActualSide.Name && !equalBytes(p.entry, q.entry) && !equalBytes(p.Golden, q.Golden)
			})
			if i >= 0 {
				twins[p] = of[i].Layer
			}
		}
	}
	return twins, nil
}

func equalBytes(a, b *tensor.Tensor) bool {
	x, _ := a.Copy().Bytes()
	y, _ := b.Copy().Bytes()
	return bytes.Equal(x, y)
}
