package diagnose_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

func of(t *testing.T, values []float32, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

// causal returns the weights of heads of n causal queries: what each gives to its own key and to the
// first, beside what it spreads evenly.
func causal(n int, heads ...func(q, k int) float32) []float32 {
	var out []float32
	for _, f := range heads {
		for q := range n {
			var sum float32
			row := make([]float32, n)
			for k := range q + 1 {
				row[k] = f(q, k)
				sum += row[k]
			}
			for k := range row {
				row[k] /= sum
			}
			out = append(out, row...)
		}
	}
	return out
}

func flat(int, int) float32 { return 1 }

func first(_, k int) float32 {
	if k == 0 {
		return 100
	}
	return 1
}

func TestOf(t *testing.T) {
	nan := float32(math.NaN())
	// Two queries of two keys, 0.25 and 0.75: −¼ ln ¼ − ¾ ln ¾ = 0.562335.
	quarter := []float32{0.25, 0.75, 0.25, 0.75}
	for _, tt := range []struct {
		reason string
		w      *tensor.Tensor
		want   diagnose.Head // of the last head
	}{
		{"by hand", of(t, quarter, 1, 2, 2),
			diagnose.Head{Queries: 2, Mean: 0.5, Entropy: 0.562335, Part: 0.562335 / math.Ln2, Key: 1, Most: 0.75, First: 0.25}},
		{"a batch is one", of(t, append(quarter, quarter...), 2, 1, 2, 2),
			diagnose.Head{Queries: 4, Mean: 0.5, Entropy: 0.562335, Part: 0.562335 / math.Ln2, Key: 1, Most: 0.75, First: 0.25}},
		{"what is hidden from all heads is no key; a query with one key tells nothing",
			of(t, causal(3, flat, flat), 1, 2, 3, 3),
			diagnose.Head{Queries: 2, Mean: 2.0 / 5, Entropy: (math.Ln2 + math.Log(3)) / 2, Part: 1, Key: 0, Most: 5.0 / 12, First: 5.0 / 12}},
		{"a key that one head does not look at is a key", of(t, []float32{0.5, 0.5, 1, 0}, 2, 1, 2),
			diagnose.Head{Queries: 1, Mean: 0.5, Entropy: 0, Part: 0, Key: 0, Most: 1, First: 1}},
		{"learned sinks take a part", of(t, []float32{0.1, 0.1, 0.1, 0.1}, 1, 2, 2),
			diagnose.Head{Queries: 2, Mean: 0.1, Entropy: math.Ln2, Part: 1, Key: 0, Most: 0.5, First: 0.5}},
		{"NaN, negative and nothing are left out", of(t, []float32{nan, 0.5, -0.5, 1.5, 0.5, 0.5, 0, 0}, 1, 4, 2),
			diagnose.Head{Queries: 1, Left: 2, Mean: 0.5, Entropy: math.Ln2, Part: 1, Key: 0, Most: 0.5, First: 0.5}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			heads := diagnose.HeadsOf(tt.w)
			require.NotEmpty(t, heads)
			got, want := heads[len(heads)-1], tt.want
			for _, x := range []struct{ got, want float64 }{{got.Mean, want.Mean}, {got.Entropy, want.Entropy}, {got.Part, want.Part},
				{got.Most, want.Most}, {got.First, want.First}} {
				assert.InDelta(t, x.want, x.got, 1e-6)
			}
			assert.Equal(t, []any{want.Queries, want.Left, want.Key}, []any{got.Queries, got.Left, got.Key})
		})
	}
	assert.Nil(t, diagnose.HeadsOf(of(t, quarter, 2, 2)), "no heads")
	assert.Nil(t, diagnose.HeadsOf(of(t, nil, 0, 2, 2)), "nothing")
	none := diagnose.HeadsOf(of(t, []float32{nan, nan}, 1, 1, 2))
	assert.True(t, math.IsNaN(none[0].Entropy), "no query counts")
	assert.Contains(t, none[0].Note(), "1 queries left out")
}

