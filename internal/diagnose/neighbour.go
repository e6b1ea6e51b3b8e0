package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Neighbour is the cause of a series of outputs whose names are off by one.
const Neighbour = "capture/neighbour"

// Held says that the candidate recorded something else at a port than its name says, though the model
// may be right.
type Held struct {
	ID, Text string
	Proven   bool           // by equality with a recorded tensor
	value    *tensor.Tensor // what it holds, in the target's shape; nil where that was not recorded
}

// HeldBy looks for series of outputs, of blocks or of hidden_states, that hold what belongs to another
// number of the series, and for a last one that is after the final norm on one side only: what one
// forward pass recorded, by port. It is empty where the names are right, or nothing shows that they
// are not.
func HeldBy(run *Run, caseName, step string) map[*Port]Held {
	h := &holding{run: run, held: map[*Port]Held{}}
	for _, p := range run.Ports {
		if p.Case == caseName && p.Step == step && !p.IsInput() && p.IsFloat() && p.Golden.Len() > 0 {
			h.pass = append(h.pass, p)
		}
	}
	names, series := h.series()
	for _, name := range names {
		if of := series[name]; len(of) > 1 && !h.neighbours(name, of) {
			h.normed(name, of)
		}
	}
	return h.held
}

// holding are the outputs of floats of one pass, and what is found.
type holding struct {
	run  *Run
	pass []*Port
	held map[*Port]Held
}

// series are the outputs of layers that differ in one number, in its order and without gaps, by their name with # for it.
func (h *holding) series() (names []string, series map[string][]*Port) {
	numbers := map[*Port]int{}
	series = map[string][]*Port{}
	for _, p := range h.pass {
		name := label.Join(p.Layer, p.Port)
		keys := label.Alike(name)
		if len(keys) == 0 || !p.IsRecorded() {
			continue
		}
		key := keys[0] // the number of the block, or of the state
		before, after, _ := strings.Cut(key, "#")
		if inPort := len(before) > len(p.Layer); inPort && !strings.Contains(p.Port, "hidden") {
			continue // several outputs of one layer
		}
		if n, err := strconv.Atoi(name[len(before) : len(name)-len(after)]); err == nil {
			numbers[p], series[key] = n, append(series[key], p)
		}
	}
	for name, of := range series {
		slices.SortFunc(of, func(a, b *Port) int { return cmp.Compare(numbers[a], numbers[b]) })
		n := 1
		for n < len(of) && numbers[of[n]] == numbers[of[n-1]]+1 {
			n++
		}
		series[name] = of[:n]
	}
	return slices.Sorted(maps.Keys(series)), series
}

// neighbours finds a series that is off by one. Two of its tensors at least, and those from the first
// one on, have to be the neighbours' and not their own; no model that computes something else gives
// two tensors of the reference under other names.
func (h *holding) neighbours(name string, ports []*Port) bool {
	for _, by := range []int{-1, 1} {
		n, of, off := 0, 0, 0.0
		for i, p := range ports {
			if i+by < 0 || i+by >= len(ports) {
				continue
			}
			if next := ports[i+by].Golden; !p.Agrees && n == of && equal(p.Actual, next, p) {
				own, _ := offBy(p.Actual, p.Golden, p)
				if d, _ := offBy(p.Actual, next, p); clearlyNearer*d <= own {
					n, off = n+1, max(off, d)
				}
			}
			of++
		}
		if n < leastNeighbours {
			continue
		}
		text := fmt.Sprintf("the candidate's %s hold their neighbours' tensors: number i has what the reference has in number i%+d, in %d of %d, to %.1e: "+
			"the names are off by one", name, by, n, of, off)
		for i, p := range ports {
			held := Held{ID: Neighbour, Text: text}
			if at := i + by; at >= 0 && at < len(ports) && n == of {
				held.value, held.Proven = ports[at].Golden, true
			} else if x := h.find(func(x *Port) bool { return x != p && equal(p.Actual, x.Golden, p) }); x != nil {
				held.value, held.Proven = x.Golden, true
				held.Text += fmt.Sprintf("; this one holds %s %s", x.Layer, x.Port)
			}
			h.held[p] = held
		}
		return true
	}
	return false
}

// find returns the first output for which is holds; nil if there is none.
func (h *holding) find(is func(q *Port) bool) *Port {
	if i := slices.IndexFunc(h.pass, is); i >= 0 {
		return h.pass[i]
	}
	return nil
}

// equal reports whether two tensors agree within a port's noise floor.
func equal(a, b *tensor.Tensor, p *Port) (ok bool) {
	if a != nil && b != nil && slices.Equal(a.Shape(), b.Shape()) && isSame(a, b, markFloors*max(p.Floor.RowRelL2, leastFloor)) {
		_, ok = offBy(a, b, p)
	}
	return ok
}

// offBy is the relative L2 of a from b, without padding, and whether they agree within a port's noise floor.
func offBy(a, b *tensor.Tensor, p *Port) (off float64, ok bool) {
	if a, b = p.kept(a), p.kept(b); a == nil || b == nil {
		return 0, false
	}
	r, err := compare.Tensors(b, a, compare.Tolerance{})
	return r.RelL2, err == nil && r.Agrees(p.Floor)
}

