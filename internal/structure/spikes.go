package structure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

type element struct {
	at   int
	g, a float64
}

// blockLen is the number of elements that are decoded at once.
const blockLen = 2048

// Spikes compares where two tensors of one shape have theirs: at most maxSpikes elements that are
// spikeRatio times as large as the median |x|, the massive activations of some channels and tokens
// that many models have. A spike is missing on a side that has less than half of it there.
func Spikes(golden, actual *tensor.Tensor) []Finding {
	n := golden.Len()
	step := (n + spikeSample - 1) / spikeSample
	var sample [2][]float64
	var top [2][]element
	var least [2]float64 // the least size that enters top
	gs, as := make([]float64, min(n, blockLen)), make([]float64, min(n, blockLen))
	err := mapfile.Guard(func() error {
		for start := 0; start < n; start += blockLen {
			m := golden.Float64s(gs, start)
			actual.Float64s(as, start)
			for j, g := range gs[:m] {
				i, a := start+j, as[j]
				if i%step == i/step%step { // another column each time
					sample[0], sample[1] = append(sample[0], magnitude(g)), append(sample[1], magnitude(a))
				}
				if magnitude(g) > least[0] {
					top[0], least[0] = keepLargest(top[0], element{i, g, a}, 0)
				}
				if magnitude(a) > least[1] {
					top[1], least[1] = keepLargest(top[1], element{i, g, a}, 1)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	sides := [2]side{{"golden", 0, top[0], median(sample[0])}, {"candidate", 1, top[1], median(sample[1])}}
	missing, added := strange(sides[0].spikes(), 0), strange(sides[1].spikes(), 1)
	text := func(e element, of, other side) string { return "spikes: " + of.has(e, golden) + "; " + other.lacks(e) }
	switch {
	case len(missing) > 0 && len(added) > 0:
		m, x := missing[0], added[0]
		return []Finding{{Kind: SpikeMoved, From: m.at, To: x.at, Text: fmt.Sprintf("%s; instead it has %.4g at %s (golden %.4g)",
			text(m, sides[0], sides[1]), x.a, where(golden, x.at), x.g)}}
	case len(missing) > 0:
		return []Finding{{Kind: SpikeMissing, From: missing[0].at, To: missing[0].at, Text: text(missing[0], sides[0], sides[1])}}
	case len(added) > 0:
		return []Finding{{Kind: SpikeNew, From: added[0].at, To: added[0].at, Text: text(added[0], sides[1], sides[0])}}
	}
	return nil
}

// side is one of the two tensors.
type side struct {
	name   string
	i      int       // 0 the golden, 1 the candidate
	top    []element // its largest, in this order
	median float64
}

// has says where the side has a spike.
func (s side) has(e element, t *tensor.Tensor) string {
	text := fmt.Sprintf("the %s has %.4g at %s", s.name, e.of(s.i), where(t, e.at))
	if e.at == s.top[0].at {
		text += ", its largest value"
	}
	return text
}

// lacks says what it has where the other one has a spike.
func (s side) lacks(e element) string {
	switch {
	case len(s.top) == 0:
		return fmt.Sprintf("the %s is zero everywhere", s.name)
	case e.size(s.i) < spikeRatio*s.median:
		return fmt.Sprintf("the %s is flat there: %.4g, its largest is %.4g", s.name, e.of(s.i), s.top[0].of(s.i))
	}
	return fmt.Sprintf("the %s has only %.4g there", s.name, e.of(s.i))
}

// where names an element: its token and channel in [tokens, channels] and [sequences, tokens, channels].
func where(t *tensor.Tensor, at int) string {
	index, shape := t.Index(at), t.Shape()
	switch {
	case len(index) == 3 && shape[0] > 1:
		return fmt.Sprintf("sequence %d, token %d, channel %d", index[0], index[1], index[2])
	case len(index) == 2 || len(index) == 3:
		return fmt.Sprintf("token %d, channel %d", index[len(index)-2], index[len(index)-1])
	}
	return tensor.FormatShape(index)
}

// magnitude returns |x|, and 0 for what is not finite, which is counted elsewhere.
func magnitude(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return math.Abs(x)
}

// of is what a side has: 0 the golden, 1 the candidate.
func (e element) of(side int) float64 { return [2]float64{e.g, e.a}[side] }

func (e element) size(side int) float64 { return magnitude(e.of(side)) }

// keepLargest keeps one more than may be spikes, largest first, and returns the size under which no
// further one is kept.
func keepLargest(top []element, e element, side int) (kept []element, least float64) {
	size := e.size(side)
	at, _ := slices.BinarySearchFunc(top, size, func(x element, s float64) int {
		if x.size(side) >= s {
			return -1
		}
		return 1
	})
	top = slices.Insert(top, at, e)
	if len(top) <= maxSpikes {
		return top, 0
	}
	return top[:maxSpikes+1], top[maxSpikes].size(side)
}

// spikes returns the spikes of a side; none if there are so many that the tensor is just like that.
func (s side) spikes() []element {
	n := 0
	for n < len(s.top) && s.median > 0 && s.top[n].size(s.i) >= spikeRatio*s.median {
		n++
	}
	if n > maxSpikes {
		return nil
	}
	return s.top[:n]
}

// strange keeps the spikes of side i of which the other side has less than half.
func strange(all []element, i int) []element {
	return slices.DeleteFunc(slices.Clone(all), func(e element) bool {
		finite := !math.IsNaN(e.g-e.a) && !math.IsInf(e.g-e.a, 0) // others are counted elsewhere
		return !finite || sameSpike*e.size(1-i) >= e.size(i)
	})
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// cosines tells the direction of the rows and, where there are enough rows for one, of the columns.
// It says nothing where every row keeps its direction.
func cosines(rows, columns []compare.Line) []Finding {
	of := func(all []compare.Line, noun string) (string, int) {
		sorted := slices.SortedFunc(slices.Values(all), func(x, y compare.Line) int {
			return cmp.Or(cmp.Compare(x.Cosine, y.Cosine), cmp.Compare(x.Index, y.Index))
		})
		return fmt.Sprintf("%.4g at least (%s %d), %.4g in the median", sorted[0].Cosine, noun, sorted[0].Index,
			sorted[len(sorted)/2].Cosine), sorted[0].Index
	}
	if len(rows) < 2 {
		return nil
	}
	text, worst := of(rows, "row")
	if rows[worst].Cosine >= turned {
		return nil
	}
	f := Finding{Kind: Cosine, From: worst, To: worst, Text: "cosine by row: " + text}
	if len(rows) >= cosineRows && len(columns) > 0 {
		text, _ = of(columns, "column")
		f.Text += "; by column: " + text
	}
	return []Finding{f}
}
