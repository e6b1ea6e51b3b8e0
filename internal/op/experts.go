package op

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Scoring is what makes scores of experts of a router's numbers.
type Scoring int

// The scorings.
const (
	SoftmaxScores Scoring = iota // over all experts; with Renormalised, over the chosen ones
	SigmoidScores                // each by itself
	PlainScores                  // the numbers as they are
)

// Router chooses the K experts of the highest scores of each row, and says with what shares their
// outputs are added: the scores s of the chosen ones, or s / Σs, times Factor.
type Router struct {
	K            int
	Scoring      Scoring
	Renormalised bool
	Factor       float64
	Bias         []float64 // is added to the scores for the choice, not for the shares; nil for none
	Biased       bool      // for the shares as well
	// Only experts of the best Kept of Groups groups are chosen; no limit if Groups is 0. A group is as
	// good as its two best experts together, or with BestOne as its best one.
	Groups, Kept int
	BestOne      bool
	Lowest       bool // the lowest scores are chosen
}

func (r Router) scores(x []float64) []float64 {
	switch s := slices.Clone(x); r.Scoring {
	case SoftmaxScores:
		Softmax(s)
		return s
	case SigmoidScores:
		return Map(s, sigmoid)
	default:
		return s
	}
}

// Choose returns the experts of a row, the best first.
func (r Router) Choose(x []float64) []int {
	s := r.scores(x)
	if r.Bias != nil {
		floats.Add(s, r.Bias)
	}
	if r.Lowest {
		s = Scaled(s, -1)
	}
	all := Sequence(len(s))
	best := func(a, b int) int { return cmp.Compare(s[b], s[a]) }
	if n := r.Groups; n > 1 && len(s)%n == 0 && r.Kept < n {
		size, worth := len(s)/n, make([]float64, n)
		groups := Sequence(n)
		for g := range groups {
			own := slices.SortedFunc(slices.Values(s[g*size:(g+1)*size]), func(a, b float64) int { return cmp.Compare(b, a) })
			worth[g] = own[0]
			if !r.BestOne && size > 1 {
				worth[g] += own[1]
			}
		}
		slices.SortStableFunc(groups, func(a, b int) int { return cmp.Compare(worth[b], worth[a]) })
		all = slices.DeleteFunc(all, func(e int) bool { return !slices.Contains(groups[:r.Kept], e/size) })
	}
	slices.SortStableFunc(all, best)
	return all[:min(r.K, len(all))]
}

// Shares returns the share of each chosen expert of a row.
func (r Router) Shares(x []float64, chosen []int) []float64 {
	s, sum := r.scores(x), 0.0
	if r.Biased && r.Bias != nil {
		floats.Add(s, r.Bias)
	}
	out := make([]float64, len(chosen))
	for i, e := range chosen {
		out[i] = s[e]
		sum += s[e]
	}
	for i := range out {
		if r.Renormalised {
			out[i] /= sum
		}
		out[i] *= r.Factor
	}
	return out
}

// Experts are gated MLPs of which each row goes through some:
//
//	out = Σ shareₑ·(gate(x·Wgₑᵀ + bgₑ, x·Wuₑᵀ + buₑ)·Wdₑᵀ + bdₑ)   over the chosen experts e
//
// Wg and Wu stand in one weight, as halves of its rows or in turn.
type Experts struct {
	Hidden, Inner int
	GateUp, Down  func(e int) []float64 // the weights of expert e, as they are stored
	GateUpBias    func(e int) []float64 // nil for none
	DownBias      func(e int) []float64 // nil for none
	Conv          bool                  // weights are [in, out], and not [out, in]
	InTurn        bool                  // gate and up stand in turn, and not as halves
	Gate          func(gate, up float64) float64

	// What goes wrong.
	Weights  func(e int) int                  // whose weights expert e has; nil for its own
	Share    func(shares []float64) []float64 // other shares; nil for the right ones
	Round    func(float64) float64            // of the input; nil for as it is
	OnInput  bool                             // the share multiplies the input, and not the output
	Unshared bool                             // the bias of the last product is added without the share
	Without  int                              // the number of chosen experts that are left out, from the last on
}

