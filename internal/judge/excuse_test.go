package judge_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// rewritten reports whether a port passes for being written otherwise.
func rewritten(p *judge.Port) bool {
	return strings.Contains(p.Decide(nil, "", false).Row.Note, "written otherwise")
}

// change makes another tensor of one: element i of the result is of(i, the old value).
func change(t *testing.T, x *tensor.Tensor, f func(row, column int) float64) *tensor.Tensor {
	t.Helper()
	w := x.RowLen()
	v := make([]float32, x.Len())
	for i := range v {
		v[i] = float32(f(i/w, i%w))
	}
	return toy.Of(t, v, x.Shape()...)
}

// block is a run of one block: a norm, attention and an MLP, with what each layer is given.
// The values do not follow from one another: what is recorded is all that is looked at.
func block(t *testing.T, engine string, edit map[string]func(*tensor.Tensor) *tensor.Tensor) *dump.Run {
	t.Helper()
	value := map[string]*tensor.Tensor{}
	for i, name := range []string{"x", "norm", "q", "k", "v", "heads", "o", "mid", "up", "act", "down", "y", "end"} {
		width := 32
		if name == "up" || name == "act" {
			width = 64
		}
		x := wave(t, 1, float64(i+1)*0.7, 1, 8, width)
		value[name] = change(t, x, func(r, c int) float64 { return math.Sin(float64(r*r+3*i)*1.3+float64(c*c)*0.37) + 0.2*x.At(r*width+c) })
	}
	for name, f := range edit {
		value[name] = f(value[name])
	}
	var ports []port
	add := func(layer, in, out string) {
		if in != "" {
			ports = append(ports, port{"m.layers.0." + layer + "-input_0", value[in]})
		}
		ports = append(ports, port{"m.layers.0." + layer + "-output", value[out]})
	}
	add("norm", "x", "norm")
	add("attn.q_proj", "norm", "q")
	add("attn.k_proj", "norm", "k")
	add("attn.v_proj", "norm", "v")
	add("attn.o_proj", "heads", "o")
	add("attn", "norm", "o")
	add("mlp.up_proj", "mid", "up")
	add("mlp.act_fn", "up", "act")
	add("mlp.down_proj", "act", "down")
	add("mlp", "mid", "down")
	ports = append(ports, port{"m.layers.0-input_0", value["x"]}, port{"m.layers.0-output", value["y"]},
		port{"m.head-input_0", value["y"]}, port{"m.head-output", value["end"]})
	return run(engine, ports...)
}

type edits = map[string]func(*tensor.Tensor) *tensor.Tensor

