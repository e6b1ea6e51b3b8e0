package judge_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// attended is x → causal attention of x over itself → −y, of two sequences of four tokens.
const attended = `{"schema":1,"engine":"torch","case":"short","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2,4],"dtype":"int64","from":{"input":"ids","step":"0"}},{"id":1,"shape":[9,4],"dtype":"float32","from":{"weight":"table"}},
{"id":2,"shape":[2,4,4],"dtype":"float32","from":{"op":0}},{"id":3,"shape":[2,1,4,4],"dtype":"float32","from":{"op":1}},
{"id":4,"shape":[2,1,4,4],"dtype":"float32","from":{"op":2}},{"id":5,"shape":[2,4,4],"dtype":"float32","from":{"op":3}},{"id":6,"shape":[2,4,4],"dtype":"float32","from":{"op":4}}],
"ops":[{"op":"aten.embedding.default","args":{"weight":"%1","indices":"%0"},"out":["%2"],"layer":"m.in","call":1},
{"op":"aten.unsqueeze.default","args":{"self":"%2","dim":1},"out":["%3"],"layer":"m.attn","call":1},
{"op":"aten.scaled_dot_product_attention.default","args":{"query":"%3","key":"%3","value":"%3","attn_mask":null,"dropout_p":0.0,"is_causal":true,"scale":null,"enable_gqa":false},"out":["%4"],"layer":"m.attn","call":1},
{"op":"aten.squeeze.dim","args":{"self":"%4","dim":1},"out":["%5"],"layer":"m.attn","call":1},
{"op":"aten.neg.default","args":{"self":"%5"},"out":["%6"],"layer":"m.out","call":1}],
"passes":[{"step":"0","ops":[0,5],"ports":{"m.in-input_0":["%0",0,1],"m.in-output":["%2",1,1],"m.attn-output":["%5",4,4],"m.out-output":["%6",5,5]}}]}`

// attend is attention of rows over keys, of which the i-th sees as many as are before it, and all but so many of its own.
func attend(rows, keys [][]float64) (out []float32) {
	for i, q := range rows {
		sum, y := 0.0, make([]float64, len(q))
		for _, k := range keys[:len(keys)-len(rows)+i+1] {
			dot := 0.0
			for c := range q {
				dot += q[c] * k[c]
			}
			w := math.Exp(dot / math.Sqrt(float64(len(q))))
			sum += w
			for c := range k {
				y[c] += w * k[c]
			}
		}
		for _, v := range y {
			out = append(out, float32(v/sum))
		}
	}
	return out
}

// A forward pass that goes on from the cache of another sequence says of which.
func TestOthersInTheCache(t *testing.T) {
	tokens := [][]int64{{4, 1, 3, 2}, {5, 8, 6, 7}}
	x := func(sequence, from, to int) (rows [][]float64) {
		for _, id := range tokens[sequence][from:to] {
			rows = append(rows, []float64{math.Sin(float64(id)), math.Cos(2 * float64(id)), math.Sin(3 * float64(id)), 1 - float64(id)/8})
		}
		return rows
	}
	flat := func(rows [][]float64) (out []float32) {
		for _, v := range slices.Concat(rows...) {
			out = append(out, float32(v))
		}
		return out
	}
	minus := func(x []float32) (out []float32) {
		for _, v := range x {
			out = append(out, -v)
		}
		return out
	}
	entries := func(step string, n int, ids []int64, in, y []float32) (all []dump.Entry) {
		shape := []int{n, len(ids) / n, 4}
		for _, p := range []struct {
			layer, port string
			x           *tensor.Tensor
		}{{"m.in", "input_0", toy.Of(t, ids, shape[:2]...)}, {"m.in", "output", toy.Of(t, in, shape...)}, {"m.attn", "output", toy.Of(t, y, shape...)}, {"m.out", "output", toy.Of(t, minus(y), shape...)}} {
			all = append(all, dump.Entry{Step: step, Layer: p.layer, Port: p.port, Tensor: p.x})
		}
		return all
	}
	info := dump.Info{Engine: "torch", Case: "short", Mode: dump.Standard, TokenIDs: []byte("[[4,1,3,2],[5,8,6,7]]")}
	whole := []float32{}
	for s := range tokens {
		whole = append(whole, attend(x(s, 0, 4), x(s, 0, 4))...)
	}
	golden := dump.New("torch", info, dump.OrderRunFile, entries("0", 2, slices.Concat(tokens...), append(flat(x(0, 0, 4)), flat(x(1, 0, 4))...), whole))
	p, err := program.Parse("program.json", []byte(attended), nil)
	require.NoError(t, err)
	for _, tt := range []struct {
		sequences [4]int // of the forward passes, two tokens each
		wrong     int    // the forward pass that goes on from the other's
		id, text  string
		reason    string
	}{
		{[4]int{0, 0, 1, 1}, -1, "", "", "each goes on from its own"},
		{[4]int{0, 0, 1, 1}, 3, "state/stale", "sequence 0", "the other one has ended"},
		{[4]int{0, 1, 0, 1}, 2, "state/sequence", "sequence 1", "the other one goes on"},
	} {
		var made []dump.Entry
		next := map[int]int{}
		info.Path, info.Passes = "chunked:2", nil
		for k, s := range tt.sequences {
			from := next[s]
			next[s] += 2
			before := x(s, 0, from)
			if k == tt.wrong {
				before = x(1-s, 0, from)
			}
			rows := x(s, from, from+2)
			made = append(made, entries(fmt.Sprint(k), 1, tokens[s][from:from+2], flat(rows), attend(rows, append(before, rows...)))...)
			info.Passes = append(info.Passes, []dump.PassItem{{Sequence: s, From: from, To: from + 2}})
		}
		cand, err := path.New(dump.New("max", info, dump.OrderRunFile, made), nil)
		require.NoError(t, err)
		ref, err := path.New(golden, cand)
		require.NoError(t, err)
		k, _, err := judge.Goldens{Standard: []*path.Sheet{ref}, Programs: map[*path.Sheet]*program.Program{ref: p}}.Case(t.Context(), "short", cand, nil)
		require.NoError(t, err)
		c, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFull}})
		require.NoError(t, err)
		r := c.Report("toy", true)
		if tt.wrong < 0 {
			assert.Equal(t, report.Pass, r.Verdict, "%s: %+v", tt.reason, r.FirstDivergence)
			continue
		}
		require.NotNil(t, r.FirstDivergence, tt.reason)
		assert.Equal(t, [4]any{"m.attn", tt.wrong, tt.sequences[tt.wrong], 2},
			[4]any{r.FirstDivergence.Layer, r.FirstDivergence.Pass, r.FirstDivergence.Sequence, r.FirstDivergence.Position}, tt.reason)
		require.NotEmpty(t, r.Causes, tt.reason)
		assert.Equal(t, [2]any{tt.id, true}, [2]any{r.Causes[0].ID, r.Causes[0].Proven}, tt.reason)
		assert.Contains(t, r.Causes[0].Text, tt.text, tt.reason)
	}
}

