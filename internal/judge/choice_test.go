package judge_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// routed is a run of a layer of experts: the scores of four for each of 24 tokens, the best one,
// what the experts make of it, and a layer behind it in which every token sees those before it.
type routed struct {
	scores  [][]float64
	chosen  []int
	wrong   map[string]int // layer → a row of it that is wrong
	without string         // ends of labels that are not recorded
}

const tokens = 24

func router() *routed {
	r := &routed{wrong: map[string]int{}}
	for row := range tokens {
		s := make([]float64, 4)
		for e := range s {
			s[e] = math.Sin(float64(row*5+e*3) * 1.7)
		}
		best := 0
		for e := range s {
			if s[e] > s[best] {
				best = e
			}
		}
		s[best] += 0.5 // far from the others
		r.scores, r.chosen = append(r.scores, s), append(r.chosen, best)
	}
	return r
}

// near makes the second expert of a row nearly as good as the best, and returns it.
func (r *routed) near(row int, by float64) int {
	second := (r.chosen[row] + 1) % 4
	r.scores[row][second] = r.scores[row][r.chosen[row]] - by
	return second
}

func (r *routed) run(t *testing.T, engine string, encoding dump.Encoding, golden *routed) *dump.Run {
	t.Helper()
	scores, chosen := make([]float32, 0, 4*tokens), make([]int64, tokens)
	for row, s := range r.scores {
		for _, x := range s {
			scores = append(scores, float32(x))
		}
		chosen[row] = int64(r.chosen[row])
	}
	first := tokens // the first token that took another way
	for row := range tokens {
		if r.chosen[row] != golden.chosen[row] {
			first = min(first, row)
		}
	}
	rows := func(layer string, other func(row int) bool) *tensor.Tensor {
		v := make([]float32, tokens*16)
		for i := range v {
			row := i / 16
			v[i] = float32(math.Sin(float64(i*i%37) + float64(len(layer))))
			if w, is := r.wrong[layer]; is && w == row || other(row) {
				v[i] = float32(math.Cos(float64(i*i%41) * 1.3))
			}
		}
		return of(t, v, 1, tokens, 16)
	}
	same := func(int) bool { return false }
	took := func(row int) bool { return r.chosen[row] != golden.chosen[row] }
	behind := func(row int) bool { return row >= first }
	ports := []port{
		{"m.layers.0.mlp.gate-input_0", rows("in", same)},
		{"m.layers.0.mlp.gate-output_0", of(t, scores, tokens, 4)},
		{"m.layers.0.mlp.gate-output_1", of(t, chosen, tokens, 1)},
		{"m.layers.0.mlp.experts-input_1", of(t, chosen, tokens, 1)},
		{"m.layers.0.mlp.experts-output", rows("experts", took)},
		{"m.layers.0.mlp-output", rows("mlp", took)},
		{"m.layers.1.attn-output", rows("attn", behind)},
		{"m.layers.1-output", rows("layer", behind)},
		{"m.head-output", rows("head", behind)},
	}
	for suffix := range strings.FieldsSeq(r.without) {
		ports = slices.DeleteFunc(ports, func(p port) bool { return strings.HasSuffix(p.label, suffix) })
	}
	out := run(engine, ports...)
	out.Info.Encoding = encoding
	return out
}