func (x *Experts) weights(e int) int {
	if x.Weights != nil {
		return x.Weights(e)
	}
	return e
}

// Work is the number of multiplications for n rows with k experts each.
func (x *Experts) Work(n, k int) float64 {
	return 3 * float64(n) * float64(k) * float64(x.Hidden) * float64(x.Inner)
}

func product(in []float64, w []float64, k, m int, conv bool, bias []float64) []float64 {
	l := Linear{W: MatrixOf(w, m, k), B: bias, Biases: 1}
	if conv {
		l = Linear{W: MatrixOf(w, k, m), B: bias, Biases: 1, Conv: true}
	}
	return l.Of(in)
}

// Gated returns gate and up of an expert for rows of Hidden elements; nil where the weights have
// another size.
func (x *Experts) Gated(e int, in []float64) (gate, up []float64) {
	w, m := x.GateUp(x.weights(e)), 2*x.Inner
	if len(w) != m*x.Hidden {
		return nil, nil
	}
	var bias []float64
	if x.GateUpBias != nil {
		bias = x.GateUpBias(x.weights(e))
	}
	y := product(in, w, x.Hidden, m, x.Conv, bias)
	if y == nil {
		return nil, nil
	}
	first, second := Sequence(x.Inner), Sequence(m)[x.Inner:]
	if x.InTurn {
		for i := range first {
			first[i], second[i] = 2*i, 2*i+1
		}
	}
	return Select(y, m, first), Select(y, m, second)
}

// expert returns what an expert makes of rows.
func (x *Experts) expert(e int, in []float64) []float64 {
	gate, up := x.Gated(e, in)
	w := x.Down(x.weights(e))
	if gate == nil || len(w) != x.Inner*x.Hidden {
		return nil
	}
	for i := range gate {
		gate[i] = x.Gate(gate[i], up[i])
	}
	var bias []float64
	if x.DownBias != nil && !x.Unshared {
		bias = x.DownBias(x.weights(e))
	}
	return product(gate, w, x.Inner, x.Hidden, x.Conv, bias)
}

// Of returns the output for rows of Hidden elements, each with as many experts and shares.
func (x *Experts) Of(in []float64, chosen [][]int, shares [][]float64) []float64 {
	rows := map[int][][2]int{} // by expert: row, place among its experts
	for r, c := range chosen {
		for j, e := range c[:max(len(c)-x.Without, 0)] {
			rows[e] = append(rows[e], [2]int{r, j})
		}
	}
	out, h := make([]float64, len(in)), x.Hidden
	for _, e := range slices.Sorted(maps.Keys(rows)) { // in order: sums are the same each time
		at := rows[e]
		given := make([]float64, 0, len(at)*h)
		for _, p := range at {
			row := slices.Clone(in[p[0]*h : (p[0]+1)*h])
			if x.Round != nil {
				row = Map(row, x.Round)
			}
			if x.OnInput {
				floats.Scale(x.share(shares[p[0]])[p[1]], row)
			}
			given = append(given, row...)
		}
		y := x.expert(e, given)
		if y == nil {
			return nil
		}
		for i, p := range at {
			f := 1.0
			if !x.OnInput {
				f = x.share(shares[p[0]])[p[1]]
			}
			row := out[p[0]*h : (p[0]+1)*h]
			floats.AddScaled(row, f, y[i*h:(i+1)*h])
			if x.Unshared && x.DownBias != nil {
				floats.Add(row, x.DownBias(x.weights(e)))
			}
		}
	}
	return out
}

func (x *Experts) share(shares []float64) []float64 {
	if x.Share != nil {
		return x.Share(shares)
	}
	return shares
}

// Clamped is the gate of gpt-oss: g·σ(1.702·g)·(u + 1), with g at most 7 and |u| at most 7.
func Clamped(gate, up float64) float64 {
	g := math.Min(gate, clampedAt)
	return g * sigmoid(1.702*g) * (Clip(up, clampedAt) + 1)
}

// clampedAt is where gpt-oss cuts gate and up: swiglu_limit of its config.
const clampedAt = 7.0
