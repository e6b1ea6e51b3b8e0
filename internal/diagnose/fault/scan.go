package fault

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// The ids of a scan with something done wrong.
const ssmSkip, ssmStep, ssmDecay, ssmGate, ssmState = "ssm/skip", "ssm/step", "ssm/decay", "ssm/gate", "ssm/state"

// Scan is a selective scan with something left out, or made otherwise.
func Scan(o *rebuild.Scan) (out List) {
	add := func(id string, text string, change func(s *rebuild.Scan)) {
		out.add(with(o, change), 0, "%s", text).ID = id
	}
	gate, silu := func(y, skip, _ float64) float64 { return y + skip }, func(float64) float64 { return 1 }
	if o.IsGated() {
		silu = op.Silu
		gate = func(y, skip, z float64) float64 { return (y + skip) * op.Silu(z) }
	}
	gated := func(text, id string, of func(y, skip, z float64) float64) {
		add(id, text, func(s *rebuild.Scan) { s.Output = of })
	}
	gated("D·x is not added", ssmSkip, func(y, _, z float64) float64 { return y * silu(z) })
	gated("D·x is added twice", ssmSkip, func(y, x, z float64) float64 { return gate(y, 2*x, z) })
	gated("D·x is subtracted", ssmSkip, func(y, x, z float64) float64 { return gate(y, -x, z) })
	gated("the scan is left out: only D·x is there", ssmState, func(_, x, z float64) float64 { return gate(0, x, z) })
	if o.IsGated() {
		gated("D·x is added behind the gate", ssmSkip, func(y, x, z float64) float64 { return y*silu(z) + x })
		gated("the gate is missing", ssmGate, func(y, x, _ float64) float64 { return y + x })
		gated("the gate has no activation", ssmGate, func(y, x, z float64) float64 { return (y + x) * z })
		gated("the gate is σ(z) and not z·σ(z)", ssmGate, func(y, x, z float64) float64 { return (y + x) * op.Sigmoid(z) })
	}
	add(ssmSkip, "D is 1 for every channel", func(s *rebuild.Scan) { s.D = op.Map(o.D, func(float64) float64 { return 1 }) })
	add(ssmStep, "Δ is dt itself: the softplus is missing", func(s *rebuild.Scan) { s.Step = func(dt float64) float64 { return dt } })
	add(ssmStep, "Δ is exp(dt) and not softplus(dt)", func(s *rebuild.Scan) { s.Step = math.Exp })
	add(ssmStep, "Δ is σ(dt) and not softplus(dt)", func(s *rebuild.Scan) { s.Step = op.Sigmoid })
	add(ssmStep, "Δ is max(dt, 0) and not softplus(dt)", func(s *rebuild.Scan) { s.Step = func(dt float64) float64 { return max(dt, 0) } })
	if o.DtBias != nil {
		add(ssmStep, "the bias of dt is missing", func(s *rebuild.Scan) { s.Biases-- })
		add(ssmStep, "the bias of dt is added twice", func(s *rebuild.Scan) { s.Biases++ })
		add(ssmStep, "the bias of dt has the other sign", func(s *rebuild.Scan) { s.Biases -= 2 })
	}
	add(ssmDecay, "A is A_log itself, and not −exp(A_log)", func(s *rebuild.Scan) { s.Decay = func(a float64) float64 { return a } })
	add(ssmDecay, "A is −A_log, and not −exp(A_log)", func(s *rebuild.Scan) { s.Decay = func(a float64) float64 { return -a } })
	add(ssmDecay, "A is exp(A_log), without the minus", func(s *rebuild.Scan) { s.Decay = math.Exp })
	add(ssmDecay, "the state does not decay", func(s *rebuild.Scan) { s.Decay = func(float64) float64 { return 0 } })
	add(ssmDecay, "what is kept of the state is 1 + Δ·A and not exp(Δ·A)", func(s *rebuild.Scan) { s.Keep = func(x float64) float64 { return 1 + x } })
	add(ssmDecay, "what is kept of the state is exp(A), without Δ", func(s *rebuild.Scan) {
		step := s.Step
		if step == nil {
			step = op.Softplus
		}
		s.Step, s.Plain = func(float64) float64 { return 1 }, step
	})
	if n := o.States; n > 1 && !o.Shared() {
		add(ssmDecay, "A of each channel is that of its first state", func(s *rebuild.Scan) { s.ALog = spreadFirst(o.ALog, n) })
		add(ssmDecay, "A is read as [states, channels]", func(s *rebuild.Scan) {
			s.ALog = make([]float64, len(o.ALog))
			for i := range s.ALog {
				s.ALog[i] = o.ALog[i%n*o.Channels+i/n]
			}
		})
	}
	into := func(text string, of func(step, b, x float64) float64) {
		add(ssmStep, text, func(s *rebuild.Scan) { s.Into = of })
	}
	into("what enters the state is B·x, without Δ", func(_, b, x float64) float64 { return b * x })
	into("what enters the state is Δ·x, without B", func(step, _, x float64) float64 { return step * x })
	add(ssmState, "the state is not kept from token to token", func(s *rebuild.Scan) { s.Fresh = true })
	add(ssmState, "the tokens are taken from the last to the first", func(s *rebuild.Scan) { s.Back = true })
	add(ssmState, "B and C are exchanged", func(s *rebuild.Scan) { s.Exchanged = true })
	if o.Normed {
		add(ssmState, "neither B nor C is normed", func(s *rebuild.Scan) { s.KeepB, s.KeepC = true, true })
		add(ssmState, "B is not normed", func(s *rebuild.Scan) { s.KeepB = true })
		add(ssmState, "C is not normed", func(s *rebuild.Scan) { s.KeepC = true })
	}
	if o.Groups > 1 && o.Groups < o.Heads {
		for i, of := range []string{"B and C", "B", "C"} {
			for _, g := range []struct {
				text string
				op.Grouping
			}{{"are repeated in turn and not each in a row", op.Grouping{Tiled: true}}, {"are those of the first for all heads", op.Grouping{One: true}},
				{"are those of the next group", op.Grouping{Roll: 1}}} {
				add(ssmState, fmt.Sprintf("the groups of %s %s", of, g.text), func(s *rebuild.Scan) {
					if i != 2 {
						s.OfB = g.Grouping
					}
					if i != 1 {
						s.OfC = g.Grouping
					}
				})
			}
		}
	}
	t := o.Scene().Target
	for _, n := range op.NarrowerThan(t.Golden.DType(), t.Actual.DType()) {
		add("dtype/downcast", "the state is rounded to "+n.Name, func(s *rebuild.Scan) { s.Round = n.Round })
	}
	return out
}