func TestRewritesAreNotes(t *testing.T) {
	times := func(by float64) func(*tensor.Tensor) *tensor.Tensor {
		return func(x *tensor.Tensor) *tensor.Tensor { return scaled(t, x, by) }
	}
	shuffled := func(x *tensor.Tensor) *tensor.Tensor {
		w := x.RowLen()
		return change(t, x, func(r, c int) float64 { return x.At(r*w + (c*5+3)%w) })
	}
	for _, tt := range []struct {
		reason string
		edit   edits
		layer  string // that differs first
		note   bool   // else it fails
		how    string // what the note says of it
	}{
		{"1/√d folded into q", edits{"q": times(0.25)}, "attn.q_proj", true, " (1/√16 is folded in): "},
		{"a half, the least of them", edits{"q": times(0.5)}, "attn.q_proj", true, " (1/√4 is folded in): "},
		{"the root of no whole number", edits{"q": times(0.3)}, "attn.q_proj", false, ""},
		{"k undoes what is in q", edits{"q": times(1.37), "k": times(1 / 1.37)}, "attn.q_proj", true, " (every element is multiplied by 1.37): "},
		{"k undoes the little that is in q", edits{"q": times(1.00015), "k": times(1 / 1.00015)}, "attn.q_proj", true, " on (every element is multiplied by 1.00015): "},
		{"halves of the heads of q are interleaved", edits{"q": func(x *tensor.Tensor) *tensor.Tensor { return interleave(t, x, 8) }}, "attn.q_proj", true, " (the halves of each head of 8 are interleaved): "},
		{"q in another order, which no other tensor shows", edits{"q": shuffled}, "attn.q_proj", false, ""},
		{"a factor of q that no other tensor shows", edits{"q": times(1.001)}, "attn.q_proj", false, ""},
		{"channels of the MLP in another order", edits{"up": shuffled, "act": shuffled}, "mlp.up_proj", true, " (the columns are in another order: column 0 holds column 3): "},
		{"the attention is wrong, and all after it", edits{"q": times(0.25), "heads": times(1.1), "o": times(1.1), "mid": times(1.1),
			"up": times(1.1), "act": times(1.1), "down": times(1.1), "y": times(1.1), "end": times(1.1)}, "attn.q_proj", false, ""},
		{"the model's own result", edits{"end": times(0.25)}, "", false, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := compareRuns(t, block(t, "torch", nil), block(t, "max", tt.edit))
			r := c.Report("toy", true)
			if !tt.note {
				assert.Equal(t, report.Fail, r.Verdict)
				return
			}
			require.Equal(t, report.Pass, r.Verdict, "%v", r.FirstDivergence)
			l := row(t, r, "m.layers.0."+tt.layer+"-output")
			assert.True(t, l.Benign)
			assert.Contains(t, l.Note, "written otherwise from m.layers.0."+tt.layer+"-output on")
			assert.Contains(t, l.Note, tt.how+"what is made of it agrees, in every forward pass")
			require.NotEmpty(t, r.Stretches)
			assert.Equal(t, []any{"short", l.Note}, []any{r.Stretches[0].Case, r.Stretches[0].Text})
			assert.Equal(t, "m.layers.0."+tt.layer+"-output", r.Stretches[0].Ports[0])
			assert.Empty(t, r.Causes, "nothing is proven of what is no fault")
			j := find(t, c, "m.layers.0."+tt.layer+"-output").Decide(nil, "", true)
			assert.Equal(t, report.StatusFail, j.Row.Status, "a layer asked for by its name fails")
			assert.Contains(t, j.Row.Note, "what is made of it agrees", "with the note")
		})
	}
}

// With a single token the factor of q does no harm: its only key has all the attention. The next
// forward pass shows it. Nor does it excuse another fault in the same pass.
func TestWhereARewriteEnds(t *testing.T) {
	quarter := func(x *tensor.Tensor) *tensor.Tensor { return scaled(t, x, 0.25) }
	wrong := func(x *tensor.Tensor) *tensor.Tensor {
		return change(t, x, func(r, c int) float64 { return x.At(r*x.RowLen()+c) + 0.3*math.Sin(float64(r*31+c*17)) })
	}
	steps := func(engine string, each ...edits) *dump.Run {
		var entries []dump.Entry
		for i, edit := range each {
			for _, e := range block(t, engine, edit).Entries {
				e.Step = string(rune('0' + i))
				e.Seq += 100 * i
				entries = append(entries, e)
			}
		}
		return dump.New(engine, dump.Info{Engine: engine, Case: "short", Mode: dump.Standard}, dump.OrderRunFile, entries)
	}
	golden := steps("torch", nil, nil)
	both := compareRuns(t, golden, steps("max", edits{"q": quarter}, edits{"q": quarter})).Report("toy", true)
	assert.Equal(t, report.Pass, both.Verdict)
	all := edits{"q": quarter}
	for _, name := range []string{"heads", "o", "mid", "up", "act", "down", "y", "end"} {
		all[name] = wrong
	}
	second := compareRuns(t, golden, steps("max", edits{"q": quarter}, all)).Report("toy", true)
	require.Equal(t, report.Fail, second.Verdict)
	assert.Equal(t, [2]string{"m.layers.0.attn.q_proj", "0"}, [2]string{second.FirstDivergence.Layer, second.FirstDivergence.Step})

	c := compareRuns(t, block(t, "torch", nil), block(t, "max", edits{"q": quarter, "down": wrong, "y": wrong, "end": wrong}))
	r := c.Report("toy", true)
	require.Equal(t, report.Fail, r.Verdict)
	assert.Equal(t, "m.layers.0.mlp.down_proj", r.FirstDivergence.Layer, r.FirstDivergence.Text)
	assert.True(t, rewritten(find(t, c, "m.layers.0.attn.q_proj-output")))
}

