package edit

import (
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// Both is two edits of a piece together; nil where they change one operator.
func Both(p *program.Piece, a, b *Edit) *Edit {
	moved := func(id program.ID) program.ID { // values that b makes follow those that a makes
		if int(id) >= len(p.Values) {
			id += program.ID(len(a.Patch.Made))
		}
		return id
	}
	e := Edit{Kind: a.Kind, Text: a.Text + " and " + b.Text, Cost: a.Cost + b.Cost, At: slices.Concat(a.At, b.At), Parts: []Edit{*a, *b}}
	e.Patch = replay.Patch{Ops: maps.Clone(a.Patch.Ops), Made: slices.Concat(a.Patch.Made, b.Patch.Made),
		Late: map[program.ID]func() (*replay.Array, error){}}
	for i, ops := range b.Patch.Ops {
		if _, ok := e.Patch.Ops[i]; ok && i != replay.Outside {
			return nil
		}
		for _, o := range ops {
			o.Args, o.Out = o.Args.Map(moved), slices.Clone(o.Out)
			for k, id := range o.Out {
				o.Out[k] = moved(id)
			}
			e.Patch.Ops[i] = append(slices.Clip(e.Patch.Ops[i]), o)
		}
	}
	maps.Copy(e.Patch.Late, a.Patch.Late)
	for id, f := range b.Patch.Late {
		e.Patch.Late[moved(id)] = f
	}
	return &e
}