// spreadFirst repeats the first of each n.
func spreadFirst(x []float64, n int) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] = x[i-i%n]
	}
	return out
}

// WKV is the linear attention of RWKV done otherwise.
func WKV(o *rebuild.WKV) (out List) {
	add := func(id, text string, change func(w *rebuild.WKV)) {
		out.add(with(o, change), 0, "%s", text).ID = id
	}
	decay := func(text string, of func(raw float64) float64) {
		add(ssmDecay, text, func(w *rebuild.WKV) { w.Decay = op.Map(o.Raw, of) })
	}
	decay("the decay is time_decay itself, and not −exp(time_decay)", func(x float64) float64 { return x })
	decay("the decay is −time_decay, and not −exp(time_decay)", func(x float64) float64 { return -x })
	decay("the decay is −exp(−exp(time_decay)): the exponential is there twice", func(x float64) float64 { return -math.Exp(-math.Exp(x)) })
	decay("the decay is −exp(exp(time_decay)): the exponential is there twice", func(x float64) float64 { return -math.Exp(math.Exp(x)) })
	decay("nothing decays", func(float64) float64 { return 0 })
	add(ssmSkip, "time_first is left out", func(w *rebuild.WKV) { w.First = make([]float64, len(o.First)) })
	add(ssmSkip, "time_first is added twice", func(w *rebuild.WKV) { w.First = op.Scaled(o.First, 2) })
	add(ssmSkip, "time_first has the other sign", func(w *rebuild.WKV) { w.First = op.Scaled(o.First, -1) })
	add(ssmState, "nothing is kept from token to token", func(w *rebuild.WKV) { w.Fresh = true })
	add(ssmState, "the tokens are taken from the last to the first", func(w *rebuild.WKV) { w.Back = true })
	add(ssmState, "key and value are exchanged", func(w *rebuild.WKV) { w.K, w.V = o.V, o.K })
	add(ssmGate, "the receptance is not put through a sigmoid", func(w *rebuild.WKV) { w.Gate = func(r float64) float64 { return r } })
	add(ssmGate, "the receptance is missing", func(w *rebuild.WKV) { w.Gate = func(float64) float64 { return 1 } })
	return out
}