func TestTies(t *testing.T) {
	bf16, f32 := dump.Encoding{Compute: "bfloat16"}, dump.Encoding{Compute: "float32"}
	for _, tt := range []struct {
		reason   string
		encoding dump.Encoding
		golden   func(*routed)
		actual   func(*routed)
		bad      string // the layer that is accused; "" for a pass
		note     string
	}{
		{"a tie within the noise", bf16, func(g *routed) { g.near(9, 0.003) },
			func(a *routed) { a.chosen[9] = a.near(9, -0.003) }, "", "1 of 24 tokens took another way at m.layers.0.mlp.gate"},
		{"the scores are not recorded, and as near", bf16, func(g *routed) { g.near(9, 0.003) },
			func(a *routed) { a.chosen[9] = a.near(9, -0.003); a.without = "gate-output_0" }, "", "1 of 24 tokens"},
		{"nothing of the choice is recorded", bf16, func(g *routed) { g.near(9, 0.003) },
			func(a *routed) { a.chosen[9] = a.near(9, -0.003); a.without = "_1" }, "", "1 of 24 tokens"},
		{"nor are the scores, but one token has other experts", bf16, func(g *routed) { g.near(9, 0.003); g.without = "gate-output_0" },
			func(a *routed) { a.chosen[9] = a.near(9, -0.003); a.without = "_1 gate-output_0" }, "", "1 of 24 tokens"},
		{"so have six", bf16, func(g *routed) { g.without = "gate-output_0" },
			func(a *routed) {
				for row := range 6 {
					a.chosen[row] = (a.chosen[row] + 1) % 4
				}
				a.without = "_1 gate-output_0"
			}, "m.layers.0.mlp.experts", ""},
		{"a flip beyond the gap is a fault of the router", bf16, func(*routed) {},
			func(a *routed) { a.chosen[9] = (a.chosen[9] + 1) % 4 }, "m.layers.0.mlp.gate", ""},
		{"the scores are wrong: no tie", bf16, func(*routed) {},
			func(a *routed) { a.chosen[9] = a.near(9, -0.5) }, "m.layers.0.mlp.gate", ""},
		{"in float32 they are too far apart", f32, func(g *routed) { g.near(9, 0.003) },
			func(a *routed) { a.chosen[9] = (a.chosen[9] + 1) % 4 }, "m.layers.0.mlp.gate", ""},
		{"a tie, and an earlier token is wrong behind it", bf16, func(g *routed) { g.near(9, 0.003) },
			func(a *routed) { a.chosen[9] = a.near(9, -0.003); a.wrong["layer"] = 4 }, "m.layers.1", "1 of 24 tokens"},
		{"a tie, and another token is wrong in the experts", bf16, func(g *routed) { g.near(9, 0.003) },
			func(a *routed) { a.chosen[9] = a.near(9, -0.003); a.wrong["experts"] = 17 }, "m.layers.0.mlp.experts", "1 of 24 tokens"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			g, a := router(), router()
			tt.golden(g)
			tt.golden(a)
			tt.actual(a)
			c := compareRuns(t, g.run(t, "torch", dump.Encoding{}, g), a.run(t, "max", tt.encoding, g))
			r := c.Report("toy", true)
			notes := strings.Join(r.Notes, "\n")
			if tt.note != "" {
				assert.Contains(t, notes, tt.note)
			} else {
				assert.NotContains(t, notes, "took another way")
			}
			if tt.bad == "" {
				assert.Equal(t, report.Pass, r.Verdict, "%v", r.FirstDivergence)
				assert.Contains(t, row(t, r, "m.head-output").Note, "15 of 24 rows took another way behind a tie")
				return
			}
			require.Equal(t, report.Fail, r.Verdict)
			require.NotNil(t, r.FirstDivergence)
			assert.Equal(t, tt.bad, r.FirstDivergence.Layer, r.FirstDivergence.Text)
		})
	}
}

// The reference in the candidate's encoding says how many ties there are: many more are none.
func TestTooManyTies(t *testing.T) {
	judged := func(inEncoded, inActual int) *report.Report {
		g, e, a := router(), router(), router()
		for row := range inActual {
			for _, r := range []*routed{g, e, a} {
				r.near(row, 0.003)
			}
			a.chosen[row] = a.near(row, -0.003)
			if row < inEncoded {
				e.chosen[row] = e.near(row, -0.003)
			}
		}
		golden := g.run(t, "torch", dump.Encoding{}, g)
		k := judge.Case{Name: "short", Golden: golden, Actual: a.run(t, "max", dump.Encoding{Compute: "bfloat16"}, g),
			Encoded: e.run(t, "torch", dump.Encoding{Compute: "bfloat16"}, g)}
		c, err := judge.Compare(context.Background(), []judge.Case{k}, judge.Options{})
		require.NoError(t, err)
		return c.Report("toy", true)
	}
	r := judged(0, 8)
	assert.Equal(t, report.Fail, r.Verdict)
	assert.Equal(t, "m.layers.0.mlp.gate", r.FirstDivergence.Layer)
	assert.Contains(t, strings.Join(r.Notes, "\n"), "where the reference in bfloat16 has 0: too many to be ties")
	for _, l := range judged(4, 8).Layers {
		assert.NotEqual(t, report.StatusFail, l.Status, "%s %s: as many as chance may make", l.Layer, l.Port)
	}
}