// placed is the embedding of positions, and what adds 1 to it.
const placed = `{"schema":1,"engine":"torch","case":"short","frames":[],"stacks":[],
"values":[{"id":0,"shape":[1,4],"dtype":"int64","from":{"input":"position_ids","step":"0"}},{"id":1,"shape":[9,1],"dtype":"float32","from":{"weight":"table"}},
{"id":2,"shape":[1,4,1],"dtype":"float32","from":{"op":0}},{"id":3,"shape":[1,4,1],"dtype":"float32","from":{"op":1}}],
"ops":[{"op":"aten.embedding.default","args":{"weight":"%1","indices":"%0"},"out":["%2"],"layer":"m.wpe","call":1},
{"op":"aten.neg.default","args":{"self":"%2"},"out":["%3"],"layer":"m.out","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"m.wpe-input_0":["%0",0,1],"m.wpe-output":["%2",1,1],"m.out-output":["%3",2,2]}}]}`

// Positions that are others say how.
func TestPositions(t *testing.T) {
	for _, tt := range []struct {
		golden []int64
		second []int64 // of the second forward pass, of two tokens
		text   string
		reason string
	}{
		{[]int64{0, 1, 2, 3}, []int64{0, 1}, "the positions of the forward pass begin at 0 again", "a chunk that does not know of the first"},
		{[]int64{2, 3, 4, 5}, []int64{2, 3}, "the positions of the forward pass begin at 0 again", "where the first position is 2"},
		{[]int64{0, 1, 2, 3}, []int64{3, 4}, "the positions of the forward pass are off by +1", "one too many"},
		{[]int64{0, 1, 2, 3}, []int64{1, 2}, "the positions of the forward pass are off by -1", "one too few"},
		{[]int64{0, 1, 2, 3}, []int64{3, 3}, "all tokens of the forward pass have position 3", "that of the last"},
		{[]int64{0, 1, 2, 3}, []int64{7, 5}, "", "no such thing"},
		{[]int64{7, 2, 9, 4}, []int64{2, 9}, "", "ids"},
	} {
		rows := func(ids []int64) func(port string, from, to int) *tensor.Tensor {
			return func(port string, from, to int) *tensor.Tensor {
				if port == "m.wpe-input_0" {
					return toy.Of(t, ids[from:to], 1, to-from)
				}
				var x []float32
				for _, id := range ids[from:to] {
					v := float32(math.Sin(float64(id)))
					if port == "m.out-output" {
						v = -v
					}
					x = append(x, v)
				}
				return toy.Of(t, x, 1, to-from, 1)
			}
		}
		r := inTwo(t, placed, "", []string{"m.wpe-input_0", "m.wpe-output", "m.out-output"}, rows(tt.golden), rows(append(tt.golden[:2:2], tt.second...)))
		require.NotNil(t, r.FirstDivergence, tt.reason)
		text := ""
		for _, k := range r.Causes {
			if k.ID == "state/position" {
				assert.Equal(t, [2]any{"m.wpe", true}, [2]any{k.Layer, k.Proven}, tt.reason)
				text = k.Text
			}
		}
		assert.Equal(t, tt.text, text, tt.reason)
	}
}
