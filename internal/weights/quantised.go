package weights

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/goparity/goparity/tensor"
)

// quantised is what is known of the quantisation of a pair.
type quantised struct {
	*metrics
	ok     bool
	format string
	why    string  // it is none
	unseen bool    // its codes stand for several elements: only the size of the whole error is known
	made   bool    // rounded to nearest: no wrong element
	gain   float64 // Σ x·v / Σ v² of the elements x of the other side and those of the codes v
	spread bool    // wrong elements are everywhere: ok where a quantiser makes up for other errors
}

// quantisation reports whether the quantised weight is as near to the other one as its format can
// have it: no other code of the same scale is nearer to any element. Where both are quantised, both
// may have moved it.
func quantisation(p *pair) *quantised {
	t := p.best
	packed, laid := t.cand, shaped(t.ref, t.cand.Shape())
	isRef := packed.Packing() == ""
	if isRef {
		packed, laid = t.ref, shaped(t.cand, t.ref.Shape())
	}
	q := &quantised{format: packed.Packing()}
	g, other := newGridder(packed), newGridder(laid)
	if g == nil || isRef && t.calc != nil || laid.Packing() != "" && other == nil { // codes that stand for several elements
		q.metrics, q.unseen = t.all(), true
		q.ok = q.RelL2 < likely/2
		return q
	}
	x := make([]float64, chunk)
	for from := 0; from < packed.Len(); from += chunk {
		part := x[:min(chunk, packed.Len()-from)]
		laid.Float64s(part, from)
		if t.calc != nil {
			for i := range part {
				part[i] = t.number(from+i, part[i])
			}
		}
		g.look(part, from, other)
	}
	q.metrics = &metrics{N: packed.Len(), Mismatches: packed.Len() - g.same, RelL2: math.Sqrt(g.dd / g.xx)}
	if isRef {
		q.RelL2 = math.Sqrt(g.dd / g.vv)
	}
	g.judge(q)
	return q
}

// unseenNotes says of formats how large damage is that was not seen: the exact reference shows any.
func unseenNotes(pairs []*pair) (notes []string) {
	formats := map[string]int{}
	for _, p := range pairs {
		if p.q != nil && p.q.ok && p.q.unseen && p.result.Status == Quantised {
			formats[p.q.format]++
		}
	}
	for _, f := range slices.Sorted(maps.Keys(formats)) {
		notes = append(notes, fmt.Sprintf("%d weights of %s: a code stands for several elements, so that damage below rel. L2 %.2g of a weight is not seen; "+
			"a reference of the dequantised weights shows any", formats[f], f, likely/2))
	}
	return notes
}

// gridder looks whether elements are rounded to the nearest number of their grids.
type gridder struct {
	t         *tensor.Tensor
	grid      *tensor.Grid
	whole     bool // the values are 0, 1, 2, …
	low, high []float32
	v         []float64

	least, most []float64 // between which what is rounded to each value lies
	widest      float64   // the largest distance of neighbours

	codes, places []float64 // of the elements of a group, see fit

	wrong  int
	equal  int     // elements that are equal, and not 0
	same   int     // elements that are equal
	xv, vv float64 // Σ x·v and Σ v² of elements x of the other side and those of the codes v
	xx, dd float64 // Σ x² and Σ (x − v)²
	square float64 // Σ of squared distances from the code, in steps
	first  int
	bad    int // the last part with a wrong element
	spread int // parts with wrong elements
}

