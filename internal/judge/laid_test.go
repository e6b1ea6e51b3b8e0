package judge_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// weighed is x → x · w, inside m.conv between what in puts out and out takes, which changes its sign.
const weighed = `{"schema":1,"engine":"torch","case":"short","frames":[],"stacks":[],
"values":[{"id":0,"shape":[1,4],"dtype":"int64","from":{"input":"ids","step":"0"}},{"id":1,"shape":[5,2],"dtype":"float32","from":{"weight":"table"}},
{"id":2,"shape":[1,4,2],"dtype":"float32","from":{"op":0}},{"id":3,"shape":[2],"dtype":"float32","from":{"weight":"w"}},
{"id":4,"shape":[1,4,2],"dtype":"float32","from":{"op":1}},
{"id":5,"shape":[1,4,2],"dtype":"float32","from":{"op":2}}],
"ops":[{"op":"aten.embedding.default","args":{"weight":"%1","indices":"%0"},"out":["%2"],"layer":"m.conv.in","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%2","other":"%3"},"out":["%4"],"layer":"m.conv","call":1},
{"op":"aten.neg.default","args":{"self":"%4"},"out":["%5"],"layer":"m.conv.out","call":1}],
"passes":[{"step":"0","ops":[0,3],"ports":{"m.conv.in-input_0":["%0",0,1],"m.conv.in-output":["%2",1,1],"m.conv.out-input_0":["%4",2,3],"m.conv.out-output":["%5",3,3]}}]}`

// inPasses is a run of one sequence of four tokens in forward passes: rows returns what a port has from one
// token to another, nil for nothing.
func inPasses(t *testing.T, info dump.Info, ports []string, rows func(port string, from, to int) *tensor.Tensor, spans ...[2]int) *dump.Run {
	t.Helper()
	info.Engine, info.Case, info.Mode, info.TokenIDs = "torch", "short", dump.Standard, []byte("[[4,1,3,2]]")
	var entries []dump.Entry
	for step, s := range spans {
		for _, name := range ports {
			x := rows(name, s[0], s[1])
			if x == nil {
				continue
			}
			layer, port := label.Split(name)
			entries = append(entries, dump.Entry{Step: strconv.Itoa(step), Layer: layer, Port: port, Tensor: x})
		}
	}
	return dump.New("torch", info, dump.OrderRunFile, entries)
}

// inTwo compares a candidate in two passes with a golden of one, by its program.
func inTwo(t *testing.T, text, encoding string, ports []string, golden, actual func(port string, from, to int) *tensor.Tensor) *report.Report {
	t.Helper()
	p := parsed(t, text)
	info := dump.Info{Path: "chunked:2", Passes: [][]dump.PassItem{{{Sequence: 0, From: 0, To: 2}}, {{Sequence: 0, From: 2, To: 4}}}}
	info.Encoding.Compute = encoding
	return besideRows(t, p, inPasses(t, dump.Info{}, ports, golden, [2]int{0, 4}), inPasses(t, info, ports, actual, [2]int{0, 2}, [2]int{2, 4}))
}

// besideRows judges a run along a path by the rows of a golden, and by its program.
func besideRows(t *testing.T, p *program.Program, golden, actual *dump.Run) *report.Report {
	t.Helper()
	cand, err := path.New(actual, nil)
	require.NoError(t, err)
	ref, err := path.New(golden, cand)
	require.NoError(t, err)
	k, _, err := judge.Goldens{Standard: []*path.Sheet{ref}, Programs: map[*path.Sheet]*program.Program{ref: p}}.Case(t.Context(), "short", cand, nil)
	require.NoError(t, err)
	return compared(t, k, judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFull}}).Report("toy", true)
}

// Where the weights of a piece are not at hand, the golden tells in which forward pass it is wrong.
func TestPassByTheGolden(t *testing.T) {
	tokens := []int64{4, 1, 3, 2}
	rows := func(wrongFrom int) func(port string, from, to int) *tensor.Tensor {
		return func(port string, from, to int) *tensor.Tensor {
			if port == "m.conv.in-input_0" {
				return toy.Of(t, tokens[from:to], 1, to-from)
			}
			var x []float32
			for at := from; at < to; at++ {
				v, w := float32(tokens[at]), float32(3)
				if at >= wrongFrom {
					w = 4
				}
				switch port {
				case "m.conv.in-output":
					x = append(x, v, v*v)
				case "m.conv.out-input_0":
					x = append(x, v*w, v*v*5)
				default:
					x = append(x, -v*w, -v*v*5)
				}
			}
			return toy.Of(t, x, 1, to-from, 2)
		}
	}
	for _, tt := range []struct {
		wrongFrom int
		pass      int
		position  int
		reason    string
	}{
		{2, 1, 2, "the first pass agrees"},
		{3, 1, 3, "and the first row of the second"},
		{0, 0, 0, "both are wrong"},
	} {
		ports := []string{"m.conv.in-input_0", "m.conv.in-output", "m.conv.out-input_0", "m.conv.out-output"}
		d := inTwo(t, weighed, "", ports, rows(9), rows(tt.wrongFrom)).FirstDivergence
		require.NotNil(t, d, tt.reason)
		assert.Equal(t, "m.conv", d.Layer, tt.reason)
		assert.Equal(t, []int{tt.pass, tt.position}, []int{d.Pass, d.Position}, tt.reason)
	}
}

