package rebuild

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Routing is the shares of the chosen experts, of what a router says of all of them.
type Routing struct {
	Made
	Scores, Chosen *Value
	op.Router
}

func (o *Routing) Inputs() []*Value { return []*Value{o.Scores, o.Chosen} }

func (o *Routing) Eval(e *Evaluation, rows []int) []float64 {
	x, n := e.Get(o.Scores, rows), o.Scores.Width
	chosen := e.choices(o.Chosen, rows, n)
	if x == nil || chosen == nil {
		return nil
	}
	out := make([]float64, 0, len(rows)*o.Out.Width)
	for i, c := range chosen {
		out = append(out, o.Shares(x[i*n:(i+1)*n], c)...)
	}
	return out
}

// choices reads rows of a value as numbers of experts, each below n; nil if it cannot.
func (e *Evaluation) choices(v *Value, rows []int, n int) [][]int {
	ids := e.ids(v)
	out := make([][]int, len(rows))
	for i, r := range rows {
		for _, x := range ids[r*v.Width : (r+1)*v.Width] {
			if x < 0 || int(x) >= n {
				return nil
			}
			out[i] = append(out[i], int(x))
		}
	}
	return out
}

// chosenBeside finds the integers that choose experts for v: as many for each of its rows.
func (g *Graph) chosenBeside(v *Value, scope string) *Value {
	for _, p := range g.Scene.Pass() {
		if !p.IsFloat() && p.Golden.RowLen() == v.Width && p.Rows() == v.Rows && label.Within(p.Layer, scope) {
			if x := g.find(p); x != nil {
				return x
			}
			x := g.value(p, v.at) // what a layer puts out together
			x.tried = true
			x.add(p)
			return x
		}
	}
	return nil
}

// routed is the layer around a router and its experts, to which a value belongs.
func routed(v *Value) string { return label.Parent(label.Name(v.Taker())) }

// findShares tries the usual routers on what a layer says of all experts.
func findShares(g *Graph, v *Value) (ops []Op) {
	if !v.IsFloat() || v.Width > mostChosen || !module.Routed(v.Taker()) {
		return nil
	}
	chosen := g.chosenBeside(v, routed(v))
	if chosen == nil {
		return nil
	}
	c, rows := g.Scene.Config, op.Spread(v.Rows, ProbeRows)
	golden := v.Golden(rows)
	factors := []float64{1}
	if f, ok := c.Float("routed_scaling_factor"); ok && f > 0 {
		factors = append(factors, f)
	}
	for _, x := range g.before(v) {
		if x.Rows != v.Rows || x.Width < 2 || x.Width < v.Width || !module.Router.Has(x.Owner()) || !label.Within(x.Owner(), routed(v)) {
			continue
		}
		for _, s := range []op.Scoring{op.SoftmaxScores, op.SigmoidScores, op.PlainScores} {
			for _, again := range []bool{false, true} {
				o := Routing{Made{v}, x, chosen, op.Router{K: v.Width, Scoring: s, Renormalised: again, Factor: 1, Bias: g.choiceBias(v, x.Width)}}
				made := o.Eval(g.goldenly(), rows)
				if made == nil {
					return nil
				}
				for _, f := range append(factors, op.Project(made, golden)) {
					try := o
					try.Factor = f
					ops = append(ops, &try)
				}
			}
		}
	}
	return ops
}

// choiceBias is the weight that is added to scores of n experts for the choice; nil for none.
func (g *Graph) choiceBias(v *Value, n int) []float64 {
	scope := routed(v)
	for _, router := range module.Router {
		if _, t := g.Scene.Weights.Of(scope+"."+router, "e_score_correction_bias"); t != nil && t.Len() == n {
			return op.ReadAll(t)
		}
	}
	if _, t := g.Scene.Weights.Of(scope, "e_score_correction_bias"); t != nil && t.Len() == n {
		return op.ReadAll(t)
	}
	return nil
}

// Experts is the op of that name. Its weights have an axis of experts.
type Experts struct {
	From
	Chosen, Shares *Value
	Count          int // of experts
	Act            string
	op.Experts
}

func (o *Experts) Inputs() []*Value { return []*Value{o.In, o.Shares, o.Chosen} }

func (o *Experts) Eval(e *Evaluation, rows []int) []float64 {
	x, shares := e.Get(o.In, rows), e.Get(o.Shares, rows)
	chosen := e.choices(o.Chosen, rows, o.Count)
	if x == nil || shares == nil || chosen == nil || !e.g.Spend(o.Work(len(rows), o.Shares.Width)) {
		return nil
	}
	k := o.Shares.Width
	each := make([][]float64, len(rows))
	for i := range each {
		each[i] = shares[i*k : (i+1)*k]
	}
	return o.Of(x, chosen, each)
}