func newGridder(t *tensor.Tensor) *gridder {
	n := min(chunk, t.Len())
	g := &gridder{t: t, low: make([]float32, n), high: make([]float32, n), v: make([]float64, n), first: -1, bad: -1}
	if n == 0 {
		return nil
	}
	if g.grid = t.Grid(g.low[:1], g.high[:1], 0); g.grid == nil {
		return nil
	}
	g.whole = true
	for i, v := range g.grid.Values {
		g.whole = g.whole && v == float32(i)
	}
	last := len(g.grid.Values) - 1
	gap := func(k int) float64 { // from value k to the next; where there is none, the one beside it
		k = max(min(k, last-1), 0)
		return float64(g.grid.Values[k+1]) - float64(g.grid.Values[k])
	}
	for k, v := range g.grid.Values {
		below, above := 0.5+slack, 0.5+slack
		if k == 0 {
			below = g.grid.Clip
		}
		if k == last {
			above = g.grid.Clip
		}
		g.least = append(g.least, float64(v)-below*gap(k-1))
		g.most = append(g.most, float64(v)+above*gap(k))
		g.widest = max(g.widest, gap(k))
	}
	return g
}

// look adds elements x, that begin at element from. other has their own grid, if they are quantised,
// too.
func (g *gridder) look(x []float64, from int, other *gridder) {
	v := g.v[:len(x)]
	g.t.Float64s(v, from)
	g.t.Grid(g.low[:len(x)], g.high[:len(x)], from)
	if other != nil {
		other.t.Grid(other.low[:len(x)], other.high[:len(x)], from)
	}
	for at := 0; at < len(x); { // elements with the same scale
		end := at + 1
		for end < len(x) && g.low[end] == g.low[at] && g.high[end] == g.high[at] {
			end++
		}
		var more []float64
		if other != nil {
			more = other.steps(at, end)
		}
		g.group(x[at:end], v[at:end], float64(g.low[at]), float64(g.high[at]), from+at, more)
		at = end
	}
}

// steps returns how far elements at … end−1 of the chunk may have been moved by their own rounding.
func (g *gridder) steps(at, end int) []float64 {
	values := g.grid.Values
	share := g.widest / float64(values[len(values)-1]-values[0]) * math.Max(0.5+slack, g.grid.Clip)
	for i := at; i < end; i++ {
		g.v[i] = share * math.Abs(float64(g.high[i])-float64(g.low[i]))
	}
	return g.v[at:end]
}

// group adds elements with one scale, that begin at element from; more is how far each may be moved
// beside that.
func (g *gridder) group(x, v []float64, low, high float64, from int, more []float64) {
	values := g.grid.Values
	bottom := float64(values[0])
	scale := (high - low) / (float64(values[len(values)-1]) - bottom)
	none := scale == 0 || scale-scale != 0
	inverse := 1 / scale
	moved, stretched := 0.0, 1.0
	if !none && g.whole && more == nil {
		moved, stretched = g.fit(x, v, low, scale)
	}
	for i, y := range x {
		d := y - v[i]
		g.xv, g.vv, g.xx, g.dd = g.xv+y*v[i], g.vv+v[i]*v[i], g.xx+y*y, g.dd+d*d
		if d == 0 {
			g.same++
			if y != 0 {
				g.equal++
			}
			continue
		}
		right := none && math.Abs(y) <= 1e-7 // nothing but zeros has such a scale
		if !none {
			at, code := (y-low)*inverse+bottom, (v[i]-low)*inverse+bottom
			g.square += (at - code) * (at - code)
			room := g.room(y, v[i], low)
			if more != nil {
				room += more[i]
			}
			right = g.near(at, code, room/math.Abs(scale))
			if right && stretched != 1 {
				right = g.near((at-moved)/stretched, code, fitSlack+g.grid.Epsilon*math.Abs(y/scale))
			}
		}
		if !right {
			g.wrong++
			if g.first < 0 {
				g.first = from + i
			}
			if part := (from + i) / spreadLen; part != g.bad {
				g.bad = part
				g.spread++
			}
		}
	}
}

