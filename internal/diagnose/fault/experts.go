package fault

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// Routing is other shares of the experts that are chosen.
func Routing(o *rebuild.Routing) (out List) {
	add := func(id string, rank int, text string, change func(r *rebuild.Routing)) {
		out.add(with(o, change), rank, "%s", text).ID = id
	}
	if o.Renormalised {
		add("moe/renorm", 0, "the shares of the chosen experts are not divided by their sum: they come from all experts",
			func(r *rebuild.Routing) { r.Renormalised = false })
	} else {
		add("moe/renorm", 0, "the shares of the chosen experts are divided by their sum", func(r *rebuild.Routing) { r.Renormalised = true })
	}
	for i, name := range []string{"a softmax", "sigmoids", "the logits themselves"} {
		s := op.Scoring(i)
		for _, again := range []bool{false, true} {
			if s != o.Scoring {
				text := "the shares are of " + name
				if again {
					text += ", divided by their sum"
				}
				add("moe/scores", int(s), text, func(r *rebuild.Routing) { r.Scoring, r.Renormalised = s, again })
			}
		}
	}
	if f := o.Factor; math.Abs(f-1) > sameFactor {
		add("moe/scaling", 0, fmt.Sprintf("the factor %.4g of the shares is missing", f), func(r *rebuild.Routing) { r.Factor = 1 })
		add("moe/scaling", 0, fmt.Sprintf("the factor %.4g of the shares is applied twice", f), func(r *rebuild.Routing) { r.Factor = f * f })
		add("moe/scaling", 1, fmt.Sprintf("the shares are divided by %.4g", f), func(r *rebuild.Routing) { r.Factor = 1 / f })
		add("moe/renorm", 1, fmt.Sprintf("the factor %.4g is missing, and whether the shares are divided by their sum is the other way", f),
			func(r *rebuild.Routing) { r.Factor, r.Renormalised = 1, !r.Renormalised })
	}
	if o.Bias != nil {
		add("moe/bias", 0, "the bias of the choice is in the shares, too", func(r *rebuild.Routing) { r.Biased = true })
	}
	k := o.Out.Width
	right := rebuild.Eval(o.Eval)
	out.add(right.Then(func(x []float64) []float64 {
		x = slices.Clone(x)
		for i := 0; i < len(x); i += k {
			op.Softmax(x[i : i+k])
		}
		return x
	}), 0, "a softmax is taken of the shares again").ID = "moe/scores"
	each := func(id, text string, of func(row []float64)) {
		out.add(right.Then(func(x []float64) []float64 {
			x = slices.Clone(x)
			for i := 0; i < len(x); i += k {
				of(x[i : i+k])
			}
			return x
		}), 0, "%s", text).ID = id
	}
	if k > 1 {
		each("moe/shares", "each chosen expert has the share of another one: they stand in turned order", slices.Reverse[[]float64])
		each("moe/shares", "all chosen experts have the same share", func(row []float64) {
			mean := floats.Sum(row) / float64(k)
			for i := range row {
				row[i] = mean
			}
		})
	}
	for n := 1; n < k; n++ {
		for _, again := range []bool{true, false} {
			text := fmt.Sprintf("only the first %d of %d chosen experts have a share", n, k)
			if !again {
				text += ", which is that of all together"
			}
			each("moe/k", text, func(row []float64) {
				sum := floats.Sum(row)
				clear(row[n:])
				if !again {
					floats.Scale(sum/floats.Sum(row), row)
				}
			})
		}
	}
	each("moe/shares", "the shares are left out: each is 1", func(row []float64) {
		for i := range row {
			row[i] = 1
		}
	})
	return out
}

// orders are wrong orders of n experts, by what they say.
func orders(n int, do func(rank int, text string, of func(e int) int)) {
	for _, by := range []int{1, n - 1} {
		do(0, fmt.Sprintf("each expert has the weights of the one %d further on, of %d", by, n), func(e int) int { return (e + by) % n })
	}
	do(0, "the experts stand in turned order", func(e int) int { return n - 1 - e })
	do(1, "all experts have the weights of the first", func(int) int { return 0 })
	for a := range min(n, fewExperts) {
		for b := range a {
			do(0, fmt.Sprintf("experts %d and %d are exchanged", b, a), func(e int) int {
				switch e {
				case a:
					return b
				case b:
					return a
				}
				return e
			})
		}
	}
}

