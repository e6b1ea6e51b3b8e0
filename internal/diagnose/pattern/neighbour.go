package pattern

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Held says that the candidate recorded something else at a port than its name says, though the model
// may be right.
type Held struct {
	ID, Text string
	Proven   bool           // by equality with a recorded tensor
	Value    *tensor.Tensor // what it holds, in the target's shape; nil where that was not recorded
}

// HeldBy looks for series of outputs, of blocks or of hidden_states, that hold what belongs to another
// number of the series, and for a last one that is after the final norm on one side only: what one
// forward pass recorded, by port. It is empty where the names are right, or nothing shows that they
// are not.
func HeldBy(run *diagnose.Run, caseName, step string) map[*diagnose.Port]Held {
	h := &holding{run: run, held: map[*diagnose.Port]Held{}}
	for _, p := range run.Ports {
		if p.Case == caseName && p.Step == step && !p.IsInput() && p.IsFloat() && p.Golden.Len() > 0 {
			h.pass = append(h.pass, p)
		}
	}
	for _, s := range h.series() {
		if !h.neighbours(s) {
			h.normed(s)
		}
	}
	return h.held
}

type holding struct {
	run  *diagnose.Run
	pass []*diagnose.Port // outputs of floats
	held map[*diagnose.Port]Held
}

// series are the outputs of layers that differ in one number, in its order.
type series struct {
	name  string // with # for the number
	ports []*diagnose.Port
}

func (h *holding) series() (out []series) {
	type member struct {
		n int
		p *diagnose.Port
	}
	all := map[string][]member{}
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
			all[key] = append(all[key], member{n, p})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		of := all[key]
		slices.SortFunc(of, func(a, b member) int { return cmp.Compare(a.n, b.n) })
		s := series{name: key}
		for i, m := range of {
			if i > 0 && m.n != of[i-1].n+1 {
				break
			}
			s.ports = append(s.ports, m.p)
		}
		if len(s.ports) > 1 {
			out = append(out, s)
		}
	}
	return out
}

// neighbours finds a series that is off by one. Two of its tensors at least, and those from the first
// one on, have to be the neighbours' and not their own; no model that computes something else gives
// two tensors of the reference under other names.
func (h *holding) neighbours(s series) bool {
	for _, by := range []int{-1, 1} {
		n, of, off := 0, 0, 0.0
		for i, p := range s.ports {
			if i+by < 0 || i+by >= len(s.ports) {
				continue
			}
			own, _ := h.off(p.Actual, p.Golden, p)
			if d, ok := h.equal(p.Actual, s.ports[i+by].Golden, p); ok && !p.Agrees && n == of && clearlyNearer*d <= own {
				n, off = n+1, max(off, d)
			}
			of++
		}
		if n < leastNeighbours {
			continue
		}
		text := fmt.Sprintf("the candidate's %s hold their neighbours' tensors: number i has what the reference has in number i%+d, in %d of %d, to %.1e: "+
			"the names are off by one", s.name, by, n, of, off)
		last := s.ports[len(s.ports)-1]
		switch _, _, normed := h.norm(last, s.ports[len(s.ports)-2].Actual, last.Golden); {
		case n == of-1 && by == 1 && normed:
			text += "; the last of the reference's is already normed"
		case n < of:
			text += fmt.Sprintf("; those behind the first %d hold neither: give them their names, and compare again", n)
		}
		for i, p := range s.ports {
			held := Held{ID: "capture/neighbour", Text: text}
			if at := i + by; at >= 0 && at < len(s.ports) && n == of {
				held.Value, held.Proven = s.ports[at].Golden, true
			} else if x := h.find(p); x != nil {
				held.Value, held.Proven = x.Golden, true
				held.Text += fmt.Sprintf("; this one holds %s %s", x.Layer, x.Port)
			}
			h.held[p] = held
		}
		return true
	}
	return false
}

// find returns a port of which the candidate has the reference's tensor at another one.
func (h *holding) find(p *diagnose.Port) *diagnose.Port {
	for _, x := range h.pass {
		if x != p {
			if _, ok := h.equal(p.Actual, x.Golden, p); ok {
				return x
			}
		}
	}
	return nil
}

// equal reports whether two tensors agree within a port's noise floor, and their relative L2.
func (h *holding) equal(a, b *tensor.Tensor, p *diagnose.Port) (off float64, ok bool) {
	if a == nil || b == nil || !slices.Equal(a.Shape(), b.Shape()) || !isSame(a, b, markFloors*max(p.Floor.RowRelL2, leastFloor)) {
		return 0, false
	}
	return h.off(a, b, p)
}

// off is the relative L2 of a from b, without padding, and whether they agree within a port's noise floor.
func (h *holding) off(a, b *tensor.Tensor, p *diagnose.Port) (off float64, ok bool) {
	keep := p.Kept(nil)
	if a, b = diagnose.SelectRows(a, keep), diagnose.SelectRows(b, keep); a == nil || b == nil {
		return 0, false
	}
	r, err := compare.Tensors(b, a, compare.Tolerance{})
	return r.RelL2, err == nil && r.Agrees(p.Floor)
}

