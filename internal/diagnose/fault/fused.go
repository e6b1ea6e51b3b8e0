package fault

import (
	"fmt"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/module"
	"github.com/goparity/goparity/internal/diagnose/op"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
)

// FusedLinear is a fused projection whose parts stand in another order.
func FusedLinear(o *rebuild.Linear) List { return fused(o.From, o.Eval) }

// FusedGiven is FusedLinear of a layer without weights.
func FusedGiven(o *rebuild.Given) List { return fused(o.From, o.Eval) }

func fused(o rebuild.From, right rebuild.Eval) (out List) {
	w, layer := o.Out.Width, o.Layer
	add := func(id, text string, from []int) {
		out.add(right.Then(func(x []float64) []float64 { return op.Select(x, w, from) }), 0, "%s", text).ID = id
	}
	switch {
	case o.In != nil && !o.In.IsFloat():
	case module.FusedGate.Has(layer) && w%2 == 0:
		const id = "linear/gate-up"
		add(id, "the halves gate and up of "+layer+" are exchanged", op.Blocks([]int{w / 2, w / 2}, []int{1, 0}))
		add(id, "gate and up are read from alternate columns of "+layer, op.Interleaved(w, 2))
		add(id, "gate and up, which alternate in the columns of "+layer+", are read as halves", op.Interleaved(w, w/2))
	case module.FusedQKV.Has(layer):
		const id = "linear/qkv-order"
		q, kv := fusedParts(o)
		if q+2*kv != w {
			break
		}
		for _, p := range permutations {
			add(id, fmt.Sprintf("the parts of %s stand in the order %c, %c, %c", layer, "qkv"[p[0]], "qkv"[p[1]], "qkv"[p[2]]),
				op.Blocks([]int{q, kv, kv}, p))
		}
		if q != kv {
			break
		}
		for _, h := range o.Graph().HeadCounts(q) {
			d := q / h
			from, back := make([]int, w), make([]int, w)
			for c := range w {
				part, head, i := c/q, c%q/d, c%d
				from[c] = (head*3+part)*d + i
				back[from[c]] = c
			}
			add(id, fmt.Sprintf("%s is read as [%d heads, 3, %d] and not as [3, heads, %d]", layer, h, d, d), from)
			add(id, fmt.Sprintf("%s is read as [3, %d heads, %d] and not as [heads, 3, %d]", layer, h, d, d), back)
		}
	}
	return out
}

// fusedParts is the widths of q and of k and v in a fused projection: by the config, else a third
// each.
func fusedParts(o rebuild.From) (q, kv int) {
	heads, kvHeads := o.Scene().Config.Heads(), o.Scene().Config.KVHeads()
	if n := heads + 2*kvHeads; n > 0 && o.Out.Width%n == 0 {
		return o.Out.Width / n * heads, o.Out.Width / n * kvHeads
	}
	return o.Out.Width / 3, o.Out.Width / 3
}

// Sibling is a layer that puts out what its sibling should: q and k exchanged, gate and up.
func Sibling(o *rebuild.Given) (out List) {
	if o.In != nil && !o.In.IsFloat() {
		return nil
	}
	exchanged(o.Out, o.Layer, func(id string, x *rebuild.Value) {
		out.add(func(_ *rebuild.Evaluation, rows []int) []float64 { return x.Golden(rows) }, 1,
			"%s has the weights of %s", label.Last(o.Layer), label.Last(x.Layer())).ID = id
	})
	return out
}

// ConstantRow is a layer of which every row is off by the same row: a bias that is missing, or that
// was added twice. Without the weights the bias is taken from the candidate; the golden's mean row
// tells its sign.
func ConstantRow(o *rebuild.Given) (out List) {
	v := o.Out
	if !v.IsTarget() || o.In != nil && !o.In.IsFloat() {
		return nil
	}
	rows := op.Spread(v.Rows, rebuild.SampleRows)
	golden, actual := o.Eval(o.Graph().With(v, nil), rows), v.Wrong(rows)
	if golden == nil || len(rows) < 2 {
		return nil
	}
	off, mean := make([]float64, v.Width), make([]float64, v.Width)
	for i, x := range golden {
		off[i%v.Width] += (actual[i] - x) / float64(len(rows))
		mean[i%v.Width] += x / float64(len(rows))
	}
	eval := rebuild.Eval(o.Eval).Then(func(x []float64) []float64 {
		for i := 0; i < len(x); i += v.Width {
			floats.Add(x[i:i+v.Width], off)
		}
		return x
	})
	missing, twice := 0, 1 // ranks
	if floats.Dot(off, mean) > 0 {
		missing, twice = twice, missing
	}
	f := out.add(eval, missing, "the bias is missing: every row is off by one row")
	f.ID, f.Params = "linear/bias-missing", v.Width
	f = out.add(eval, twice, "the bias is added twice: every row is off by one row")
	f.ID, f.Params = "linear/bias-twice", v.Width
	return out
}

// Unweighed guesses what goes wrong with weights, where they are not given.
func Unweighed(o *rebuild.Given) (out List) {
	if o.In == nil || !o.In.IsFloat() || !o.Out.IsTarget() {
		return nil
	}
	rows := op.Spread(o.Out.Rows, rebuild.ProbeRows)
	add := func(id, text string) { out.guess(id, guessRank+len(out), "%s; give the weights to see", text) }
	switch bad := badColumns(o.Out.Golden(rows), o.Out.Wrong(rows), o.Out.Width, clearNoise*o.Out.Noise()); {
	case module.IsNorm(o.Layer):
		add("norm/weight", "the weight of the norm may be another")
	case len(bad) == 0:
	case len(bad) < o.Out.Width:
		add("linear/corrupt", "rows "+ranges(bad)+" of W may hold something else")
	case module.Head.Has(o.Layer):
		add("output/tied", "the head may have other weights than the embeddings, or theirs by mistake")
	case o.Scene().Config["quantization_config"] != nil:
		add("quant/group", "the scales of the groups may be exchanged")
		add("quant/scale", "the scales may be others")
	case o.In.Width == o.Out.Width:
		add("linear/transposed", "W may be used where Wᵀ should be")
		add("linear/other-layer", "the weights may be those of another layer")
	default:
		add("linear/other-layer", "the weights may be those of another layer")
		add("linear/transposed", "the memory of W may be read in the other order")
	}
	return out
}