// Experts is routed experts with other weights, shares or gates.
func Experts(o *rebuild.Experts) (out List) {
	add := func(id string, rank int, text string, change func(x *rebuild.Experts)) {
		out.add(with(o, change), rank, "%s", text).ID = id
	}
	k := o.Shares.Width
	for n := 1; n < k; n++ {
		add("moe/k", 0, fmt.Sprintf("only %d of %d chosen experts are used", k-n, k), func(x *rebuild.Experts) { x.Without = n })
		add("moe/k", 1, fmt.Sprintf("only %d of %d chosen experts are used, their shares divided by their sum", k-n, k), func(x *rebuild.Experts) {
			x.Without, x.Share = n, func(s []float64) []float64 {
				return op.Scaled(s, floats.Sum(s)/floats.Sum(s[:k-n]))
			}
		})
	}
	ones := func(s []float64) []float64 { return op.Map(s, func(float64) float64 { return 1 }) }
	add("moe/shares", 0, "the shares are left out: each is 1", func(x *rebuild.Experts) { x.Share = ones })
	add("moe/shares", 0, "the input of each expert is multiplied by its share, and not its output", func(x *rebuild.Experts) { x.OnInput = true })
	add("moe/shares", 0, "the shares are applied twice", func(x *rebuild.Experts) {
		x.Share = func(s []float64) []float64 { return op.Times(s, s) }
	})
	add("moe/renorm", 0, "the shares are divided by their sum", func(x *rebuild.Experts) {
		x.Share = func(s []float64) []float64 { return op.Scaled(s, 1/floats.Sum(s)) }
	})
	if k > 1 {
		add("moe/shares", 0, "each chosen expert has the share of another one: they stand in turned order", func(x *rebuild.Experts) {
			x.Share = func(s []float64) []float64 {
				s = slices.Clone(s)
				slices.Reverse(s)
				return s
			}
		})
	}
	for e := range min(o.Count, fewExperts) {
		add("moe/expert-order", 1, fmt.Sprintf("expert %d adds nothing", e), func(x *rebuild.Experts) {
			right := o.Down
			x.Down = func(n int) []float64 {
				if n == e {
					return make([]float64, o.Inner*o.Hidden)
				}
				return right(n)
			}
		})
	}
	if o.DownBias != nil {
		add("moe/shares", 0, "the bias of the experts' last product is not multiplied by the share", func(x *rebuild.Experts) { x.Unshared = true })
	}
	roundedExperts(o, &out)
	expertGates(o, &out, add)
	orders(o.Count, func(rank int, text string, of func(e int) int) {
		add("moe/expert-order", rank, text, func(x *rebuild.Experts) { x.Weights = of })
		add("moe/expert-order", rank+1, text+", their last product alone", func(x *rebuild.Experts) {
			x.Down = func(e int) []float64 { return o.Down(of(e)) }
		})
		add("moe/expert-order", rank+1, text+", their gate and up alone", func(x *rebuild.Experts) {
			x.GateUp = func(e int) []float64 { return o.GateUp(of(e)) }
		})
	})
	return out
}

