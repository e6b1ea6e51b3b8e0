package piece

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// best notes a port whose rows are each a choice of the best scores, in any order, and among equal ones any: no score
// that was left exceeds one that was chosen by more than it moves where the sources are off by a rounding. It notes it in
// the reference's order, so that numbers beside it in another order are not excused.
func (c *comparison) best(wrong map[int]bool) {
	have := c.Records[c.port].Tensor
	shape := have.Shape()
	at := c.choosing(c.Program.Ports[c.port].Value, len(shape))
	if at < 0 {
		return
	}
	s, ok := c.scores(at)
	k := shape[len(shape)-1]
	if !ok || k == 0 || s.rows()*k != have.Len() {
		return
	}
	x, right := have.Floats(), make([]float64, have.Len())
	for i := range s.rows() {
		if ordered := s.best(i, x[i*k:(i+1)*k]); ordered != nil {
			copy(x[i*k:], ordered)
			for n := range k {
				right[i*k+n] = 1
			}
		}
	}
	ordered, err := replay.Of(have.DType(), shape, x)
	is, wrongShape := replay.Of(tensor.F32, shape, right)
	if cmp.Or(err, wrongShape) != nil {
		return
	}
	rows, _ := c.Records[c.port].arrange(is)
	for i := range wrong {
		if slices.Contains(rows.row(i), 0) {
			return
		}
	}
	for t, r := range c.Records { // the choice may be another layer's output, too
		if c.Program.Ports[t].Value == c.Program.Ports[c.port].Value && r.Tensor != nil && slices.Equal(r.Tensor.Floats(), have.Floats()) {
			c.choices[t] = ordered
		}
	}
}

// chosen judges the run once more with choices of the best as they are, where one is wrong: what is made of it then
// tells. Where one is no more than written otherwise, with what stands beside it in that order, it stays so.
func (r *Result) chosen(ctx context.Context) (*Result, error) {
	if !slices.ContainsFunc(slices.Concat(slices.Concat(r.Stretches...), r.Faults), func(t int) bool { return r.judge.choices[t] != nil }) {
		return r, nil
	}
	j := newJudge(ctx, r.judge.Run)
	j.inOrder, j.madeOf = r.judge.choices, r.judge.madeOf
	again, err := j.all()
	if err != nil || cmp.Or(cmp.Compare(len(again.Faults), len(r.Faults)), cmp.Compare(len(again.Stretches), len(r.Stretches))) >= 0 {
		return r, err
	}
	return again, nil
}

// choosing finds the operator topk whose indices along the last of so many axes a value is, cast or not; −1 for none.
func (j *judge) choosing(id program.ID, axes int) int {
	for {
		at := j.Program.Maker(id)
		if at < 0 {
			return -1
		}
		switch o := &j.Program.Ops[at]; {
		case o.Name == "_to_copy":
			id = j.Program.Operands(at)[0]
		case o.Name == "topk" && len(o.Out) == 2 && o.Out[1] == id:
			if dim, is := o.Args.Get("dim").(int); is && dim != -1 && dim != axes-1 || o.Args.Get("largest") == false {
				return -1
			}
			return at
		default:
			return -1
		}
	}
}

// scoresOf cuts what the operator topk chooses from, made of what was recorded before a port.
func (j *judge) scoresOf(at, port int, recorded func(port int) bool) *program.Piece {
	self, _ := j.Program.Ops[at].Args.Get("self").(program.ID)
	return j.Program.Making(self, at, port, recorded)
}

// Chooses reports whether the port is a choice of the best.
func (s *Site) Chooses() bool { return s.choosing() >= 0 }

func (s *Site) choosing() int {
	return s.judge.choosing(s.judge.Program.Ports[s.port].Value, len(s.record.Tensor.Shape()))
}

