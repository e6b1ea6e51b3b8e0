package piece

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// Site is the piece of a port that is wrong, with what it takes and what the candidate has in its place.
type Site struct {
	Piece *program.Piece
	Load  replay.Load
	Mode  replay.Mode // in which the run computes
	// Off is how far a result of the piece is off: in units of the limit up to which it would be right, and as
	// relative L2 of the whole.
	Off func(*replay.Array) (units, relative float64)
	// Numbers are those of a result that are compared.
	Numbers func(*replay.Array) []float64
	// Residual is what is too much in each number; nil where there are others.
	Residual func(*replay.Array) []float64
	// AnyOrder says that rows of what it takes are in an order that nobody knows.
	AnyOrder bool
	// Has reports whether the candidate recorded a port in the reference's shape.
	Has func(port int) bool
	// Making cuts what makes a value for an operator out of what the candidate recorded before the port, and Run replays it.
	Making func(id program.ID, at int) *program.Piece
	Run    func(p *program.Piece, load replay.Load) (*replay.Array, error)
}

// Site returns the piece of a wrong port, nil where it was not replayed. load opens what is no record: that of
// the run may be closed. Of a port with [Rows], those of rows are compared alone; nil for all that are its own. With
// without, sources whose rows are in an order that nobody knows are replayed, too.
func (r *Result) Site(port int, load replay.Load, rows []bool, without bool) *Site {
	l, j := r.Local[port], *r.judge
	if l == nil || l.Opaque != "" || !l.Wrong || j.Records[port].Tensor == nil || j.Records[port].Misfit {
		return nil
	}
	run := *j.Run
	run.Load = load
	j.Run, j.memo = &run, map[replayKey][]*replayed{}
	rec := &j.Records[port]
	if rec.Rows != nil && rows != nil {
		some := *rec
		some.Rows = &Rows{Axis: rec.Rows.Axis, Batch: rec.Rows.Batch, Length: rec.Rows.Length, Own: rows}
		rec = &some
	}
	out := maps.Clone(j.excluding)
	if without {
		maps.Copy(out, j.anyOrder)
	}
	have, _ := rec.arrange(rec.Tensor)
	ends := j.tied(port, out)
	arrange := func(a *replay.Array) numbers {
		made, _ := rec.arrange(a)
		return made.nearest(have, ends)
	}
	f := floor(j.Encoding)
	limit := deviation{f, perRow * f}.max(deviation{l.Limit, l.RowLimit})
	var m replay.Mode
	if len(j.schemes) > 0 && !j.schemes[0].scheme.Sized {
		m.Operands = j.schemes[0].scheme.Operands
	}
	var loading sync.Mutex
	has := func(i int) bool { return j.Records[i].Tensor != nil && !j.Records[i].Misfit }
	return &Site{Piece: j.piece(port), Mode: m, AnyOrder: len(j.anyOrder) > 0, Has: has,
		Making: func(id program.ID, at int) *program.Piece { return j.Program.Making(id, at, port, has) },
		Run:    func(p *program.Piece, load replay.Load) (*replay.Array, error) { return replay.Run(j.ctx, p, load, m) },
		Numbers: func(a *replay.Array) []float64 {
			return arrange(a).x
		},
		Residual: func(a *replay.Array) []float64 {
			made := arrange(a)
			if len(made.x) != len(have.x) {
				return nil
			}
			r := make([]float64, len(have.x))
			for i, x := range made.x {
				r[i] = x - have.x[i]
			}
			return r
		},
		Load: func(v *program.Value) (*replay.Array, error) { // for several at a time
			loading.Lock()
			defer loading.Unlock()
			return j.source(v, out, plain, newBasis())
		},
		Off: func(a *replay.Array) (units, relative float64) {
			made := arrange(a)
			if len(made.x) != len(have.x) {
				return inf, inf
			}
			e := difference(made, have, nil)
			return math.Max(e.whole/limit.whole, e.row/limit.row), e.whole
		}}
}

// By judges the same records by another program, with as many ports in the same order. What the golden of the one
// says tells nothing of the other, and is left out.
func (r *Result) By(ctx context.Context, p *program.Program, load replay.Load) (*Result, error) {
	run := *r.judge.Run
	run.Program, run.Load, run.Records = p, load, slices.Clone(run.Records)
	for i := range run.Records {
		run.Records[i].Golden = Golden{Tied: run.Records[i].Golden.Tied}
	}
	return Judge(ctx, &run)
}

// Holding returns a piece that has an operator of the program, what opens its values, and its port; nil for none that
// is replayed.
func (r *Result) Holding(op int, load replay.Load) (*program.Piece, replay.Load, int) {
	j := *r.judge
	run := *j.Run
	run.Load = load
	j.Run, j.memo = &run, map[replayKey][]*replayed{}
	for _, t := range j.order {
		if l := r.Local[t]; l != nil && l.Opaque == "" && l.First <= op && op <= l.Last && slices.Contains(j.piece(t).Origin, op) {
			return j.piece(t), func(v *program.Value) (*replay.Array, error) { return j.source(v, j.excluding, plain, newBasis()) }, t
		}
	}
	return nil, nil, -1
}