func TestNames(t *testing.T) {
	heads := diagnose.HeadsOf(of(t, causal(12, flat, first), 1, 2, 12, 12))
	assert.True(t, heads[0].Uniform())
	assert.False(t, heads[1].Uniform())
	assert.Equal(t, "uniform", heads[0].Note())
	for n, uniform := range map[int]bool{4: false, 5: true} { // the first query has one key
		few := diagnose.HeadsOf(of(t, causal(n, flat), 1, 1, n, n))
		assert.Equal(t, uniform, few[0].Uniform(), "three queries tell nothing")
	}
}

func TestRecorded(t *testing.T) {
	for _, tt := range []struct {
		reason string
		w      *tensor.Tensor
		want   bool
	}{
		{"weights", of(t, causal(5, flat, first), 1, 2, 5, 5), true},
		{"a query that looks nowhere", of(t, []float32{0.5, 0.5, 1, 0, 0, 0}, 1, 3, 2), true},
		{"a causal mask of 0 and 1", of(t, []float32{1, 0, 0, 1, 1, 0, 1, 1, 1}, 1, 1, 3, 3), false},
		{"a mask that is added", of(t, []float32{0, -1e9, 0, 0}, 1, 1, 2, 2), false},
		{"states", of(t, []float32{0.3, -0.7, 1.4, 0.2}, 1, 2, 2), false},
		{"NaN", of(t, []float32{float32(math.NaN()), 1, 0, 1}, 1, 2, 2), false},
		{"one key", of(t, []float32{1, 1}, 1, 2, 1), false},
		{"two keys", of(t, []float32{0.5, 0.5}, 1, 1, 2), true},
		{"rounded to 8 bits", of(t, []float32{0.51, 0.505, 0.49, 0.495}, 1, 2, 2), true},
		{"a sum of more than 1", of(t, []float32{0.5, 0.5, 0.5, 0.53}, 1, 2, 2), false},
		{"sinks in half of the queries", of(t, []float32{0.5, 0.5, 0.1, 0.1}, 1, 2, 2), true},
		{"in most of them", of(t, []float32{0.5, 0.5, 0.1, 0.1, 0.1, 0.1}, 1, 3, 2), false},
	} {
		assert.Equal(t, tt.want, diagnose.IsAttention(tt.w), tt.reason)
	}
}

// Weights that were recorded: which ports hold them, and what the candidate has for each.
func TestBeside(t *testing.T) {
	w := func(heads ...func(q, k int) float32) *tensor.Tensor {
		return of(t, causal(5, heads...), 1, len(heads), 5, 5)
	}
	three := of(t, causal(5, flat), 1, 5, 5)
	states := of(t, []float32{0.3, -0.7, 1.4, 0.2}, 1, 1, 2, 2)
	port := func(step, layer, name string, golden, actual *tensor.Tensor) *diagnose.Port {
		return &diagnose.Port{Case: "c", Step: step, Layer: layer, Port: name, Golden: golden, Actual: actual}
	}
	run := &diagnose.Run{Ports: []*diagnose.Port{
		port("0", "m.0.attn", "output_0", states, states),
		port("0", "m.0.attn", "output_1", w(flat), w(first)),
		port("0", "m.0.attn", "input_0", w(flat), w(flat)),
		port("0", "m.1.mixer", "output", w(flat, first), nil),
		port("0", "m.2.mixer", "output", three, three),
		port("0", "m.3.mixer", "output_attentions", three, of(t, []float32{1, 2, 3}, 1, 1, 3)),
		port("0", "m.4.mixer", "attention_mask", three, three),
		port("0", "m.5.attn", "output_1", w(flat), states),
		port("1", "m.0.attn", "output_1", w(first), w(first)),
	}}
	golden, candidate := diagnose.Attentions(t.Context(), run, nil)
	var labels []string
	for i, g := range golden {
		side := "none"
		if c := candidate[i]; c != nil {
			side = map[bool]string{true: "uniform", false: "not"}[c.Heads[0].Uniform()]
			assert.Equal(t, g.Label(), c.Label())
		}
		labels = append(labels, g.Step+" "+g.Label()+" "+side)
	}
	assert.Equal(t, []string{"0 m.0.attn-output_1 not", "0 m.1.mixer-output none", "0 m.3.mixer-output_attentions none", "0 m.5.attn-output_1 none",
		"1 m.0.attn-output_1 not"}, labels, "by shape or by name, no input and no mask; what has another shape is none")
	alone, _ := diagnose.Attentions(t.Context(), &diagnose.Run{Ports: run.Ports[4:5]}, nil)
	assert.Len(t, alone, 1, "the only tensor that there is")
}