// roundedExperts adds experts of which a part is kept in a type of fewer bits.
func roundedExperts(o *rebuild.Experts, out *List) {
	t := o.Scene().Target
	for _, n := range op.NarrowerThan(t.Golden.DType(), t.Actual.DType()) {
		round := func(of func(e int) []float64) func(e int) []float64 {
			return func(e int) []float64 { return op.Map(of(e), n.Round) }
		}
		add := func(text string, change func(x *rebuild.Experts)) {
			out.add(with(o, change), 2, "%s rounded to %s", text, n.Name).ID = "dtype/downcast"
		}
		weights := func(x *rebuild.Experts) { x.GateUp, x.Down = round(o.GateUp), round(o.Down) }
		add("the input of the experts is", func(x *rebuild.Experts) { x.Round = n.Round })
		add("the weights of the experts are", weights)
		add("input and weights of the experts are", func(x *rebuild.Experts) { weights(x); x.Round = n.Round })
		add("what the gate of the experts makes is", func(x *rebuild.Experts) {
			x.Gate = func(g, u float64) float64 { return n.Round(o.Gate(g, u)) }
		})
		add("all operands of the experts are", func(x *rebuild.Experts) {
			weights(x)
			x.Round, x.Gate = n.Round, func(g, u float64) float64 { return n.Round(o.Gate(n.Round(g), n.Round(u))) }
		})
	}
}

// expertGates adds what is done inside an expert.
func expertGates(o *rebuild.Experts, out *List, add func(id string, rank int, text string, change func(x *rebuild.Experts))) {
	right := o.Gate
	const order = "linear/gate-up"
	add(order, 0, "gate and up of the experts are exchanged", func(x *rebuild.Experts) {
		x.Gate = func(g, u float64) float64 { return right(u, g) }
	})
	read := "in turn, and not as halves"
	if o.InTurn {
		read = "as halves, and not in turn"
	}
	add(order, 0, "gate and up of the experts are read "+read, func(x *rebuild.Experts) { x.InTurn = !x.InTurn })
	for _, a := range op.Activations {
		if a.Name != o.Act {
			add("activation/"+a.Name, 0, fmt.Sprintf("the experts have %s, %s, in place of %s", a.Name, a.Formula, o.Act),
				func(x *rebuild.Experts) { x.Gate = rebuild.GateOf(a) })
		}
	}
	if strings.Contains(o.Act, "clamped") {
		const clamp, one = "value/clipped", "activation/missing"
		add(one, 0, "the 1 + of the experts' gate is missing: g·σ(1.702·g)·u", func(x *rebuild.Experts) {
			x.Gate = func(g, u float64) float64 { return right(g, u-1) }
		})
		cut := o.Out.Searched("gate and up of the experts are cut at another number", leastCut, mostCut, func(n int) float64 { return o.Work(n, o.Shares.Width) },
			func(c float64) rebuild.Eval {
				return with(o, func(x *rebuild.Experts) {
					x.Gate = func(g, u float64) float64 { g = min(g, c); return g * op.Sigmoid(1.702*g) * (op.Clip(u, c) + 1) }
				})
			})
		cut.ID = clamp
		*out = append(*out, cut)
		add(clamp, 0, "gate and up of the experts are not cut", func(x *rebuild.Experts) {
			x.Gate = func(g, u float64) float64 { return g / (1 + math.Exp(-1.702*g)) * (u + 1) }
		})
		add("activation/silu", 0, "the gate of the experts is silu, g·σ(g), in place of g·σ(1.702·g)", func(x *rebuild.Experts) {
			x.Gate = func(g, u float64) float64 { return g / (1 + math.Exp(-g)) * (u + 1) }
		})
	}
	if o.GateUpBias != nil || o.DownBias != nil {
		const id = "linear/bias-missing"
		add(id, 0, "the biases of the experts are missing", func(x *rebuild.Experts) { x.GateUpBias, x.DownBias = nil, nil })
		add(id, 0, "the bias of the experts' last product is missing", func(x *rebuild.Experts) { x.DownBias = nil })
		add(id, 0, "the bias of the experts' gate and up is missing", func(x *rebuild.Experts) { x.GateUpBias = nil })
	}
	if o.Hidden == 2*o.Inner {
		add("linear/transposed", 0, "the weights of the experts are read the other way", func(x *rebuild.Experts) { x.Conv = !x.Conv })
	}
}