// normed finds a series that is right but for the last one, which is after the final norm on one side
// and in front of it on the other: the last of transformers' hidden_states is after it.
func (h *holding) normed(s series) {
	last := len(s.ports) - 1
	p := s.ports[last]
	if p.Agrees || slices.ContainsFunc(s.ports[:last], func(q *diagnose.Port) bool { return !q.Agrees }) {
		return
	}
	for _, side := range []struct {
		who, other     string
		normed, before *tensor.Tensor
	}{{"candidate", "reference", p.Actual, p.Golden}, {"reference", "candidate", p.Golden, p.Actual}} {
		weight, misses, ok := h.norm(p, side.before, side.normed)
		if !ok {
			continue
		}
		held := Held{ID: "capture/normed", Text: fmt.Sprintf("the last of the %s's %s is already normed, the %s's is not", side.who, s.name, side.other)}
		rows := len(weight.rows)
		switch q, key := h.ofNorm(p, side.normed), h.known(weight); {
		case q != nil:
			held.Proven, held.Value = true, q.Golden
			held.Text += fmt.Sprintf(": it is what %s gives", q.Layer)
		case key != "":
			held.Proven = true
			held.Text += fmt.Sprintf(": the weight %s makes one the other, to %.1e", key, misses)
		case rows >= diagnose.PerParam*weight.params:
			held.Proven = true
			held.Text += fmt.Sprintf(": %s with one weight for each column makes one the other, in %d rows, to %.1e", weight.kind, rows, misses)
		default:
			held.Text += fmt.Sprintf(", as it seems: %s with one weight for each column makes one the other, to %.1e, but %d rows are too few to prove it; "+
				"give the weights to see", weight.kind, misses, rows)
		}
		if held.Proven && (held.Value == nil || side.who == "reference") {
			held.Value = p.Actual // shown by a norm of it: no recorded tensor is what the candidate should have
		}
		h.held[p] = held
		return
	}
}

// ofNorm returns a norm that gives a tensor, on either side; nil if none was recorded.
func (h *holding) ofNorm(p *diagnose.Port, normed *tensor.Tensor) *diagnose.Port {
	for _, q := range h.pass {
		if !module.IsNorm(q.Layer) || label.Block(q.Layer) != "" {
			continue
		}
		for _, t := range []*tensor.Tensor{q.Golden, q.Actual} {
			if _, ok := h.equal(normed, t, p); ok {
				return q
			}
		}
	}
	return nil
}

// fitted are the weights with which a norm makes one tensor of another.
type fitted struct {
	kind   string
	params int // numbers for each column
	weight []float64
	rows   []int
}

// norm fits the weights, and a bias, with which a norm makes normed of before, and reports whether it
// does within the port's noise floor.
func (h *holding) norm(p *diagnose.Port, before, normed *tensor.Tensor) (f fitted, misses float64, ok bool) {
	w, pad := p.Width(), p.Kept(nil)
	rows := slices.DeleteFunc(vec.Sequence(p.Rows()), func(r int) bool { return pad != nil && !pad[r] })
	rows = rows[:min(len(rows), normRows)]
	x, y := vec.Read(before, w, rows), vec.Read(normed, w, rows)
	if len(rows) < leastNormRows || w < 2 || !vec.All(x, vec.IsFinite) || !vec.All(y, vec.IsFinite) {
		return f, 0, false
	}
	for _, kind := range []struct {
		name   string
		center bool
		params int
	}{{"an RMS norm", false, 1}, {"a layer norm", true, 1}, {"a layer norm with a bias", true, 2}} {
		z := slices.Clone(x)
		for r := range rows {
			normalise(z[r*w:(r+1)*w], kind.center)
		}
		f = fitted{kind: kind.name, params: kind.params, weight: make([]float64, w), rows: rows}
		made := make([]float64, len(y))
		for c := range w {
			f.weight[c] = column(z, y, made, c, w, kind.params == 2)
		}
		if misses = vec.Relative(made, y); misses <= p.Floor.RelL2 {
			return f, misses, true
		}
	}
	return f, misses, false
}

// normalise divides a row by its root mean square, less its mean if that is asked.
func normalise(row []float64, center bool) {
	if center {
		mean := 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for i := range row {
			row[i] -= mean
		}
	}
	if rms := vec.RootMeanSquare(row); rms > 0 {
		for i := range row {
			row[i] /= rms
		}
	}
}

// column fits y = weight·z, plus a bias if that is asked, in one column of width w, writes what that
// makes, and returns the weight.
func column(z, y, made []float64, c, w int, biased bool) (weight float64) {
	var n, sz, sy, szz, szy float64
	for i := c; i < len(z); i += w {
		n, sz, sy, szz, szy = n+1, sz+z[i], sy+y[i], szz+z[i]*z[i], szy+z[i]*y[i]
	}
	bias := 0.0
	switch {
	case biased && n*szz != sz*sz:
		weight = (n*szy - sz*sy) / (n*szz - sz*sz)
		bias = (sy - weight*sz) / n
	case szz > 0:
		weight = szy / szz
	}
	for i := c; i < len(z); i += w {
		made[i] = weight*z[i] + bias
	}
	return weight
}

// known returns the key of the weight of a norm that the fitted one is, or that less one; "" if none is.
func (h *holding) known(f fitted) string {
	for key, t := range h.run.Weights {
		if len(t.Shape()) != 1 || t.Len() != len(f.weight) || label.Block(key) != "" {
			continue
		}
		w := vec.ReadAll(t)
		one := vec.Map(w, func(v float64) float64 { return 1 + v })
		if min(vec.Relative(f.weight, w), vec.Relative(f.weight, one)) <= sameWeight {
			return key
		}
	}
	return ""
}

// neighbour is a series of outputs whose names are off by one, or of which the last one is normed.
func neighbour(s *diagnose.Scene) []diagnose.Prediction {
	t := s.Target
	if !s.HasNumbers() {
		return nil
	}
	held, ok := HeldBy(s.Run, t.Case, t.Step)[t]
	if !ok || !held.Proven {
		return nil
	}
	p := guess(held.ID, -2, "%s", held.Text)
	p.Value, p.Rows = s.Part(held.Value), s.Sample()
	return []diagnose.Prediction{p}
}