// A decode step has one row, of which factors of columns would explain anything: the rows of all passes tell.
func TestFactorsOfColumnsInADecodeStep(t *testing.T) {
	model := func(engine string, folded, other bool) *dump.Run {
		factors := func(c int) float64 {
			if folded {
				return 1 + 0.02*float64(c)
			}
			return 1
		}
		var entries []dump.Entry
		for step, rows := range []int{8, 1} {
			add := func(layer, name string, x *tensor.Tensor) {
				entries = append(entries, dump.Entry{Step: []string{"0", "1"}[step], Layer: layer, Port: name, Tensor: x})
			}
			for i, b := range []string{"m.0.", "m.1."} {
				x := wave(t, 1, 0.7*float64(i+1+3*step), 1, rows, 32)
				y := change(t, x, func(r, c int) float64 { return math.Sin(float64(r*r)*1.3+float64(c*c)*0.37) + 0.2*x.At(r*32+c) })
				normed := change(t, y, func(r, c int) float64 {
					if v := y.At(r*32+c) * factors(c); !other || step == 0 {
						return v
					}
					return y.At(r*32+c) * (1 + 0.3*math.Cos(float64(c))) // other factors in the decode step
				})
				down := change(t, y, func(r, c int) float64 { return 3 * y.At(r*32+(c+5)%32) })
				for _, p := range []struct {
					layer, name string
					x           *tensor.Tensor
				}{{"norm", "input_0", x}, {"norm", "output", normed}, {"down", "input_0", normed}, {"down", "output", down}} {
					add(b+p.layer, p.name, p.x)
				}
			}
		}
		return dump.New(engine, dump.Info{Engine: engine, Case: "short", Mode: dump.Standard}, dump.OrderRunFile, entries)
	}
	for _, tt := range []struct {
		other   bool
		verdict report.Verdict
		reason  string
	}{
		{false, report.Pass, "the same factors in both passes"},
		{true, report.Fail, "others in the decode step"},
	} {
		c := compareRuns(t, model("torch", false, false), model("max", true, tt.other))
		assert.Equal(t, tt.verdict, c.Report("toy", true).Verdict, tt.reason)
	}
}

// chained is the program x → a = −x → b's input = 2a, which the model makes → b = −2a.
func chained(t *testing.T, x *tensor.Tensor) *program.Program {
	t.Helper()
	return programOf(t, []*tensor.Tensor{x}, `"m.a-input_0":["%0",0,0],"m.a-output":["%1",1,1],"m.b-input_0":["%2",2,3],"m.b-output":["%3",3,3]`,
		`m.a neg.default "self":"%0"`, `m mul.Tensor "self":"%1","other":2`, `m.b neg.default "self":"%2"`)
}

// chainedRun is a run of it whose tensors are as much too large as factors say, and rounded.
func chainedRun(t *testing.T, x *tensor.Tensor, rounded func(*tensor.Tensor) *tensor.Tensor, factors ...float64) *dump.Run {
	t.Helper()
	var ports []port
	by := 1.0
	for i, name := range []string{"m.a-output", "m.b-input_0", "m.b-output"} {
		by *= []float64{-1, 2, -1}[i] * factors[i]
		ports = append(ports, port{name, rounded(scaled(t, x, by))})
	}
	return run("max", ports...)
}