// Expert is the gate of experts, of the rows that chose them: what their activation is given.
type Expert struct {
	Experts
	Numbers []int // the expert of each row
	Tokens  []int // and the row of x
	// Given changes what an expert is given: rows of x, and the share of each; nil for the rows.
	Given func(x, shares []float64) []float64
}

func (o *Expert) Eval(e *Evaluation, rows []int) []float64 { return o.Part(same, false)(e, rows) }

// Part is gate, or up, with other experts' weights.
func (o *Expert) Part(number func(e int) int, up bool) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		own := make([]int, len(rows))
		for i, r := range rows {
			own[i] = o.Tokens[r]
		}
		x := e.Get(o.In, own)
		if x == nil || !e.g.Spend(o.Work(len(rows), 1)) {
			return nil
		}
		if o.Given != nil {
			shares := o.shares(e, rows, own)
			if shares == nil {
				return nil
			}
			x = o.Given(slices.Clone(x), shares)
		}
		out := make([]float64, len(rows)*o.Inner)
		for first := 0; first < len(rows); {
			end, n := first+1, o.Numbers[rows[first]]
			for end < len(rows) && o.Numbers[rows[end]] == n {
				end++
			}
			g, u := o.Gated(number(n), x[first*o.Hidden:end*o.Hidden])
			if up {
				g = u
			}
			if copy(out[first*o.Inner:], g); g == nil {
				return nil
			}
			first = end
		}
		return out
	}
}

// shares are those of the expert of each row, of the rows of x that belong to them.
func (o *Expert) shares(e *Evaluation, rows, tokens []int) []float64 {
	all, chosen, k := e.Get(o.Shares, tokens), e.choices(o.Chosen, tokens, o.Count), o.Shares.Width
	if all == nil || chosen == nil {
		return nil
	}
	out := make([]float64, len(rows))
	for i, r := range rows {
		j := slices.Index(chosen[i], o.Numbers[r])
		if j < 0 {
			return nil
		}
		out[i] = all[i*k+j]
	}
	return out
}

// Fitting returns for each expert the one whose weights bring its rows nearest to the candidate's.
func (o *Expert) Fitting() []int {
	out := op.Sequence(o.Count)
	v, g := o.Out, o.Graph()
	for n := range out {
		rows := slices.DeleteFunc(op.Sequence(v.Rows), func(r int) bool { return o.Numbers[r] != n })
		if rows = rows[:min(len(rows), ProbeRows)]; len(rows) == 0 {
			continue
		}
		actual, least := v.Wrong(rows), math.Inf(1)
		for k := range out {
			made := o.Part(func(int) int { return k }, false)(g.With(v, nil), rows)
			if made == nil {
				return nil
			}
			if d := op.Relative(made, actual); d < least {
				least, out[n] = d, k
			}
		}
	}
	return out
}

// experts are those of a layer whose weights have an axis of them, with what it was given; nil for
// other layers. The gate is not known yet.
func (g *Graph) experts(v *Value, layer string) *Experts {
	_, up := g.Scene.Weights.Of(layer, "gate_up_proj")
	_, down := g.Scene.Weights.Of(layer, "down_proj")
	in := g.InputOf(layer)
	if up == nil || down == nil || in == nil || !in.IsFloat() || len(up.Shape()) != 3 || len(down.Shape()) != 3 {
		return nil
	}
	n, h := up.Shape()[0], in.Width
	o := &Experts{From: From{Made{v}, in, layer}, Count: n}
	o.Hidden, o.Inner = h, down.Len()/max(n*h, 1)
	i := o.Inner
	switch {
	case down.Shape()[0] != n || i == 0 || up.Len() != n*h*2*i:
		return nil
	case up.Shape()[1] == h && up.Shape()[2] == 2*i && down.Shape()[1] == i:
		o.Conv = true // where both fit, Explain tries the other
	}
	o.GateUp, o.Down = part3(up), part3(down)
	if _, b := g.Scene.Weights.Of(layer, "gate_up_proj_bias"); b != nil && b.Len() == n*2*i {
		o.GateUpBias = part3(b)
	}
	if _, b := g.Scene.Weights.Of(layer, "down_proj_bias"); b != nil && b.Len() == n*h {
		o.DownBias = part3(b)
	}
	scope := label.Parent(label.Name(layer))
	for _, p := range g.Scene.Pass() {
		if label.Name(p.Layer) != layer || !p.IsInput() {
			continue
		}
		x := g.find(p)
		if x == nil || x == in || x.Rows != in.Rows || x.Width > mostChosen {
			continue
		}
		if x.IsFloat() {
			o.Shares = x
		} else {
			o.Chosen = x
		}
	}
	if o.Shares != nil && o.Chosen == nil {
		o.Chosen = g.chosenBeside(o.Shares, scope)
	}
	if o.Shares == nil || o.Chosen == nil || o.Shares.Width != o.Chosen.Width {
		return nil
	}
	return o
}

