package diagnose

import (
	"fmt"
	"math"
)

// Values tries what is done to every element alike: a factor, an offset, another sign, one value everywhere.
var Values = Func(func(s *Scene) []Prediction {
	p := s.pair()
	if p == nil {
		return nil
	}
	g, a := p.golden, p.actual
	var out []Prediction
	if k := a.Data[0]; isAll(a.Data, k) {
		id, text := "value/constant", fmt.Sprintf("every element is %.6g", k)
		params := 1
		if k == 0 {
			text, params = "every element is 0: is a weight missing? MAX reads a missing one as zeros", 0
			if s.isOutput() && typeNames.has(lastPart(s.Target.Layer)) {
				id, text = "embedding/type", "token types are not embedded: every element is 0"
			}
		}
		return []Prediction{p.says(id, g.Map(func(float64) float64 { return k }), params, 0, "%s", text)}
	}
	if !finite(a.Data) {
		return nil
	}
	out = append(out,
		p.says("value/sign", g.Map(func(x float64) float64 { return -x }), 0, 0, "the sign is wrong: −x"),
		p.says("value/sign", g.Map(math.Abs), 0, 0, "the sign is lost: |x|"),
		p.says("value/sign", g.Map(func(x float64) float64 { return -math.Abs(x) }), 0, 0, "the sign is lost: −|x|"))
	if f := project(g.Data, a.Data); f != 0 && math.Abs(f-1) > 1e-6 {
		id, rank := "value/scale", 0
		if s.ofEmbedding(p) {
			id, rank = "embedding/scale", -1
		}
		name, exact := nameOf(f, s, g.Width())
		params := 1
		if exact != 0 {
			f, params = exact, 0
		}
		out = append(out, p.says(id, g.Map(func(x float64) float64 { return f * x }), params, rank, "every element is multiplied by %s", name))
	}
	sum := 0.0
	for i, x := range a.Data {
		sum += x - g.Data[i]
	}
	if o := sum / float64(len(a.Data)); o != 0 {
		out = append(out, p.says("value/offset", g.Map(func(x float64) float64 { return x + o }), 1, 0, "%.6g is added to every element", o))
	}
	return out
})

func isAll(x []float64, k float64) bool {
	for _, v := range x {
		if v != k {
			return false
		}
	}
	return true
}

// nameOf says where a factor may come from: the sizes of the model, their roots, or a small whole number. exact is that factor, 0 for none.
func nameOf(f float64, s *Scene, width int) (text string, exact float64) {
	type named struct {
		name string
		v    float64
	}
	known := []named{{"√%d, the width", float64(width)}}
	if h, ok := s.Config.Int("hidden_size", "n_embd", "d_model"); ok {
		known = append(known, named{"√%d, the hidden size", float64(h)})
		if n, ok := s.Config.Int("num_attention_heads", "n_head", "num_heads"); ok && n > 0 {
			known = append(known, named{"√%d, the size of a head", float64(h / n)})
		}
	}
	near := func(v float64) bool { return v != 0 && math.Abs(f/v-1) < 1e-5 }
	for _, k := range known {
		switch root := math.Sqrt(k.v); {
		case near(root):
			return fmt.Sprintf("%.6g, "+k.name, f, int(k.v)), root
		case near(1 / root):
			return fmt.Sprintf("%.6g, 1/"+k.name, f, int(k.v)), 1 / root
		case near(1 / k.v):
			return fmt.Sprintf("%.6g, 1/%d", f, int(k.v)), 1 / k.v
		case near(k.v):
			return fmt.Sprintf("%d", int(k.v)), k.v
		}
	}
	for n := 2.0; n <= 16; n++ {
		if near(n) {
			return fmt.Sprintf("%g", n), n
		}
		if near(1 / n) {
			return fmt.Sprintf("1/%g", n), 1 / n
		}
	}
	return fmt.Sprintf("%.6g", f), 0
}