// What has another shape and goes into the first wrong tensor is named, although it is judged by what is made of it: it is
// the place where it is of another layer.
func TestOtherShapes(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 32)
	for _, tt := range []struct {
		misfits int
		given   bool // what m.a was given is recorded
		layer   string
		place   string
		reason  string
	}{
		{1, false, "m", "", "inside of the layer whose code is wrong"},
		{1, true, "m.a", "in m.a, or between it and m.b", "which was given what the reference's was"},
		{2, false, "m.a", "in m.a, or between it and m.b", "all that m.b takes"},
	} {
		golden, actual := chainedRun(t, x, asIs, 1, 1, 1), chainedRun(t, x, asIs, 1, 1.5, 1)
		for i := range tt.misfits {
			actual.Entries[i].Tensor = wave(t, 1, 0.3, 1, 16)
		}
		if tt.given {
			for _, r := range []*dump.Run{golden, actual} {
				r.Entries = append(run("max", port{"m.a-input_0", x}).Entries, r.Entries...)
			}
		}
		r := compareRuns(t, golden, actual, func(k *judge.Case) { k.Program = chained(t, x) }).Report("toy", true)
		require.NotNil(t, r.FirstDivergence, tt.reason)
		assert.Equal(t, []string{tt.layer, tt.place}, []string{r.FirstDivergence.Layer, r.FirstDivergence.Place}, tt.reason)
		assert.Equal(t, []string{"m.a output, which goes into it, is [1 16], and the reference's [1 32]"}, r.FirstDivergence.Evidence, tt.reason)
	}
	beside := programOf(t, []*tensor.Tensor{x}, `"m.a-output":["%1",1,1],"m.b-output":["%2",2,2],"m.c-output":["%3",3,3]`,
		`m.a neg.default "self":"%0"`, `m.b neg.default "self":"%0"`, `m.c add.Tensor "self":"%1","other":"%2"`)
	golden := run("max", port{"m.a-output", scaled(t, x, -1)}, port{"m.b-output", scaled(t, x, -1)}, port{"m.c-output", scaled(t, x, -2)})
	actual := run("max", port{"m.a-output", wave(t, 1, 0.3, 1, 16)}, port{"m.b-output", scaled(t, x, -1.5)}, port{"m.c-output", scaled(t, x, -2.5)})
	c := compareRuns(t, golden, actual, func(k *judge.Case) { k.Program = beside })
	assert.Equal(t, []any{"m.b", []string(nil)}, []any{c.Verdict.Layer, c.Verdict.Evidence}, "a table, say, that it is not made of")
	actual = run("max", port{"m.a-output", wave(t, 1, 0.3, 1, 16)}, port{"m.b-output", scaled(t, x, -1)}, port{"m.c-output", scaled(t, x, -2.5)})
	c = compareRuns(t, golden, actual, func(k *judge.Case) { k.Program = beside })
	assert.Equal(t, []any{"m.a", "m.c"}, []any{c.Verdict.Layer, c.Verdict.Before}, "what is right beside it says nothing of it")
}

// What the model returns is not another way to write the same, though what else is made of it is right.
func TestReturned(t *testing.T) {
	x := wave(t, 1, 0.3, 4, 8)
	rows := func(f func(row int, x float64) float64) *tensor.Tensor {
		y := make([]float32, x.Len())
		for i := range y {
			y[i] = float32(f(i/8, x.At(i)))
		}
		made, err := tensor.Of(y, 4, 8)
		require.NoError(t, err)
		return made
	}
	first := rows(func(row int, _ float64) float64 { return float64(1 - min(row, 1)) })
	pooled := rows(func(row int, x float64) float64 { return -x * float64(1-min(row, 1)) })
	other := rows(func(row int, x float64) float64 { return -x * (1 + 0.5*float64(min(row, 1))) })
	for _, tt := range []struct {
		port   string
		passes bool
		reason string
	}{
		{"m-output_0", false, "the model returns it"},
		{"m.c-output", true, "a layer does, and the model what is made of it"},
		{"m-key_cache", true, "the engine keeps it"},
	} {
		p := programOf(t, []*tensor.Tensor{x, first}, fmt.Sprintf(`"m.a-output":["%%2",1,1],%q:["%%2",1,1],"m.b-output":["%%3",2,2],"m-output_1":["%%3",2,2]`, tt.port),
			`m.a neg.default "self":"%0"`, `m.b mul.Tensor "self":"%2","other":"%1"`)
		golden := run("torch", port{"m.a-output", scaled(t, x, -1)}, port{tt.port, scaled(t, x, -1)}, port{"m.b-output", pooled}, port{"m-output_1", pooled})
		actual := run("max", port{"m.a-output", other}, port{tt.port, other}, port{"m.b-output", pooled}, port{"m-output_1", pooled})
		c := compareRuns(t, golden, actual, func(k *judge.Case) { k.Program = p })
		assert.Equal(t, tt.passes, c.Report("toy", true).Verdict == report.Pass, tt.reason)
		if !tt.passes {
			assert.Equal(t, "m.a", c.Verdict.Layer, tt.reason)
		}
	}
}

