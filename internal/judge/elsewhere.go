package judge

import (
	"fmt"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// elsewhere lists what a wrong port may be made of, or have been taken for, though the reference's piece does not take it.
func (r *replayed) elsewhere(site *piece.Site, t int) []edit.Weight {
	before, made := r.before(site, t), r.made(site, t)
	return slices.Concat(made, before, r.beside(site, t), r.remade(site, slices.Concat(made, before)))
}

// before lists what the candidate recorded before a port, the latest first.
func (r *replayed) before(site *piece.Site, t int) (list []edit.Weight) {
	seen := map[program.ID]bool{r.Ports[t].Value: true}
	for i := t - 1; i >= 0 && len(list) < mostBefore; i-- {
		q := &r.Ports[i]
		if !seen[q.Value] && q.Step == r.Ports[t].Step && site.Has(i) {
			seen[q.Value] = true
			list = append(list, r.recordedAt(i))
		}
	}
	return list
}

// beside lists what the candidate recorded shortly after a port, and what is not made of it: the reference may have run it
// first as well.
func (r *replayed) beside(site *piece.Site, t int) (list []edit.Weight) {
	own := r.dependents(r.Ports[t].Value, "")
	parent := label.Parent(r.Ports[t].Layer)
	for i := t + 1; i < min(len(r.Ports), t+1+mostBeside); i++ {
		q := &r.Ports[i]
		if !own[q.Value] && q.Step == r.Ports[t].Step && label.Inside(q.Layer, parent) && site.Has(i) {
			own[q.Value] = true
			list = append(list, r.recordedAt(i))
		}
	}
	return list
}

func (r *replayed) recordedAt(port int) edit.Weight {
	q := &r.Ports[port]
	v := r.Values[q.Value]
	return edit.Weight{Name: q.Layer + "-" + q.Name, Shape: v.Shape, DType: v.DType, Record: port + 1}
}

// dependents are what hangs on a value, or with a layer on what is made within that.
func (r *replayed) dependents(value program.ID, layer string) map[program.ID]bool {
	own := map[program.ID]bool{value: layer == ""}
	for i := range r.Ops {
		if layer != "" && label.Within(r.Ops[i].Layer, layer) || slices.ContainsFunc(r.Ops[i].Operands(), func(id program.ID) bool { return own[id] }) {
			for _, id := range r.Ops[i].Out {
				own[id] = id != program.None
			}
		}
	}
	return own
}

// made lists what the code around a port's layer makes near it without a record: before it, or after it and not of it.
func (r *replayed) made(site *piece.Site, t int) (list []edit.Weight) {
	at := &r.Ports[t]
	layer := ""
	if at.Input { // what else is made of the value is not made by the layer
		layer = at.Layer
	}
	own, pass := r.dependents(at.Value, layer), r.passOf(at.At-1)
	recorded := func(id program.ID) bool { return slices.ContainsFunc(r.Records(id), site.Has) }
	fits := func(shape []int) bool {
		return slices.ContainsFunc(site.Piece.Values, func(v program.Value) bool {
			return slices.Equal(v.Shape, shape) || len(v.Shape) == len(shape) && shape[len(shape)-1] == 1 && slices.Equal(v.Shape[:len(shape)-1], shape[:len(shape)-1])
		})
	}
	for k := range 2 * mostNear {
		i := at.At - 1 - k/2
		if k%2 > 0 {
			i = at.At + k/2
		}
		if i < 0 || i >= len(r.Ops) || !label.Inside(at.Layer, r.Ops[i].Layer) || r.passOf(i) != pass {
			continue
		}
		for _, id := range r.Ops[i].Out {
			if id == program.None || own[id] || recorded(id) || !r.Values[id].DType.IsFloat() || len(list) == mostMade || !fits(r.Values[id].Shape) {
				continue
			}
			v, of := r.Values[id], site.Making(id, i+1)
			if workOf(of.Program) > workOf(site.Piece.Program)+cheapAgain*elements(v.Shape) {
				continue
			}
			list = append(list, edit.Weight{Name: r.madeAt(i), Shape: v.Shape, DType: v.DType, Layer: r.Ops[i].Layer, Code: r.frame(i),
				Made: sync.OnceValues(func() (*replay.Array, error) { return replayable(site.Run(of, site.Load)) })})
		}
	}
	return list
}

// passOf is the forward pass of an operator.
func (r *replayed) passOf(op int) int {
	return slices.IndexFunc(r.Passes, func(p program.Pass) bool { return p.First <= op && op < p.End })
}

// madeAt names what an operator makes.
func (r *replayed) madeAt(op int) string {
	if at := r.frame(op); at != "" {
		return at
	}
	return fmt.Sprintf("the %s of %s", r.Ops[op].Name, r.Ops[op].Layer)
}

// remade lists what a port's sources would be, had they been made of something else: a norm of another sum, say.
func (r *replayed) remade(site *piece.Site, others []edit.Weight) (list []edit.Weight) {
	for _, s := range site.Piece.Sources {
		of := r.Piece(s, site.Has)
		v := r.Values[r.Ports[s].Value]
		if l := r.result.Local[s]; len(of.Ops) == 0 || workOf(of.Program) > cheapAgain*elements(v.Shape) || !v.DType.IsFloat() || l == nil || l.Wrong || l.Opaque != "" {
			continue
		}
		for _, x := range of.Sources {
			given := r.Values[r.Ports[x].Value]
			for _, o := range others {
				if o.Record == x+1 || !slices.Equal(o.Shape, given.Shape) || len(list) == mostRemade {
					continue
				}
				list = append(list, edit.Weight{Name: fmt.Sprintf("%s of %s", r.Ports[s].Layer, o.Name), Shape: v.Shape, DType: v.DType, Layer: label.Parent(r.Ports[s].Layer),
					Code: o.Code, For: s + 1, Made: sync.OnceValues(func() (*replay.Array, error) {
						return replayable(site.Run(of, func(v *program.Value) (*replay.Array, error) {
							switch {
							case v.Record != x+1:
								return site.Load(v)
							case o.Made != nil:
								return o.Made()
							}
							return site.Load(&program.Value{Shape: o.Shape, DType: o.DType, Record: o.Record})
						}))
					})})
			}
		}
	}
	return list
}

// replayable lets what cannot be made be no edit, whatever the reason.
func replayable(a *replay.Array, err error) (*replay.Array, error) {
	if err != nil {
		return nil, &replay.OpaqueError{Reason: err.Error()}
	}
	return a, nil
}
