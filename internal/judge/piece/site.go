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

// Site is the piece of a port that is wrong, for the search of the edit that makes what the candidate has.
type Site struct {
	Search
	// AnyOrder says that rows of what it takes are in an order that nobody knows.
	AnyOrder bool
	judge    *judge
	port     int
	record   *Record
}

// Has reports whether the candidate recorded a port in the reference's shape.
func (s *Site) Has(port int) bool {
	r := &s.judge.Records[port]
	return r.Tensor != nil && !r.Misfit
}

// Making cuts what makes a value for an operator out of what the candidate recorded before the port.
func (s *Site) Making(id program.ID, at int) *program.Piece {
	return s.judge.Program.Making(id, at, s.port, s.Has)
}

// Run replays such a piece.
func (s *Site) Run(p *program.Piece, load replay.Load) (*replay.Array, error) {
	return replay.Run(s.judge.ctx, p, load, s.Mode)
}

// Site returns the piece of a wrong port, nil where nothing says what it should be. load opens what is no record: that of
// the run may be closed. Of a port with [Rows], those of rows are compared alone; nil for all that are its own. With
// without, sources whose rows are in an order that nobody knows are replayed, too.
func (r *Result) Site(port int, load replay.Load, rows []bool, without bool) *Site {
	l, j := r.Local[port], r.judge.reopened(load)
	if l == nil || !l.Wrong || j.Records[port].Tensor == nil || j.Records[port].Misfit {
		return nil
	}
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
	ends := j.tied(port, rec, out)
	arrange := func(a *replay.Array) (made numbers, ok bool) {
		made, _ = rec.arrange(a)
		return made.nearest(have, ends), len(made.x) == len(have.x)
	}
	f := floor(j.Encoding)
	limit := deviation{f, perRow * f}.max(deviation{l.Limit, l.RowLimit})
	s := &Site{AnyOrder: len(j.anyOrder) > 0, judge: j, port: port, record: rec}
	s.Piece = j.piece(port)
	if l.Opaque != "" {
		s.Without = [2]float64{rec.Golden.Error, rec.Golden.Error * f}
	}
	if len(j.schemes) > 0 && !j.schemes[0].scheme.Sized {
		s.Mode.Operands = j.schemes[0].scheme.Operands
	}
	s.Want, s.Numbers = have.x, func(a *replay.Array) []float64 {
		made, _ := arrange(a)
		return made.x
	}
	s.Off = func(a *replay.Array) (units, relative float64) {
		made, ok := arrange(a)
		if !ok {
			return inf, inf
		}
		e := difference(made, have, nil)
		return math.Max(e.whole/limit.whole, e.row/limit.row), e.whole
	}
	var loading sync.Mutex
	s.Load = func(v *program.Value) (*replay.Array, error) { // for several at a time
		loading.Lock()
		defer loading.Unlock()
		return j.source(v, out, plain, newBasis())
	}
	return s
}

// reopened returns a judge of the same run that opens anew what is no record.
func (j *judge) reopened(load replay.Load) *judge {
	k, run := *j, *j.Run
	run.Load = load
	k.Run, k.memo = &run, map[replayKey][]*replayed{}
	return &k
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
	j := r.judge.reopened(load)
	for _, t := range j.order {
		if l := r.Local[t]; l != nil && l.Opaque == "" && l.First <= op && op <= l.Last && slices.Contains(j.piece(t).Origin, op) {
			return j.piece(t), func(v *program.Value) (*replay.Array, error) { return j.source(v, j.excluding, plain, newBasis()) }, t
		}
	}
	return nil, nil, -1
}