// part3 reads element e of the first axis, each once.
func part3(t *tensor.Tensor) func(e int) []float64 {
	known := map[int][]float64{}
	return func(e int) []float64 {
		x, ok := known[e]
		if !ok {
			n := t.Len() / t.Shape()[0]
			x = make([]float64, n)
			t.Float64s(x, e*n)
			if len(known)*n < 2*op.DecodeMax/16 {
				known[e] = x
			}
		}
		return x
	}
}

// findExperts tries the gates in use, and the ways in which weights are stored.
func findExperts(g *Graph, v *Value) (ops []Op) {
	layer := v.Layer()
	if layer == "" {
		return g.findExpert(v)
	}
	base := g.experts(v, layer)
	if base == nil || base.In.Rows != v.Rows || v.Width != base.Hidden {
		return nil
	}
	for _, conv := range storedWays(base) {
		for _, turn := range []bool{false, true} {
			o := *base
			o.Conv, o.InTurn, o.Act, o.Gate = conv, turn, "the clamped gate of gpt-oss", op.Clamped
			if o.DownBias != nil || turn {
				clamped := o
				ops = append(ops, &clamped)
			}
			for _, a := range g.activations() {
				o.Act, o.Gate = a.Name, GateOf(a)
				gated := o
				ops = append(ops, &gated)
			}
		}
	}
	return ops
}

// GateOf is f(gate)·up.
func GateOf(a op.Activation) func(gate, up float64) float64 {
	return func(gate, up float64) float64 { return a.F(gate) * up }
}

// storedWays are [in, out] or [out, in], or both for square weights.
func storedWays(o *Experts) []bool {
	if o.Hidden == 2*o.Inner {
		return []bool{o.Conv, !o.Conv}
	}
	return []bool{o.Conv}
}

// configActivations are the names of activations in configs that are other than those of op.
var configActivations = map[string]string{"gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "gelu_fast": "gelu-tanh",
	"quick_gelu": "quick-gelu", "swish": "silu", "gelu_python": "gelu"}

// activations are that of the config, or all.
func (g *Graph) activations() []op.Activation {
	name := g.Scene.Config.String("hidden_act", "hidden_activation", "activation_function")
	if known, ok := configActivations[name]; ok {
		name = known
	}
	if i := slices.IndexFunc(op.Activations, func(a op.Activation) bool { return a.Name == name }); i >= 0 {
		return op.Activations[i : i+1]
	}
	return op.Activations
}

// findExpert is the expert whose activation takes v, where the call of the activation says which of
// those that are chosen at all; or all of them, one behind the other.
func (g *Graph) findExpert(v *Value) (ops []Op) {
	taker, call := label.CutCall(v.Taker())
	base := g.experts(v, label.Parent(taker))
	if base == nil || v.Width != base.Inner {
		return nil
	}
	chosen := g.goldenly().choices(base.Chosen, op.Sequence(base.Chosen.Rows), base.Count)
	add := func(numbers, tokens []int) {
		if len(tokens) != v.Rows {
			return
		}
		for _, conv := range storedWays(base) {
			for _, turn := range []bool{false, true} {
				o := &Expert{Experts: *base, Numbers: numbers, Tokens: tokens}
				o.Conv, o.InTurn = conv, turn
				o.arrange()
				ops = append(ops, o)
			}
		}
	}
	var numbers, tokens []int
	for e := range base.Count {
		var places, rows []int // by place among the chosen first, as torch.where lists them; by row
		for j := range base.Chosen.Width {
			for t, c := range chosen {
				if c[j] == e {
					places = append(places, t)
				}
			}
		}
		if len(places) == 0 {
			continue
		}
		rows = slices.Sorted(slices.Values(places))
		numbers, tokens = append(numbers, slices.Repeat([]int{e}, len(rows))...), append(tokens, rows...)
		if call--; call == 0 {
			own := slices.Repeat([]int{e}, len(rows))
			add(own, places)
			add(own, rows)
		}
	}
	add(numbers, tokens)
	return ops
}