// TimeMix is the mixture of a token and the one before it done otherwise.
func TimeMix(o *rebuild.TimeMix) (out List) {
	mixed := func(text string, of func(m float64) float64) {
		out.add(with(o, func(m *rebuild.TimeMix) { m.Mix = op.Map(o.Mix, of) }), 0, "%s", text)
	}
	mixed("the shares of a token and of the one before it are exchanged", func(m float64) float64 { return 1 - m })
	mixed("the token before is not mixed in", func(float64) float64 { return 1 })
	mixed("only the token before is taken", func(float64) float64 { return 0 })
	mixed("both have half of it", func(float64) float64 { return 0.5 })
	for _, by := range []int{-1, 2} {
		out.add(with(o, func(m *rebuild.TimeMix) { m.Shift = by }), 0, "a token is mixed with the one %+d from it, and not with the one before", -by)
	}
	for _, name := range []string{"key", "value", "receptance"} {
		if m := o.Others[name]; m != nil && !slices.Equal(m, o.Mix) {
			out.add(with(o, func(t *rebuild.TimeMix) { t.Mix = m }), 0, "the shares are those of the %s", name)
		}
	}
	return out
}

// GatedNorm is the norm of Mamba-2 with its gate left out, or in another place.
func GatedNorm(o *rebuild.GatedNorm) (out List) {
	in, not := "behind the norm", "in front of it"
	if o.Behind {
		in, not = "in front of the norm", "behind it"
	}
	add := func(id, text string, change func(n *rebuild.GatedNorm)) {
		out.add(with(o, change), 0, "%s", text).ID = id
	}
	add(ssmGate, "the gate is "+in+" and not "+not, func(n *rebuild.GatedNorm) { n.Behind = !n.Behind })
	add(ssmGate, "the gate is missing", func(n *rebuild.GatedNorm) { n.F = func(float64) float64 { return 1 } })
	add(ssmGate, "the gate has no activation", func(n *rebuild.GatedNorm) { n.F = func(z float64) float64 { return z } })
	add(ssmGate, "the gate is σ(z) and not z·σ(z)", func(n *rebuild.GatedNorm) { n.F = op.Sigmoid })
	add("norm/weight", "the weight of the norm is missing", func(n *rebuild.GatedNorm) { n.Weight = nil })
	add("norm/kind", "a layer norm in place of an RMS norm", func(n *rebuild.GatedNorm) { n.Center = true })
	for _, eps := range op.Epsilons {
		if eps != o.Eps {
			add("norm/eps", fmt.Sprintf("eps is %g and not %g", eps, o.Eps), func(n *rebuild.GatedNorm) { n.Eps = eps })
		}
	}
	return out
}

// Turned is what stands beside a convolution: its activation, the half of a projection that it takes,
// and where its tokens begin.
func Turned(o *rebuild.Turned) (out List) {
	own := o.Activation
	if own.Name != op.Identity.Name {
		out.add(with(o, func(t *rebuild.Turned) { t.Activation = op.Identity }), 0, "the activation is missing").ID = "activation/missing"
	}
	for _, a := range op.Activations {
		if a.Name != own.Name {
			out.add(with(o, func(t *rebuild.Turned) { t.Activation = a }), 0, "%s, %s, in place of %s", a.Name, a.Formula, own.Name).ID = "activation/" + a.Name
		}
	}
	for by := -3; by <= 3; by++ {
		if by != 0 {
			out.add(with(o, func(t *rebuild.Turned) { t.Shift += by }), 0, "the tokens are taken from the place %+d on", by).ID = "conv/padding"
		}
	}
	if n := o.Parts(); n > 1 {
		for k := range n {
			if first := k * o.Size(); first != o.First {
				out.add(with(o, func(t *rebuild.Turned) { t.First = first }), 0,
					"it takes part %d of %s and not part %d", k+1, o.In, o.First/o.Size()+1).ID = "linear/gate-up"
			}
		}
	}
	return out
}

// Columns is a factor for each column that is left out, or another layer's.
func Columns(o *rebuild.Columns) (out List) {
	out.add(rebuild.Same(o.In), 0, "the factors of the columns, as of a layer scale, are left out")
	out.add(with(o, func(c *rebuild.Columns) { c.Factors = op.Times(o.Factors, o.Factors) }), 0, "the factors of the columns are applied twice")
	for _, name := range slices.Sorted(maps.Keys(o.Others)) {
		if f := o.Others[name]; !slices.Equal(f, o.Factors) {
			out.add(with(o, func(c *rebuild.Columns) { c.Factors = f }), 1, "the factors of the columns are those of %s", name).ID = "linear/other-layer"
		}
	}
	return out
}