// turned is x → −x → −(−x).
const turned = `{"schema":1,"engine":"torch","case":"short","frames":[],"stacks":[],
"values":[{"id":0,"shape":[1,4],"dtype":"int64","from":{"input":"ids","step":"0"}},{"id":1,"shape":[1,4,1],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[1,4,1],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[1,4,1],"dtype":"float32","from":{"op":2}},{"id":4,"shape":[1,4,1],"dtype":"float32","from":{"op":3}}],
"ops":[{"op":"aten.unsqueeze.default","args":{"self":"%0","dim":-1},"out":["%1"],"layer":"m.a","call":1},
{"op":"aten._to_copy.default","args":{"self":"%1","dtype":"float32"},"out":["%2"],"layer":"m.a","call":1},
{"op":"aten.neg.default","args":{"self":"%2"},"out":["%3"],"layer":"m.a","call":1},
{"op":"aten.neg.default","args":{"self":"%3"},"out":["%4"],"layer":"m.b","call":1}],
"passes":[{"step":"0","ops":[0,4],"ports":{"m.a-input_0":["%0",0,3],"m.a-output":["%3",3,3],"m.b-output":["%4",4,4]}}]}`

// What a candidate has otherwise, and in one forward pass not at all, is another way to write the same where what is made
// of it agrees, as the choice of an indexer is that runs where there is something to choose.
func TestStretchThatOnePassLacks(t *testing.T) {
	tokens := []int64{4, 1, 3, 2}
	rows := func(candidate bool) func(port string, from, to int) *tensor.Tensor {
		return func(port string, from, to int) *tensor.Tensor {
			if port == "m.a-input_0" {
				return toy.Of(t, tokens[from:to], 1, to-from)
			}
			var x []float32
			for at := from; at < to; at++ {
				switch v := float32(tokens[at]); {
				case port == "m.b-output":
					x = append(x, v)
				case candidate:
					x = append(x, v*v*v)
				default:
					x = append(x, -v)
				}
			}
			if candidate && port == "m.a-output" && from > 0 {
				return nil
			}
			return toy.Of(t, x, 1, to-from, 1)
		}
	}
	r := inTwo(t, turned, "", []string{"m.a-input_0", "m.a-output", "m.b-output"}, rows(false), rows(true))
	assert.Equal(t, report.Pass, r.Verdict, "%+v", r.FirstDivergence)
}

// A cache whose rows change between forward passes is named, with the row.
func TestChangedCache(t *testing.T) {
	text := strings.NewReplacer(`"from":{"op":3}}],`, `"from":{"op":3}},{"id":5,"shape":[1,1,4,1],"dtype":"float32","from":{"op":4}}],`,
		`"layer":"m.b","call":1}],`, `"layer":"m.b","call":1},
{"op":"aten.unsqueeze.default","args":{"self":"%4","dim":1},"out":["%5"],"layer":"m.cache","call":1}],`,
		`"ops":[0,4]`, `"ops":[0,5]`, `["%4",4,4]}`, `["%4",4,4],"m.cache-output":["%5",5,5]}`).Replace(turned)
	tokens := []int64{4, 1, 3, 2}
	for _, tt := range []struct {
		changed int // the position that the second pass has otherwise
		note    string
		reason  string
	}{
		{-1, "", "it stays"},
		{1, "forward pass 1, sequence 0, position 1: m.cache output is not what was written there first, off by relative L2 1", "a row that was there"},
	} {
		rows := func(candidate bool) func(port string, from, to int) *tensor.Tensor {
			return func(port string, from, to int) *tensor.Tensor {
				var x []float32
				if port == "m.cache-output" {
					if !candidate {
						return nil // a golden need not have it
					}
					from = 0
				}
				for at := from; at < to; at++ {
					v := float32(tokens[at])
					switch {
					case port == "m.a-output":
						v = -v
					case port == "m.b-output" && candidate:
						v *= 3 // so that the run is looked at
					}
					if port == "m.cache-output" && candidate && at == tt.changed && to == 4 {
						v *= 2
					}
					x = append(x, v)
				}
				switch port {
				case "m.a-input_0":
					return toy.Of(t, tokens[from:to], 1, to-from)
				case "m.cache-output":
					return toy.Of(t, x, 1, 1, to-from, 1)
				}
				return toy.Of(t, x, 1, to-from, 1)
			}
		}
		r := inTwo(t, text, "", []string{"m.a-input_0", "m.a-output", "m.b-output", "m.cache-output"}, rows(false), rows(true))
		notes := strings.Join(r.Notes, "\n")
		assert.Contains(t, notes, tt.note, tt.reason)
		assert.Equal(t, tt.changed >= 0, strings.Contains(notes, "written there first"), "%s: %s", tt.reason, notes)
	}
}

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
	p := parsed(t, attended)
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
		r := besideRows(t, p, golden, dump.New("max", info, dump.OrderRunFile, made))
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