// Expert is the gate of experts, made with other weights.
func Expert(o *rebuild.Expert) (out List) {
	orders(o.Count, func(rank int, text string, of func(e int) int) {
		if slices.ContainsFunc(o.Numbers, func(e int) bool { return of(e) != e }) {
			out.add(o.Part(of, false), rank, "%s", text).ID = "moe/expert-order"
		}
	})
	own := func(e int) int { return e }
	if o.Out.IsTarget() {
		fitting := o.Fitting()
		if fitting != nil && !slices.Equal(fitting, op.Sequence(o.Count)) {
			out.add(o.Part(func(e int) int { return fitting[e] }, false), 1,
				"the experts 0, 1, … have the weights of %v", fitting).ID = "moe/expert-order"
		}
	}
	for e := range min(o.Count, fewExperts) {
		if slices.Contains(o.Numbers, e) {
			right := o.GateUp
			out.add(with(o, func(x *rebuild.Expert) {
				x.GateUp = func(n int) []float64 {
					if n == e {
						return make([]float64, 2*o.Inner*o.Hidden)
					}
					return right(n)
				}
			}), 0, "expert %d has no weights: zeros", e).ID = "moe/expert-order"
		}
	}
	out.add(with(o, func(x *rebuild.Expert) {
		x.Given = func(x, shares []float64) []float64 {
			for i := range x {
				x[i] *= shares[i/o.Hidden]
			}
			return x
		}
	}), 0, "the input of each expert is multiplied by its share, and not its output").ID = "moe/shares"
	t := o.Scene().Target
	for _, n := range op.NarrowerThan(t.Golden.DType(), t.Actual.DType()) {
		round := func(x []float64) []float64 { return op.Map(x, n.Round) }
		input := func(x, _ []float64) []float64 { return round(x) }
		weights := func(of func(e int) []float64) func(e int) []float64 {
			return func(e int) []float64 { return round(of(e)) }
		}
		const id = "dtype/downcast"
		out.add(with(o, func(x *rebuild.Expert) { x.Given = input }), 2, "the input of the experts is rounded to %s", n.Name).ID = id
		out.add(with(o, func(x *rebuild.Expert) { x.GateUp = weights(o.GateUp) }), 2, "gate and up of the experts are rounded to %s", n.Name).ID = id
		out.add(with(o, func(x *rebuild.Expert) { x.Given, x.GateUp = input, weights(o.GateUp) }), 2,
			"the input of the experts, and their gate and up, are rounded to %s", n.Name).ID = id
		out.add(rebuild.Eval(with(o, func(x *rebuild.Expert) { x.Given, x.GateUp = input, weights(o.GateUp) })).Then(round), 2,
			"the first product of the experts is in %s", n.Name).ID = id
	}
	out.add(o.Part(own, true), 0, "the activation of the experts is given up and not gate").ID = "linear/gate-up"
	read := "in turn, and not as halves"
	if o.InTurn {
		read = "as halves, and not in turn"
	}
	out.add(with(o, func(x *rebuild.Expert) { x.InTurn = !x.InTurn }), 0, "gate and up of the experts are read %s", read).ID = "linear/gate-up"
	if o.GateUpBias != nil {
		out.add(with(o, func(x *rebuild.Expert) { x.GateUpBias = nil }), 0, "the bias of the experts' gate and up is missing").ID = "linear/bias-missing"
	}
	if o.Hidden == 2*o.Inner {
		out.add(with(o, func(x *rebuild.Expert) { x.Conv = !x.Conv }), 0, "the weights of the experts are read the other way").ID = "linear/transposed"
	}
	return out
}

