package piece

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Search is a piece that does not make what the candidate has.
type Search struct {
	Piece   *program.Piece
	Load    replay.Load
	Mode    replay.Mode   // in which the run computes
	Weights []edit.Weight // of the model, for those that may be read in place of others
	Fed     *edit.Fed     // the forward pass that is wrong; nil where passes were not laid out as one
	// Known has the keys of edits that were proven in other layers: one of them that fits here is the cause, too.
	// With KnownOnly no other is tried.
	Known     []string
	KnownOnly bool
	// Left is the work that is left for all places but the first of a run, which take it from there; nil for the first.
	Left *float64
	// Without is how far the golden says that the candidate is off, as Off, where the piece cannot be replayed whole: edits
	// that need no more than what can be are found all the same. 0 for none: then that is an error.
	Without [2]float64
	// Off is how far a result is off: in units of the limit up to which it is right, and as relative L2.
	Off func(*replay.Array) (units, relative float64)
	// Numbers are those of a result that are compared, nil where it has others; Want is what they should be.
	Numbers func(*replay.Array) []float64
	Want    []float64
}

// Fit is an edit that makes what the candidate has, or nearly.
type Fit struct {
	edit.Edit
	Off, Relative float64 // as Search.Off
	Overflows     bool    // its result has infinities
	made          []float64
}

// Found is what the search for an edit found.
type Found struct {
	Off, Relative float64 // of the piece as it is
	Fits          []Fit   // the simplest first; one function once
	Also          []Fit   // edits that are the same function as Fits[0] there
	Near          *Fit    // what leaves the least where none fits; nil if that is not clearly less
	Proven        bool
	Tried         int
	Listed        int
	Skipped       int  // how often a kind of edits could not be listed
	Pairs         int  // that were tried, each edit with one that explains a part
	Twin          bool // it is an edit that was known
	piece         *program.Piece
}

// Find tries the edits of a piece, the simplest first, until its work is spent, or all are tried that are about
// as simple as the first that fits. The error is that of the piece itself, or ctx's cause; an edit that cannot
// be run does not fit.
func Find(ctx context.Context, s *Search) (*Found, error) {
	f := &finder{ctx: ctx, s: s, r: &Found{piece: s.Piece}}
	return f.r, replay.Attempt(f.find)
}

func (f *finder) find() (err error) {
	s, r := f.s, f.r
	f.base, err = replay.NewBase(f.ctx, s.Piece, s.Load, s.Mode)
	f.partly = err != nil && s.Without[0] > 0 && context.Cause(f.ctx) == nil
	switch {
	case f.partly:
		r.Off, r.Relative = s.Without[0], s.Without[1]
	case err != nil:
		return err
	default:
		r.Off, r.Relative = s.Off(f.base.Value(s.Piece.Out))
	}
	if !(r.Off > 1) {
		return nil
	}
	f.limit = math.Min(1, most*r.Off)
	f.work = f.allowed(min(max(leastWork, runs*f.base.Whole()), mostWork))
	f.best = Fit{Off: r.Off}
	edits, err := f.listed()
	if err != nil || r.Twin {
		return err
	}
	if err := f.solveOnce(); err != nil {
		return err
	}
	if err := f.pairs(edits); err != nil {
		return err
	}
	r.decide()
	r.Proven = r.Proven && !(f.partly && f.foldable())
	r.Twin = r.Proven && f.knownFirst() // its numbers were solved again
	if len(r.Fits) == 0 && f.best.Off*nearer <= r.Off && !f.partly {
		r.Near = &f.best
	}
	return nil
}

// finder is the search at one place.
type finder struct {
	ctx   context.Context
	s     *Search
	base  *replay.Base
	r     *Found
	limit float64                // up to which an edit fits
	work  float64                // that is left
	need  map[*edit.Edit]float64 // the work of those that are listed
	best  Fit
	near  []Fit // edits that leave little enough for another to explain
	// solving was done, or is not asked for.
	solved bool
	partly bool // the piece cannot be replayed whole
}