// fit returns the error that the rounding of scale and bias has made to all elements of a group, in
// steps and as a factor: 0 and 1 where it is more than rounding can make, or too small to matter.
func (g *gridder) fit(x, v []float64, low, scale float64) (moved, stretched float64) {
	top := float64(len(g.grid.Values) - 1)
	if g.grid.Epsilon*top < leastFit || top > mostFit || len(x) < leastGroup {
		return 0, 1
	}
	g.codes, g.places = g.codes[:0], g.places[:0]
	for i, y := range x {
		k, p := math.RoundToEven((v[i]-low)/scale), (y-low)/scale
		if k > 0 && k < top && math.Abs(p-k) < 1 {
			g.codes, g.places = append(g.codes, k), append(g.places, p)
		}
	}
	if len(g.codes) < leastGroup/2 {
		return 0, 1
	}
	moved, stretched = stat.LinearRegression(g.codes, g.places, nil, false)
	eps := 2 * g.grid.Epsilon
	if math.Abs(stretched-1) <= eps+1/top/8 && math.Abs(moved) <= eps*(top+math.Abs(low/scale))+0.25 {
		return moved, stretched
	}
	return 0, 1 // also where all codes are one, which has no slope
}

// room is how far the rounding of scales, and of elements of 16 bits, moves an element.
func (g *gridder) room(x, v, low float64) float64 {
	r := math.Abs(v-low) + math.Abs(low)
	if g.t.DType().Size() == 2 {
		r += math.Abs(x) + math.Abs(v-low) + math.Abs(v)
	}
	return g.grid.Epsilon * r
}

// near reports whether a number is rounded to a code, both in units of the values.
func (g *gridder) near(at, code, room float64) bool {
	values := g.grid.Values
	k := int(math.RoundToEven(code))
	if !g.whole {
		k, _ = slices.BinarySearch(values, float32(code))
		if k > 0 && (k == len(values) || code-float64(values[k-1]) < float64(values[k])-code) {
			k--
		}
	}
	k = min(max(k, 0), len(values)-1)
	return at >= g.least[k]-room && at <= g.most[k]+room
}

// judge says what that means. A few wrong elements, or some wrong groups, are a fault; where a
// quantiser makes up for the errors of other inputs, as GPTQ does, all groups have such elements.
func (g *gridder) judge(q *quantised) {
	parts := (q.N + spreadLen - 1) / spreadLen
	compensates := slices.ContainsFunc([]string{"gptq", "int", "awq"}, func(f string) bool { return strings.HasPrefix(q.format, f) })
	switch {
	case float64(g.equal) > 0.9*float64(q.N): // the reference is this weight, dequantised
	case g.wrong == 0:
		q.ok, q.made = true, true
	default:
		q.spread = compensates && float64(g.spread) > 0.9*float64(parts) && g.square < float64(q.N) && q.RelL2 < likely
		q.gain, q.ok = g.xv/g.vv, q.spread
		q.why = fmt.Sprintf("%d of %d elements are not rounded to the nearest number of %s, in %d of %d parts, first at %v; rel. L2 %.3g",
			g.wrong, q.N, q.format, g.spread, parts, g.t.Index(g.first), q.RelL2)
	}
}

// compensating looks at weights that are not rounded to nearest, which those of a quantiser are not
// that makes up for the errors of other inputs. It did not make this one if it made none of the
// others so, or if the gain of this one is another than theirs.
func compensating(pairs []*pair) {
	known := slices.DeleteFunc(slices.Clone(pairs), func(p *pair) bool { return p.q == nil || !p.q.made && !p.q.spread })
	for _, members := range grouped(known, func(p *pair) string { return p.q.format }) {
		var gains []float64
		for _, p := range members {
			if p.q.spread {
				gains = append(gains, p.q.gain)
			}
		}
		slices.Sort(gains)
		few := 2*len(gains) <= len(members)
		for _, p := range members {
			if p.q.spread && (few || math.Abs(p.q.gain/gains[len(gains)/2]-1) > mostGain || math.Abs(p.q.gain-1) > 2*mostGain) {
				p.result.Status, p.result.Detail, p.result.Steps = Differs, p.q.why, nil
			}
		}
	}
}