// OfScores returns the site of a port that is a choice of the best as one of their scores: an edit fits after which no
// score that was left exceeds one that was chosen, in whatever order. It is nil where they cannot be replayed.
func (s *Site) OfScores() *Site {
	shape := s.record.Tensor.Shape()
	of, k := *s, shape[len(shape)-1]
	of.Piece, of.Want = s.judge.scoresOf(s.choosing(), s.port, s.Has), nil
	of.Numbers = func(a *replay.Array) []float64 {
		x := slices.Clone(a.Floats())
		for i, v := range x {
			if math.Abs(v) >= huge { // it is hidden
				x[i] = 0
			}
		}
		return x
	}
	chosen := numbers{s.record.Tensor.Floats(), k}
	index := make([]float64, len(chosen.x))
	for i := range index {
		index[i] = float64(i / k)
	}
	rows, err := replay.Of(tensor.F64, shape, index)
	if err != nil {
		return nil
	}
	own, _ := s.record.arrange(rows)
	plain, err := s.Run(of.Piece, of.Load)
	if err != nil {
		return nil
	}
	parts := lined(plain).parted(k)
	of.Off = func(a *replay.Array) (units, relative float64) {
		scores := lined(a)
		if scores.rows() != chosen.rows() {
			return inf, inf
		}
		var lacks, sizes, n float64
		for i := range own.rows() {
			row := int(own.row(i)[0])
			lacks += lack(scores.row(row), chosen.row(row)) / float64(k)
			for _, v := range scores.row(row) {
				if math.Abs(v) < huge {
					sizes, n = sizes+v*v, n+1
				}
			}
		}
		relative = math.Sqrt(lacks / float64(own.rows()) / (sizes / n))
		units = relative / floor(s.judge.Encoding)
		if !(relative >= 0) || units <= 1 && 2*scores.parted(k) < parts { // of equal scores any choice is the best
			return inf, inf
		}
		return units, relative
	}
	return &of
}

// parted counts the rows whose k largest numbers are larger than all others.
func (n numbers) parted(k int) (rows int) {
	for i := range n.rows() {
		if x := slices.Sorted(slices.Values(n.row(i))); len(x) > k && x[len(x)-k] > x[len(x)-k-1] {
			rows++
		}
	}
	return rows
}

// among tells which of some scores were chosen; ok is false for a place that there is not, or that is chosen twice.
func among(scores, chosen []float64) (is []bool, ok bool) {
	is = make([]bool, len(scores))
	for _, v := range chosen {
		n := int(v)
		if float64(n) != v || n < 0 || n >= len(scores) || is[n] {
			return nil, false
		}
		is[n] = true
	}
	return is, true
}

// lack is by how much the scores that were chosen fall short of the best that was left, squared, in all. One that is hidden
// counts as far below the least that is not.
func lack(scores, chosen []float64) (sum float64) {
	is, ok := among(scores, chosen)
	if !ok {
		return inf
	}
	best, least, size := -inf, inf, 0.0
	for n, v := range scores {
		if !is[n] {
			best = math.Max(best, v)
		}
		if math.Abs(v) < huge {
			least, size = math.Min(least, v), math.Max(size, math.Abs(v))
		} else if math.IsNaN(v) {
			return inf
		}
	}
	for _, v := range chosen {
		if by := best - math.Max(scores[int(v)], least-size); best > -huge && by > 0 {
			sum += by * by
		}
	}
	return sum
}

// scored are the scores of a choice, and how far each row of them moves.
type scored struct {
	numbers
	noise []float64
}

func (c *comparison) scores(at int) (s scored, ok bool) {
	p := c.scoresOf(at, c.port, func(i int) bool { return c.Records[i].Tensor != nil })
	run := func(m mode) (numbers, bool) {
		a, err := c.run(p, nil, m, c.basis)
		if err != nil || len(a.Shape()) == 0 {
			return numbers{}, false
		}
		return numbers{a.Floats(), a.Shape()[len(a.Shape())-1]}, true
	}
	if s.numbers, ok = run(plain); !ok {
		return s, false
	}
	s.noise = make([]float64, s.rows())
	for k := range shakes {
		moved, ok := run(shaken(k))
		if !ok {
			return s, false
		}
		for i := range s.noise {
			for n, v := range s.row(i) {
				if math.Abs(v) < huge {
					s.noise[i] = math.Max(s.noise[i], math.Abs(moved.row(i)[n]-v))
				}
			}
		}
	}
	return s, true
}

// best returns the choice of a row in the order of the scores, equal ones in that of their places; nil if it is not one of
// the best.
func (s scored) best(row int, chosen []float64) []float64 {
	scores, out := s.row(row), slices.Sorted(slices.Values(chosen))
	is, ok := among(scores, chosen)
	if !ok {
		return nil
	}
	least := math.Inf(1)
	for _, v := range out {
		least = math.Min(least, scores[int(v)])
	}
	for n, v := range scores {
		if !is[n] && !(v <= least+2*s.noise[row]) { // each of the two may move
			return nil
		}
	}
	slices.SortStableFunc(out, func(a, b float64) int { return cmp.Compare(scores[int(b)], scores[int(a)]) })
	return out
}