// A run's weights by layer, of its first step.
func TestOfFirst(t *testing.T) {
	entry := func(step, layer, port string, x *tensor.Tensor) dump.Entry {
		return dump.Entry{Step: step, Layer: layer, Port: port, Tensor: x}
	}
	w, other := of(t, causal(5, flat), 1, 1, 5, 5), of(t, causal(5, first), 1, 1, 5, 5)
	heads := diagnose.FirstHeads(&dump.Run{Entries: []dump.Entry{entry("0", "m.0", "output", w), entry("0", "m.1.attn", "output", nil),
		entry("0", "m.1.attn", "output_1", w), entry("0", "m.1.attn", "output_2", other), entry("0", "m.2.attn", "output", of(t, causal(5, flat), 1, 5, 5)),
		entry("1", "m.3.attn", "output", w)}})
	assert.Len(t, heads, 1)
	assert.True(t, heads["m.1.attn"][0].Uniform(), "the first of them")
}

// Weights that were not recorded are made of q and k, where the recorded context comes out of them: of a port that lost its
// rotary theta it does not.
func TestCalculated(t *testing.T) {
	open := func(name string) *dump.Run {
		runs, err := store.OpenCases(filepath.Join("../../cmd/parity/testdata/rope", name), dump.Options{})
		require.NoError(t, err)
		require.Len(t, runs, 1)
		t.Cleanup(func() { runs[0].Close() })
		return runs[0]
	}
	ref := open("ref")
	p := session.ProgramBeside(ref)
	require.NotNil(t, p)
	defer p.Close()
	load, end := piece.Evidence(nil).Outside(p)
	defer end()
	for name, shown := range map[string]bool{"port": true, "lost": false} {
		run := &diagnose.Run{}
		actual := map[string]*tensor.Tensor{}
		for _, e := range open(name).Entries {
			actual[e.Step+e.Label()] = e.Tensor
		}
		for _, e := range ref.Entries {
			run.Ports = append(run.Ports, &diagnose.Port{Case: "c", Step: e.Step, Layer: e.Layer, Port: e.Port, Golden: e.Tensor, Actual: actual[e.Step+e.Label()]})
		}
		golden, candidate := diagnose.Attentions(t.Context(), run, map[string]diagnose.Program{"c": {Program: p, Load: load}})
		require.Len(t, golden, 1)
		assert.Equal(t, "model.model.layers.0.self_attn (calculated)", golden[0].Label())
		require.Len(t, golden[0].Heads, 2)
		assert.Equal(t, 15, golden[0].Heads[0].Queries, "of 16 the first has one key")
		assert.InDelta(t, 1.0/9, golden[0].Heads[0].Mean, 1e-6)
		assert.InDelta(t, 0.6789, golden[0].Heads[1].Entropy, 1e-3)
		if assert.Equal(t, shown, candidate[0] != nil, name); shown {
			assert.InDelta(t, golden[0].Heads[1].Entropy, candidate[0].Heads[1].Entropy, 1e-4)
		}
	}
}
