package judge

import (
	"bytes"
	"hash/maphash"

	"github.com/goparity/goparity/internal/each"
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
	twins := map[int]string{}
	seed := maphash.MakeSeed()
	for _, ports := range copies {
		if len(ports) < 2 {
			continue
		}
		contents := make([]golden, len(ports))
		err := each.Do(c.ctx, len(ports), func(n int) error {
			i := ports[n]
			contents[n] = golden{same: flow.Entries[i].Same, port: i}
			if data, ok := c.Ports[i].Golden.Bytes(); ok {
				contents[n].hash, contents[n].port = maphash.Bytes(seed, data), -1
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		few := c.fewOfEach(ports, contents)
		for n, i := range ports {
			for _, m := range few {
				if j := ports[m]; c.Ports[j].ActualSide.Name != c.Ports[i].ActualSide.Name && contents[n].differs(contents[m]) {
					twins[i] = c.Ports[j].Layer
					break
				}
			}
		}
	}
	return twins, nil
}

// golden is the content of a golden tensor.
type golden struct {
	same int    // trace.Entry.Same
	hash uint64 // of its bytes
	port int    // where it has no bytes in order, so that it is like no other; else −1
}

func (g golden) differs(o golden) bool {
	return (g.same == 0 || g.same != o.same) && (g.hash != o.hash || g.port != o.port)
}

// fewOfEach returns the indices of the first two outputs of each content that were joined with
// different tensors of the candidate: a twin of any port is among them.
func (c *Comparison) fewOfEach(ports []int, contents []golden) (few []int) {
	first, second := map[golden]string{}, map[golden]bool{}
	for n, i := range ports {
		if !c.Ports[i].Judged() {
			continue
		}
		name := c.Ports[i].ActualSide.Name
		switch known, ok := first[contents[n]]; {
		case !ok:
			first[contents[n]] = name
		case known == name || second[contents[n]]:
			continue
		default:
			second[contents[n]] = true
		}
		few = append(few, n)
	}
	return few
}

func equalBytes(a, b *tensor.Tensor) bool {
	x, okX := a.Bytes()
	y, okY := b.Bytes()
	return okX && okY && bytes.Equal(x, y)
}