// normed finds a series that is right but for the last one, which is after the final norm on one side
// and in front of it on the other: the last of transformers' hidden_states is after it.
func (h *holding) normed(name string, ports []*Port) {
	last := len(ports) - 1
	p := ports[last]
	if p.Agrees || slices.ContainsFunc(ports[:last], func(q *Port) bool { return !q.Agrees }) {
		return
	}
	for _, side := range []struct {
		who, other     string
		normed, before *tensor.Tensor
	}{{"candidate", "reference", p.Actual, p.Golden}, {"reference", "candidate", p.Golden, p.Actual}} {
		fit, misses, ok := fitNorm(p, side.before, side.normed)
		if !ok {
			continue
		}
		held := Held{ID: "capture/normed", Proven: true, value: p.Actual, // else no recorded tensor is what it should have
			Text: fmt.Sprintf("the last of the %s's %s is already normed, the %s's is not", side.who, name, side.other)}
		isNorm := func(q *Port) bool { // outside of all blocks, on either side
			return label.IsNorm(q.Layer) && label.Block(q.Layer) == "" && (equal(side.normed, q.Golden, p) || equal(side.normed, q.Actual, p))
		}
		switch q, key := h.find(isNorm), h.known(fit.weight); {
		case q != nil:
			held.Text += fmt.Sprintf(": it is what %s gives", q.Layer)
			if side.who == "candidate" {
				held.value = q.Golden
			}
		case key != "":
			held.Text += fmt.Sprintf(": the weight %s makes one the other, to %.1e", key, misses)
		case fit.rows >= PerParam*fit.params:
			held.Text += fmt.Sprintf(": a norm with one weight for each column makes one the other, in %d rows, to %.1e", fit.rows, misses)
		default:
			held.Proven, held.value = false, nil
			held.Text += fmt.Sprintf(", as it seems: a norm with one weight for each column makes one the other, to %.1e, but %d rows are too few to prove it; "+
				"give the weights to see", misses, fit.rows)
		}
		h.held[p] = held
		return
	}
}

// norm is the weights with which a norm makes one tensor of another.
type norm struct {
	params int // numbers for each column
	weight []float64
	rows   int
}

// fitNorm fits the weights, and a bias, with which an RMS norm or a layer norm makes normed of before, and reports whether
// it does within the port's noise floor.
func fitNorm(p *Port, before, normed *tensor.Tensor) (f norm, misses float64, ok bool) {
	w := p.Width()
	rows := slices.DeleteFunc(vec.Sequence(p.Rows()), p.pads)
	rows = rows[:min(len(rows), normRows)]
	x, y := vec.Read(before, w, rows), vec.Read(normed, w, rows)
	if len(rows) < leastNormRows || w < 2 || !vec.All(x, vec.IsFinite) || !vec.All(y, vec.IsFinite) {
		return f, 0, false
	}
	ones := slices.Repeat([]float64{1}, len(rows))
	// Where the squares of what the first columns miss are more, no others make it fit.
	most := 4 * p.Floor.RelL2 * p.Floor.RelL2 * floats.Dot(y, y)
	for i := range 3 { // an RMS norm, a layer norm, one with a bias
		z, made := slices.Clone(x), make([]float64, len(y))
		for row := range slices.Chunk(z, w) {
			if i > 0 {
				floats.AddConst(-floats.Sum(row)/float64(w), row)
			}
			if rms := vec.RootMeanSquare(row); rms > 0 {
				floats.Scale(1/rms, row)
			}
		}
		f = norm{params: max(i, 1), weight: make([]float64, w), rows: len(rows)}
		missed := 0.0
		for c := 0; c < w && missed <= most; c++ {
			column, of := vec.Select(z, w, []int{c}), vec.Select(y, w, []int{c})
			by := vec.LeastSquares([][]float64{column, ones}[:f.params], of)
			if by == nil { // numbers that are one tell no bias
				by = vec.LeastSquares([][]float64{column}, of)
			}
			if by != nil {
				f.weight[c] = by[0]
				bias := append(by, 0)[1]
				for r, v := range column {
					made[r*w+c] = float64(by[0]*v) + bias
				}
			}
			for r, v := range of {
				missed += float64((made[r*w+c] - v) * (made[r*w+c] - v))
			}
		}
		// Without a weight, zeros and rows that are all one would be those of a norm, by its bias.
		weighs := vec.RootMeanSquare(f.weight) > sameWeight*vec.RootMeanSquare(y)
		if misses = vec.Relative(made, y); weighs && misses <= p.Floor.RelL2 {
			return f, misses, true
		}
	}
	return f, misses, false
}

// known returns the key of the weight of a norm that the fitted one is, or that less one; "" if none is.
func (h *holding) known(weight []float64) string {
	for _, key := range slices.Sorted(maps.Keys(h.run.Weights)) {
		t := h.run.Weights[key]
		if len(t.Shape()) != 1 || t.Len() != len(weight) || label.Block(key) != "" {
			continue
		}
		w := vec.ReadAll(t)
		one := vec.Map(w, func(v float64) float64 { return 1 + v })
		if min(vec.Relative(weight, w), vec.Relative(weight, one)) <= sameWeight {
			return key
		}
	}
	return ""
}

// neighbour is a series of outputs whose names are off by one, or of which the last one is normed.
func neighbour(s *Scene) []prediction {
	held, known := HeldBy(s.Run, s.Target.Case, s.Target.Step)[s.Target]
	switch {
	case !known:
		return nil
	case !held.Proven:
		return []prediction{guess(held.ID, -2, "%s", held.Text)}
	}
	return []prediction{s.says(held.ID, s.read(held.value), 0, -2, "%s", held.Text)}
}
