// Package piece judges a run by the reference's own program, piece by piece: the operators between a
// recorded tensor and those before it are replayed on the candidate's own tensors, and the result is
// held against what the candidate has there.
//
//	local error  e = ‖replayed − recorded‖ / ‖recorded‖, of the tensor and of its worst row
//	noise        n: how far the result moves when every result is rounded as the run rounds
//	             n64: how far it is from the same piece in float64
//	wrong        e > max(3 n, 4 n64, floor), or the same of a row with 3 floor
//
// A piece that is wrong is where the candidate computes something else. A stretch is a set of wrong
// ports that, all left out as sources, leave everything after them right: another way to write the
// same. What cannot be replayed is opaque, and judged by the golden where its sources agree with that.
// Of a wrong piece [Find] searches for the edit that makes what the candidate has.
package piece

import (
	"context"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// Run is what a candidate recorded, beside the program of the reference.
type Run struct {
	Program  *program.Program
	Records  []Record     // by port of the program
	Encoding tensor.DType // in which the run computes
	// Load returns a value from outside that is no record: a weight, a constant or an input of the
	// model. Its error says why the pieces that need it cannot be replayed.
	Load replay.Load
}

// Record is what the candidate has for a port.
type Record struct {
	// Tensor is in the reference's shape; nil where the candidate has none.
	Tensor *replay.Array
	// Misfit says that the candidate has the port in a shape that is not the reference's: it is wrong,
	// and no source.
	Misfit bool
	// Source says that the tensor is not judged: it is a source alone.
	Source bool
	Golden Golden
	// Lines are those along the last axis that are compared; nil for all. The others are padding.
	Lines []bool
	// Rows are those of a tensor that was laid out of several forward passes; nil if it is whole.
	Rows *Rows
	// Made returns what its piece makes of the records before it, where that is known already; nil where not.
	Made func() (*replay.Array, error)
	// Complete puts what the candidate has into what is replayed; nil if nothing lacks.
	Complete func(replayed *replay.Array) (*replay.Array, error)
}

// Golden is how a tensor compares with the golden.
type Golden struct {
	Known  bool    // there is one
	Agrees bool    // within the noise floor
	Error  float64 // in noise floors
	Tied   bool    // it hangs on a choice that may come either way: what is made of it is not judged
	// Measured says that the floor is what the encoding costs the reference, and not a default.
	Measured bool
}

// Rows says which rows of a record are the candidate's, where its forward passes were laid out as
// one. A row is a position of a sequence: of a tensor [B, …, L, …] with L at Axis, or [B·L·m, …] if
// Axis is 0.
type Rows struct {
	Axis   int
	Batch  int
	Length int
	Own    []bool // Batch × Length: it is compared
}

// Local is what the replay of a piece says of its port.
type Local struct {
	Error, RowError float64 // of the tensor, of its worst row
	Noise, RowNoise float64
	Limit, RowLimit float64 // 0 where Error is within the floor: the noise was not needed
	Wrong           bool
	Larger          float64 // by which part of itself it is larger throughout, in 16 bits; 0 for no more than rounding makes
	Opaque          string  // why it was not replayed; then Wrong is what the golden says
	Tied            bool    // its rows are in an order that equal numbers do not tell, or a choice went another way: it is not judged
	AnyOrder        bool    // tied, and no more than the order of its rows: what they are is right
	Drawn           bool    // it hangs on random numbers that the reference drew: it is not judged
	Unjudged        bool    // opaque, and the golden does not tell either
	Sources         []int   // ports that it is made of
	First, Last     int     // operators of the program; First > Last for none
	Rows            []int   // wrong rows, of Rows

	lines  []int // wrong ones along the last axis, where there are no Rows
	beside []int // ports beside it that it is right by: scores, of a choice
}

// Result is what replay says of a run.
type Result struct {
	Local     map[int]*Local // by port of the program that the candidate has
	Faults    []int          // ports that are wrong and in no stretch, in order
	Stretches [][]int        // other ways to write the same
	judge     *judge
	Precision string // of products, where one rounding of their operands explains the run; else ""
}

// Judge replays the pieces of a run. The result does not depend on the number of cores.
func Judge(ctx context.Context, r *Run) (*Result, error) {
	j := newJudge(ctx, r)
	if err := j.complete(); err != nil {
		return nil, err
	}
	result, err := j.all()
	if err != nil {
		return nil, err
	}
	return result.chosen(ctx)
}

// all judges all ports.
func (j *judge) all() (*Result, error) {
	for _, t := range j.order {
		l := j.look(t, nil)
		if j.ctx.Err() != nil {
			return nil, context.Cause(j.ctx)
		}
		l = j.ordered(t, l)
		j.local[t] = l
		for _, s := range slices.Concat(l.Sources, l.beside) {
			if v := j.Program.Ports[s].Value; v != j.Program.Ports[t].Value {
				j.users[v] = append(j.users[v], t)
			}
		}
	}
	j.precision()
	return j.stretches()
}