// foldable reports whether the first fit is about no more than factors and sums with weights that are not at hand: a run that
// has them folded into what follows has the same there.
func (f *finder) foldable() bool {
	return !slices.ContainsFunc(f.r.Fits[0].At, func(i int) bool {
		o := &f.s.Piece.Ops[i]
		return o.Name != "mul" && o.Name != "add" || !slices.ContainsFunc(o.Operands(), func(id program.ID) bool {
			return f.s.Piece.Values[id].Weight != "" && f.base.Value(id) == nil
		})
	})
}

// known reports whether an edit is one that was proven in another layer.
func (f *finder) known(e *edit.Edit) bool {
	return len(f.s.Known) > 0 && slices.Contains(f.s.Known, edit.Key(f.s.Piece, *e))
}

// knownFirst puts a known edit of the function that was proven first, and reports whether there is one.
func (f *finder) knownFirst() bool {
	if f.known(&f.r.Fits[0].Edit) {
		return true
	}
	i := slices.IndexFunc(f.r.Also, func(x Fit) bool { return f.known(&x.Edit) })
	if i < 0 {
		return false
	}
	f.r.Fits[0], f.r.Also[i] = f.r.Also[i], f.r.Fits[0]
	return true
}

// listed tries the edits that can be listed, and returns them in that order.
func (f *finder) listed() ([]*edit.Edit, error) {
	var only []string
	if f.s.KnownOnly {
		only = f.s.Known
	}
	edits, skipped := edit.List(f.base, f.s.Weights, f.s.Fed, only...)
	f.r.Listed, f.r.Skipped = len(edits), skipped
	var byWork []*edit.Edit
	for i := range edits {
		byWork = append(byWork, &edits[i])
	}
	if f.s.KnownOnly {
		twin := slices.IndexFunc(byWork, f.known)
		byWork = byWork[max(twin, 0):][:min(twin+1, 1)]
	}
	f.need = make(map[*edit.Edit]float64, len(byWork))
	all := 0.0
	for _, e := range byWork {
		f.need[e] = f.base.Work(e.Patch)
		all += f.need[e]
	}
	rank := func(e *edit.Edit) int {
		if e.Kind == "rounding" && f.r.Relative < small {
			return roundingRank
		}
		return e.Cost
	}
	slices.SortStableFunc(byWork, func(a, b *edit.Edit) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(f.need[a], f.need[b])) })
	if all > f.work {
		f.inTurn(byWork, rank)
	}
	if twin := slices.IndexFunc(byWork, f.known); twin >= 0 && !f.s.KnownOnly {
		byWork = slices.Insert(byWork, 0, byWork[twin])
	}
	tried := byWork
	for len(byWork) > 0 {
		n := 1 // those that are tried at a time
		for n < min(len(byWork), window) && rank(byWork[n]) == rank(byWork[0]) {
			n++
		}
		some := byWork[:n]
		byWork = byWork[n:]
		if all > f.work && rank(some[0]) > beforeSolved { // they are more than can be tried
			if err := f.solveOnce(); err != nil {
				return nil, err
			}
		}
		if len(f.r.Fits) > 0 && rank(some[0]) > rank(&f.r.Fits[0].Edit)+classes {
			break
		}
		if _, err := f.try(some...); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(f.r.Fits, func(x Fit) bool { return f.known(&x.Edit) }); i >= 0 {
			f.r.Fits, f.r.Proven, f.r.Twin = f.r.Fits[i:i+1], true, true
			return nil, nil
		}
	}
	return tried, nil
}

// inTurn puts edits of one rank in an order in which those of each kind come in turn: of a large piece, one kind alone may
// have more than can be tried.
func (f *finder) inTurn(edits []*edit.Edit, rank func(*edit.Edit) int) {
	type family struct {
		rank int
		kind string
	}
	seen, nth := map[family]int{}, make(map[*edit.Edit]int, len(edits))
	for _, e := range edits {
		of := family{rank(e), e.Kind}
		nth[e] = seen[of]
		seen[of]++
	}
	slices.SortStableFunc(edits, func(a, b *edit.Edit) int { return cmp.Or(rank(a)-rank(b), nth[a]-nth[b]) })
}