// arrange gives each row the token of its expert that it is made of: a sort by experts need not keep
// the order of the tokens.
func (o *Expert) arrange() {
	v := o.Out
	made := o.Eval(v.g.goldenly(), op.Sequence(v.Rows))
	if made == nil || v.golden.Len() > op.DecodeMax {
		return
	}
	golden, w, tokens := v.Golden(op.Sequence(v.Rows)), v.Width, slices.Clone(o.Tokens)
	for first := 0; first < v.Rows; {
		end := first + 1
		for end < v.Rows && o.Numbers[end] == o.Numbers[first] {
			end++
		}
		if end-first > mostArranged {
			return
		}
		for r := first; r < end; r++ {
			best := math.Inf(1)
			for k := first; k < end; k++ {
				if d := floats.Distance(golden[r*w:(r+1)*w], made[k*w:(k+1)*w], 2); d < best {
					best, tokens[r] = d, o.Tokens[k]
				}
			}
		}
		first = end
	}
	o.Tokens = tokens
}

// Gated is out = A + σ(G)·B: routed experts, and a shared one with a gate of one number a row.
type Gated struct {
	Made
	A, B, G *Value
}

func (o *Gated) Inputs() []*Value { return []*Value{o.A, o.B, o.G} }

func (o *Gated) Eval(e *Evaluation, rows []int) []float64 {
	return o.By(1, 1, func(g float64) float64 { return 1 / (1 + math.Exp(-g)) })(e, rows)
}

// By is a·A + b·gate(G)·B.
func (o *Gated) By(a, b float64, gate func(float64) float64) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		x, y, g := e.Beside(o.A, o.Out, rows), e.Beside(o.B, o.Out, rows), e.Beside(o.G, o.Out, rows)
		if x == nil || len(y) != len(x) || len(g) != len(rows) {
			return nil
		}
		out, w := make([]float64, len(x)), o.Out.Width
		for i := range out {
			out[i] = a*x[i] + b*gate(g[i/w])*y[i]
		}
		return out
	}
}

// findGated looks for two values of which one is multiplied by the sigmoid of a third, of one column.
func findGated(g *Graph, v *Value) []Op {
	var gates []*Value
	for _, x := range g.before(v) {
		if x.Width == 1 && x.Rows == v.Rows {
			gates = append(gates, x)
		}
	}
	if len(gates) == 0 || v.Width < 2 {
		return nil
	}
	rows := op.Spread(v.Rows, termRows)
	best := nearestTo(v.Golden(rows), v)
	alikes := g.Alikes(v)
	if !g.Spend(float64(len(gates)*len(alikes)*len(alikes)) * float64(len(best.target))) {
		return nil
	}
	for _, gate := range gates {
		for _, a := range alikes {
			for _, b := range alikes {
				if a != b {
					o := &Gated{Made{v}, a, b, gate}
					best.try(o.Eval(g.goldenly(), rows), func() Op { return o })
				}
			}
		}
	}
	return best.ops()
}

// RouterOf lists the ways in which the reference may choose experts, where the target is that choice,
// and the scores by which it does; nil for other targets.
func RouterOf(s *diagnose.Scene) (scores *diagnose.Port, routers []op.Router) {
	t := s.Target
	if t == nil || t.IsFloat() || t.Golden.RowLen() == 0 || t.Golden.RowLen() > mostChosen || !module.Routed(t.Layer) {
		return nil, nil
	}
	scope := label.Parent(label.Name(t.Layer))
	for _, p := range s.Pass() {
		if p.IsFloat() && !p.IsInput() && p.Rows() == t.Rows() && p.Width() > t.Width() && module.Router.Has(p.Layer) && label.Within(p.Layer, scope) {
			scores = p
			break
		}
	}
	if scores == nil {
		return nil, nil
	}
	n := scores.Width()
	var bias []float64
	for _, layer := range []string{scores.Layer, scope} {
		if _, b := s.Weights.Of(layer, "e_score_correction_bias"); b != nil && b.Len() == n {
			bias = op.ReadAll(b)
		}
	}
	plain := op.Router{K: t.Width(), Factor: 1}
	limited := plain
	limited.Groups, _ = s.Config.Int("n_group", "num_expert_group")
	limited.Kept, _ = s.Config.Int("topk_group")
	all := []op.Router{plain}
	if limited.Groups > 1 && limited.Kept > 0 {
		one := limited
		one.BestOne = true
		all = append(all, limited, one)
	}
	for _, r := range all {
		for _, r.Scoring = range []op.Scoring{op.SoftmaxScores, op.SigmoidScores} {
			r.Bias = nil
			routers = append(routers, r)
			if r.Bias = bias; bias != nil {
				routers = append(routers, r)
			}
		}
	}
	return scores, routers
}