// SharedExpert is routed experts and a gated shared one, of which something is left out.
func SharedExpert(o *rebuild.Gated) (out List) {
	sigmoid := func(g float64) float64 { return 1 / (1 + math.Exp(-g)) }
	one := func(float64) float64 { return 1 }
	out.add(o.By(1, 0, sigmoid), 0, "%s is not added", o.B).Unless = unrecorded(o.B)
	out.add(o.By(0, 1, sigmoid), 0, "%s is not added", o.A).Unless = unrecorded(o.A)
	out.add(o.By(1, 1, one), 0, "%s is added without its gate", o.B)
	out.add(o.By(1, 1, func(g float64) float64 { return g }), 0, "the gate of %s is not put through a sigmoid", o.B)
	out.add(o.By(1, 2, sigmoid), 1, "%s is added twice", o.B)
	for _, a := range op.Activations {
		out.add(o.By(1, 1, a.F), 1, "the gate of %s is put through %s and not through a sigmoid", o.B, a.Name)
	}
	out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
		x, g, w := o.By(1, 1, one)(e, rows), e.Beside(o.G, o.Out, rows), o.Out.Width
		if x == nil || len(g) != len(rows) {
			return nil
		}
		for i := range x {
			x[i] *= sigmoid(g[i/w])
		}
		return x
	}, 1, "the gate of the shared expert multiplies the routed ones, too")
	return out
}

// Choice is other experts than the reference chooses, of the same scores.
func Choice(s *diagnose.Scene) (out []diagnose.Prediction) {
	scores, routers := rebuild.RouterOf(s)
	if scores == nil || s.Target.Actual == nil || s.Target.Actual.Len() != s.Target.Golden.Len() {
		return nil
	}
	t := s.Target
	golden, actual, k := s.Array(t.Golden).Data, s.Array(t.Actual).Data, t.Width()
	given, right := s.Array(s.ActualTensor(scores)), s.Array(scores.Golden)
	// agree counts the rows in which a router chooses the same experts.
	agree := func(r op.Router, x *diagnose.Array, has []float64) (n int) {
		for i := range t.Rows() {
			if sameSet(r.Choose(x.Row(i)), has[i*k:(i+1)*k]) {
				n++
			}
		}
		return n
	}
	consistent := slices.DeleteFunc(slices.Clone(routers), func(r op.Router) bool { return agree(r, right, golden) != t.Rows() })
	add := func(r op.Router, id, text string) {
		if len(out) > 0 || agree(r, given, actual) != t.Rows() {
			return
		}
		p := diagnose.Prediction{ID: id, Text: text, Rank: -2}
		if len(consistent) > 0 {
			p.Value = s.Array(t.Actual) // the sets are the same: the order of the chosen is no matter
		}
		out = append(out, p)
	}
	for _, own := range consistent {
		if agree(own, given, actual) == t.Rows() {
			return nil // the scores are others, and the choice is right
		}
		otherChoices(own, add)
	}
	if len(consistent) == 0 {
		for _, r := range routers {
			add(r, "moe/bias", "the experts of the best scores are chosen, and the reference chooses others: the bias of its choice is not added")
		}
	}
	return out
}

// otherChoices are choices that are made otherwise than by a router.
func otherChoices(own op.Router, add func(r op.Router, id, text string)) {
	try := func(id, text string, change func(r *op.Router)) {
		r := own
		change(&r)
		add(r, id, text)
	}
	if own.Bias != nil {
		try("moe/bias", "the bias of the choice is not added", func(r *op.Router) { r.Bias = nil })
		try("moe/bias", "neither is the bias of the choice added, nor are groups left out", func(r *op.Router) { r.Bias, r.Groups = nil, 0 })
		try("moe/bias", "the bias of the choice is subtracted", func(r *op.Router) { r.Bias = op.Scaled(r.Bias, -1) })
		try("moe/scores", "the choice goes by a softmax for sigmoids, or by sigmoids for a softmax", func(r *op.Router) { r.Scoring = 1 - r.Scoring })
	}
	if own.Groups > 0 {
		try("moe/groups", "experts of all groups are chosen", func(r *op.Router) { r.Groups = 0 })
		try("moe/groups", "the groups are chosen by other scores: of the best expert, or of the two best", func(r *op.Router) { r.BestOne = !r.BestOne })
	}
	try("moe/scores", "the experts of the lowest scores are chosen", func(r *op.Router) { r.Lowest = true })
}

// sameSet reports whether two choices are the same, in any order.
func sameSet(a []int, b []float64) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(e int) bool { return !slices.Contains(b, float64(e)) })
}