// solveOnce looks for edits that are made of what the candidate has, where none fits so far.
func (f *finder) solveOnce() error {
	if f.solved || f.partly || f.s.KnownOnly || len(f.r.Fits) > 0 {
		return nil
	}
	f.solved = true
	return f.solve()
}

// try runs edits, several at a time, and keeps those that fit, and reports whether one does. What fits hangs on no clock
// and no number of processors: the work is counted before.
func (f *finder) try(edits ...*edit.Edit) (fit bool, err error) {
	edits = slices.DeleteFunc(slices.Clone(edits), func(e *edit.Edit) bool { return !f.pay(e) })
	fits, made := make([]Fit, len(edits)), make([]*replay.Array, len(edits))
	err = vec.Each(f.ctx, len(edits), func(i int) (err error) {
		if made[i], err = f.run(edits[i]); made[i] == nil || err != nil {
			return err
		}
		fits[i].Edit = *edits[i]
		if fits[i].Off, fits[i].Relative = f.s.Off(made[i]); !(fits[i].Off <= f.limit) {
			made[i] = nil
		}
		return nil
	})
	if err != nil {
		return false, cmp.Or(context.Cause(f.ctx), err)
	}
	for i, x := range fits {
		switch {
		case x.Patch.Ops == nil: // it cannot be run
		case made[i] != nil:
			x.made = f.s.Numbers(made[i])
			x.Overflows = slices.ContainsFunc(x.made, func(v float64) bool { return math.IsInf(v, 0) }) || x.To == tensor.F16 && f.exceeds(x.At, mostF16)
			f.r.Fits = append(f.r.Fits, x)
			fit = true
		case x.Off*clearly <= f.r.Off && len(x.Parts) == 0:
			f.near = append(f.near, x)
		}
		if x.Patch.Ops != nil && x.Off < f.best.Off {
			f.best = x
		}
	}
	return fit, nil
}

// exceeds reports whether operators of the piece make numbers beyond a limit.
func (f *finder) exceeds(at []int, limit float64) bool {
	return slices.ContainsFunc(at, func(i int) bool {
		out := f.s.Piece.Ops[i].Out
		if len(out) == 0 || out[0] == program.None || f.base.Value(out[0]) == nil {
			return false
		}
		return slices.ContainsFunc(f.base.Value(out[0]).Floats(), func(v float64) bool { return math.Abs(v) > limit })
	})
}

// Compared is how many numbers are.
func (f *Fit) Compared() int { return len(f.made) }

// allowed is how much of some work is left for the place.
func (f *finder) allowed(work float64) float64 {
	if f.s.Left == nil || f.s.KnownOnly {
		return work
	}
	return min(work, *f.s.Left)
}

// pay takes the work of an edit from what is left, and reports whether it is as much.
func (f *finder) pay(e *edit.Edit) bool {
	need, ok := f.need[e]
	if !ok {
		need = f.base.Work(e.Patch)
	}
	if need > f.work {
		return false
	}
	f.work -= need
	if f.s.Left != nil {
		*f.s.Left -= need
	}
	f.r.Tried++
	return true
}

// run returns what the piece makes with an edit; nil where it cannot be run.
func (f *finder) run(e *edit.Edit) (*replay.Array, error) {
	a, err := f.base.Run(e.Patch)
	if _, opaque := errors.AsType[*replay.OpaqueError](err); opaque || f.partly && context.Cause(f.ctx) == nil {
		return a, nil
	}
	return a, err
}