func asIs(x *tensor.Tensor) *tensor.Tensor { return x }

// What is wrong within its limits is a warning, and with Strict a failure: of an input at the first output after it.
func TestStrict(t *testing.T) {
	x := wave(t, 1, 0.3, 1, 32)
	evidence := func() (checkpoint.Weights, checkpoint.Config, error) { return checkpoint.Weights{"w": x}, nil, nil }
	for _, tt := range []struct {
		factors []float64
		layer   string
		fails   string // what fails with Strict
		text    string
		reason  string
	}{
		{[]float64{1, 1, 1}, "", "", "", "right"},
		{[]float64{1.00005, 1, 1}, "m.a", "m.a-output", "replayed from the candidate's own tensors it is off by 5e-05", "the first layer"},
		{[]float64{1, 1, 1.00005}, "m.b", "m.b-output", "replayed from the candidate's own tensors it is off by 5e-05", "the last"},
		{[]float64{1, 1.00005, 1}, "m", "m.b-output", "input_0 of m.b: replayed from", "the code between them"},
	} {
		for _, strict := range []bool{false, true} {
			k := judge.Case{Name: "short", Golden: chainedRun(t, x, asIs, 1, 1, 1), Actual: chainedRun(t, x, asIs, tt.factors...), Program: chained(t, x)}
			c := compared(t, k, judge.Options{Strict: strict, Diagnosis: judge.Diagnosis{Evidence: evidence}})
			r := c.Report("toy", true)
			warned := strings.Contains(strings.Join(r.Notes, "\n"), "warning: 1 tensors are within their limits and off by more than their own piece's noise")
			assert.Equal(t, !strict && tt.fails != "", warned, "%s: %v", tt.reason, r.Notes)
			if !strict || tt.fails == "" {
				assert.Equal(t, report.Pass, r.Verdict, tt.reason)
				continue
			}
			assert.Equal(t, []any{report.Fail, tt.layer}, []any{r.Verdict, placeOf(r)}, tt.reason)
			l := row(t, r, tt.fails)
			assert.Equal(t, report.StatusFail, l.Status, tt.reason)
			assert.Contains(t, strings.Join(l.Violations, "\n"), tt.text, tt.reason)
		}
	}
}

// A run of float32 that holds nothing but numbers of bfloat16 is judged as that, though it does not say so.
func TestUnsaidEncoding(t *testing.T) {
	x := wave(t, 1, 0.31, 1, 32)
	narrow := func(x *tensor.Tensor) *tensor.Tensor {
		y := bf16(t, x)
		return change(t, x, func(_, c int) float64 { return y.At(c) })
	}
	for _, tt := range []struct {
		factors []float64
		said    string
		noted   bool
		layer   string
		reason  string
	}{
		{[]float64{1.001, 1.001, 1.001}, "", true, "", "more than one rounding of 16 bits costs nothing"},
		{[]float64{1.001, 1.001, 1.1}, "", true, "m.b", "what is wrong is found"},
		{[]float64{1.001, 1.001, 1.001}, "float32", false, "m.a", "the run says another one"},
	} {
		actual := chainedRun(t, x, narrow, tt.factors...)
		actual.Info.Encoding.Compute = tt.said
		r := compareRuns(t, chainedRun(t, x, asIs, 1, 1, 1), actual, func(k *judge.Case) { k.Program = chained(t, x) }).Report("toy", true)
		noted := strings.Contains(strings.Join(r.Notes, "\n"), "it is judged as bfloat16")
		assert.Equal(t, []any{tt.noted, tt.layer}, []any{noted, placeOf(r)}, "%s: %v", tt.reason, r.Notes)
	}
}
