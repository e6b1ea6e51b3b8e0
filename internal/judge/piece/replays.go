package piece

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

var inf = math.Inf(1)

// mode is how a piece is replayed.
type mode struct {
	name    string
	replay  replay.Mode
	sources float64 // by how much of a unit what it takes is shaken
	seed    uint64
}

var (
	plain = mode{name: "plain"}
	wide  = mode{name: "wide", replay: replay.Mode{Wide: true}}

	// reversed has sort and topk give equal numbers in the other order, others has topk choose others of them.
	reversed = mode{name: "reversed", replay: replay.Mode{Ties: true}}
	others   = mode{name: "others", replay: replay.Mode{Choices: true}}
)

// roundings are the modes that make the noise of an encoding.
func roundings(d tensor.DType) []mode {
	switch d {
	case tensor.F16, tensor.BF16:
		return []mode{{name: "nearest", replay: replay.Mode{Round: replay.Nearest, To: d}},
			{name: "zero", replay: replay.Mode{Round: replay.Zero, To: d}}}
	}
	return []mode{{name: "shake", replay: replay.Mode{Round: replay.Shake}}}
}

// shaken is the k-th mode in which the sources are off by a rounding.
func shaken(k int) mode {
	return mode{name: fmt.Sprint("shaken ", k), sources: shakenBy, seed: uint64(k) + 1}
}

// excluded are values that are left out as sources.
type excluded map[program.ID]bool

// basis is what a result hangs on: values that were taken as recorded, and others that were replayed.
type basis struct{ taken, replayed map[program.ID]bool }

func newBasis() *basis { return &basis{map[program.ID]bool{}, map[program.ID]bool{}} }

// holds reports whether the result would be the same with other values left out.
func (b *basis) holds(out excluded) bool {
	for v := range b.replayed {
		if !out[v] {
			return false
		}
	}
	for v := range out {
		if b.taken[v] {
			return false
		}
	}
	return true
}

func (b *basis) add(o *basis) {
	maps.Copy(b.taken, o.taken)
	maps.Copy(b.replayed, o.replayed)
}

type replayKey struct {
	port int
	mode string
}

type replayed struct {
	*basis
	array *replay.Array
	err   error
}

// replay runs the piece of a port in a mode, with some values left out as sources, and adds to b what
// it took. Results are kept.
func (j *judge) replay(port int, out excluded, m mode, b *basis) (*replay.Array, error) {
	if s := j.scheme; s != nil && !s.Sized { // of which more than the size is known
		m.replay.Operands = s.Operands
	}
	k := replayKey{port, m.name}
	if made := j.Records[port].Made; made != nil && m.name == plain.name && j.scheme == nil && j.memo[k] == nil {
		r := &replayed{basis: newBasis()}
		r.array, r.err = made()
		for _, s := range j.piece(port).Sources {
			r.taken[j.Program.Ports[s].Value] = true
		}
		j.memo[k] = append(j.memo[k], r)
	}
	for _, r := range j.memo[k] {
		if r.holds(out) {
			b.add(r.basis)
			return r.array, r.err
		}
	}
	r := &replayed{basis: newBasis()}
	r.array, r.err = j.run(j.piece(port), out, m, r.basis)
	j.memo[k] = append(j.memo[k], r)
	b.add(r.basis)
	return r.array, r.err
}

// run runs a piece in a mode, and adds to b what it took.
func (j *judge) run(p *program.Piece, out excluded, m mode, b *basis) (*replay.Array, error) {
	return replay.Run(j.ctx, p, func(v *program.Value) (*replay.Array, error) { return j.source(v, out, m, b) }, m.replay)
}

// source returns what a piece takes from outside. A value that is left out is replayed by the piece of
// its first port.
func (j *judge) source(v *program.Value, out excluded, m mode, b *basis) (a *replay.Array, err error) {
	switch {
	case v.Record == 0:
		if a, err = j.Load(v); err != nil {
			return nil, err
		}
		return rounded(a, m)
	case out[j.Program.Ports[v.Record-1].Value]:
		value := j.Program.Ports[v.Record-1].Value
		b.replayed[value] = true
		a, err = j.replay(j.Program.Records(value)[0], out, m, b)
	default:
		b.taken[j.Program.Ports[v.Record-1].Value] = true
		a, err = j.record(v.Record-1, out, b)
	}
	if err != nil {
		return nil, err
	}
	if m.sources > 0 && a.DType().IsFloat() {
		return shake(a, unit(j.Encoding)*m.sources, m.seed*31+uint64(v.Record))
	}
	return a, nil
}

// rounded returns a weight as a run that rounds has it.
func rounded(a *replay.Array, m mode) (*replay.Array, error) {
	to := m.replay.To
	if to == tensor.Invalid || !a.DType().IsFloat() || a.DType() == to {
		return a, nil
	}
	narrow, err := replay.Of(to, a.Shape(), a.Floats())
	if err != nil {
		return nil, err
	}
	return replay.Of(a.DType(), a.Shape(), narrow.Floats())
}

// unit is the distance of two numbers of a type beside 1.
func unit(d tensor.DType) float64 { return 2 * d.Epsilon() }

// shake changes each number by up to a part of itself. Whole numbers and infinities stay.
func shake(a *replay.Array, by float64, seed uint64) (*replay.Array, error) {
	x := a.Floats()
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	for i, v := range x {
		if v != math.Trunc(v) && math.Abs(v) < huge {
			x[i] = v * (1 + by*(2*rng.Float64()-1))
		}
	}
	return replay.Of(a.DType(), a.Shape(), x)
}

// complete fills in what the candidate lacks of its records, padding and rows that no forward pass
// recorded, by replaying the pieces in the order of the program.
func (j *judge) complete() error {
	for _, t := range j.order {
		r := &j.Records[t]
		if r.Complete == nil || r.Tensor == nil {
			continue
		}
		made, err := j.replay(t, nil, plain, newBasis())
		if cause := j.ctx.Err(); cause != nil {
			return cause
		}
		if err != nil {
			continue // opaque: it is judged by the golden
		}
		if r.Tensor, err = r.Complete(made); err != nil {
			return err
		}
		j.madeOf[t] = made
	}
	return nil
}

// record returns what the candidate has for a port. What was filled in is made anew where values are
// left out: it hangs on them.
func (j *judge) record(port int, out excluded, b *basis) (*replay.Array, error) {
	r := &j.Records[port]
	if a := j.inOrder[port]; a != nil {
		return a, nil
	}
	if j.madeOf[port] == nil || len(out) == 0 {
		return r.Tensor, nil
	}
	made, err := j.replay(port, out, plain, b)
	if err != nil || made == j.madeOf[port] {
		return r.Tensor, err
	}
	return r.Complete(made)
}