// decide puts the fits in order and says whether the first is proven: no other function does as well.
func (r *Found) decide() {
	if len(r.Fits) == 0 {
		return
	}
	least := slices.MinFunc(r.Fits, func(a, b Fit) int { return cmp.Compare(a.Off, b.Off) })
	near := math.Max(rivals*least.Off, exact)
	rivals := slices.DeleteFunc(slices.Clone(r.Fits), func(f Fit) bool { return f.Off > near })
	same := vec.AllSame(least.made)
	slices.SortStableFunc(rivals, func(a, b Fit) int {
		if same && (a.Weight == "") != (b.Weight == "") { // many things make zero: a weight that was not loaded is the likeliest
			return strings.Compare(b.Weight, a.Weight)
		}
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(len(b.At), len(a.At)))
	})
	r.Fits = rivals[:1:1]
	for _, f := range rivals[1:] {
		limit := alike
		if g := rivals[0]; f.Fitted && g.Fitted || f.Kind == "table" && g.Kind == f.Kind && f.Number == g.Number { // as far as numbers are found, and rounded
			limit = alikeFitted
		}
		if vec.Relative(f.made, rivals[0].made) <= limit {
			r.Also = append(r.Also, f)
		} else {
			r.Fits = append(r.Fits, f)
		}
	}
	places, rounds := map[int]bool{}, true // of the simplest edits: the operators that they begin at, and whether all round to one type
	for _, f := range append(r.Fits[:1:1], r.Also...) {
		if f.Cost == r.Fits[0].Cost {
			places[edit.Root(r.piece, slices.Concat(f.At, []int{-1})[0])] = true
			rounds = rounds && alikeRounded(f, r.Fits[0])
		}
	}
	one := len(places) <= mostPlaces || rounds // whichever it is, that is the cause
	others := slices.ContainsFunc(r.Fits[1:], func(f Fit) bool { return f.Cost <= r.Fits[0].Cost+1 && !alikeRounded(f, r.Fits[0]) })
	r.Proven = !others && one && !r.saturates() && !vec.AllSame(r.Fits[0].made)
}

// alikeRounded reports whether two edits differ in no more than where they round, or in whether a table is rounded after it
// was changed.
func alikeRounded(a, b Fit) bool {
	_, x, ok := strings.Cut(a.Text, ": ")
	_, y, _ := strings.Cut(b.Text, ": ")
	return a.Kind == b.Kind && (a.Kind == "rounding" && a.To == b.To || a.Kind == "table" && ok && x == y)
}

// AlsoAt lists the operators of the edits that are as simple as the first and the same function there.
func (r *Found) AlsoAt() (at []int) {
	for _, f := range r.Also {
		if f.Cost == r.Fits[0].Cost {
			at = append(at, f.Places()...)
		}
	}
	return at
}

// saturates reports whether quite other numbers do the same in one place: then it is not the number that explains
// the error, but that something becomes too large to matter.
func (r *Found) saturates() bool {
	n := r.Fits[0].Number
	return n >= large && slices.ContainsFunc(r.Also, func(f Fit) bool { return slices.Equal(f.At, r.Fits[0].At) && f.Number >= large && f.Number != n })
}

// pairs looks for two edits that explain together what none does alone: the first is known of another place, or leaves
// a part of the error; the second leaves a part of that.
func (f *finder) pairs(edits []*edit.Edit) error {
	if len(f.r.Fits) > 0 || f.s.KnownOnly || f.partly {
		return nil
	}
	slices.SortStableFunc(f.near, func(a, b Fit) int { return cmp.Compare(a.Off, b.Off) })
	f.near = slices.CompactFunc(f.near, func(a, b Fit) bool { return b.Off-a.Off <= alike*a.Off }) // the same function
	f.near = f.near[:min(len(f.near), mostFirst)]
	for _, e := range edits {
		if f.known(e) {
			f.near = slices.Insert(f.near, 0, Fit{Edit: *e, Off: f.r.Off})
		}
	}
	f.work = f.allowed(min(f.work+pairWork, leastWork))
	before := f.r.Tried
	defer func() { f.r.Pairs = f.r.Tried - before }()
	for i := range f.near {
		a := &f.near[i]
		f.limit = math.Min(1, most*a.Off)
		var some []*edit.Edit
		least := f.base.Work(a.Patch)
		for k, b := range edits {
			if least > f.work {
				break
			}
			if e := edit.Both(f.s.Piece, &a.Edit, b); e != nil {
				some = append(some, e)
			}
			if len(some) == window || k == len(edits)-1 || edits[k+1].Cost != b.Cost {
				if len(f.r.Fits) > 0 && a.Cost+b.Cost > f.r.Fits[0].Cost+classes {
					break
				}
				if _, err := f.try(some...); err != nil {
					return err
				}
				some = nil
			}
		}
	}
	return nil
}
