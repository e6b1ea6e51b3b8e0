package judge_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// A router chooses one of four experts for each of three tokens; nothing but the golden says what is right.
func TestTies(t *testing.T) {
	golden := []float32{0.5, 0.502, -1, 0, 2, 1, 0, -1, -2, 0, 1, 3}
	for _, r := range []struct {
		encoding, reason string
		scores           []float32 // the candidate's of the first token
		chosen           []int64
		rest             float32 // what it has in place of the golden's first row after the choice
		later            float32 // and of its last
		place            string
		verdict          report.Verdict
	}{
		{"bfloat16", "the same choice", []float32{0.5, 0.502, -1, 0}, []int64{1, 0, 3}, 1, 1, "", report.Pass},
		{"bfloat16", "two that are nearer than the noise", []float32{0.502, 0.5, -1, 0}, []int64{0, 0, 3}, 5, 1, "", report.Pass},
		{"bfloat16", "the candidate's scores need not say so: they are rounded, too", []float32{0.5, 0.502, -1, 0}, []int64{0, 0, 3}, 5, 1, "", report.Pass},
		{"bfloat16", "the third best", []float32{0.5, 0.502, -1, 0}, []int64{3, 0, 3}, 5, 1, "m.gate", report.Fail},
		{"bfloat16", "another token's is no tie", []float32{0.5, 0.502, -1, 0}, []int64{0, 1, 3}, 5, 1, "m.gate", report.Fail},
		{"bfloat16", "no such expert", []float32{0.5, 0.502, -1, 0}, []int64{7, 0, 3}, 5, 1, "m.gate", report.Fail},
		{"bfloat16", "after a tie a later token that is off is no rounding", []float32{0.502, 0.5, -1, 0}, []int64{0, 0, 3}, 5, 1.2, "", report.Incomplete},
		{"float32", "float32 knows no ties", []float32{0.502, 0.5, -1, 0}, []int64{0, 0, 3}, 5, 1, "m.gate", report.Fail},
	} {
		x := wave(t, 1, 0, 3, 8)
		runOf := func(scores []float32, chosen []int64, first, last float32) *dump.Run {
			y := change(t, x, func(row, col int) float64 {
				if row == 0 {
					return float64(first) * x.At(col)
				}
				if row == 2 {
					return float64(last) * (0.5 + x.At(row*8+col))
				}
				return 0.5 + x.At(row*8+col)
			})
			all := append(append([]float32{}, scores...), golden[4:]...)
			return in(r.encoding, run("torch", port{"m.gate-input_0", x}, port{"m.gate-output_0", toy.Of(t, all, 3, 4)}, port{"m.gate-output_1", toy.Of(t, chosen, 3, 1)},
				port{"m.experts-output", y}, port{"m-output", y}))
		}
		got := compareRuns(t, runOf(golden[:4], []int64{1, 0, 3}, 1, 1), runOf(r.scores, r.chosen, r.rest, r.later)).Report("toy", true)
		assert.Equal(t, []any{r.verdict, r.place}, []any{got.Verdict, placeOf(got)}, "%s: %s", r.encoding, r.reason)
	}
}

// After a choice that came the other way, another one is right that is the best by the candidate's own scores.
func TestChoiceBehindATie(t *testing.T) {
	x := wave(t, 1, 0, 3, 8)
	side := func(first, second float32, scores []float32, chosen, next []int64, last float64) *dump.Run {
		y := change(t, x, func(row, col int) float64 {
			if row == 0 {
				return float64(first) * x.At(col)
			}
			if row == 2 {
				return last * x.At(row*8+col)
			}
			return x.At(row*8 + col)
		})
		return in("bfloat16", run("torch", port{"m.0.gate-output_0", toy.Of(t, []float32{first, second, 2, 1, -2, 3}, 3, 2)}, port{"m.0.gate-output_1", toy.Of(t, chosen, 3, 1)},
			port{"m.1.gate-output_0", toy.Of(t, append(scores, 2, 1, -2, 3), 3, 2)}, port{"m.1.gate-output_1", toy.Of(t, next, 3, 1)}, port{"m.1-output", y}))
	}
	for _, tt := range []struct {
		chosen  int64
		scores  []float32 // of the second choice, of the first token
		next    int64
		last    float64
		place   string
		verdict report.Verdict
		reason  string
	}{
		{1, []float32{4, 1}, 0, 1, "", report.Pass, "as the reference"},
		{0, []float32{1, 4}, 1, 1, "", report.Pass, "a tie, and after it the best of other scores"},
		{0, []float32{4, 1}, 1, 1, "", report.Pass, "nothing is known of a token after its own tie"},
		{1, []float32{1, 4}, 1, 1, "m.1.gate", report.Fail, "no tie before it"},
		{0, []float32{1, 4}, 1, 1.5, "", report.Incomplete, "and another token is off"},
	} {
		golden := side(0.5, 0.501, []float32{4, 1}, []int64{1, 0, 1}, []int64{0, 0, 1}, 1)
		first, second := float32(0.5), float32(0.501)
		if tt.chosen == 0 {
			first, second = second, first
		}
		r := compareRuns(t, golden, side(first, second, tt.scores, []int64{tt.chosen, 0, 1}, []int64{tt.next, 0, 1}, tt.last)).Report("toy", true)
		assert.Equal(t, []any{tt.verdict, tt.place}, []any{r.Verdict, placeOf(r)}, "%s: %s", tt.reason, report.Headline(r))
	}
}

// routes is x → scores = x · w, of which the largest is chosen → x · e · choice. Neither w nor e is at hand.
const routes = `{"schema":1,"engine":"torch","case":"short","frames":[],"stacks":[],
"values":[{"id":0,"shape":[1,4,8],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[8,3],"dtype":"float32","from":{"weight":"w"}},
{"id":2,"shape":[1,4,3],"dtype":"float32","from":{"op":0}},{"id":3,"shape":[1,4,1],"dtype":"float32","from":{"op":1}},
{"id":4,"shape":[1,4,1],"dtype":"int64","from":{"op":1}},{"id":5,"shape":[8],"dtype":"float32","from":{"weight":"e"}},
{"id":6,"shape":[1,4,8],"dtype":"float32","from":{"op":2}},{"id":7,"shape":[1,4,8],"dtype":"float32","from":{"op":3}}],
"ops":[{"op":"aten.matmul.default","args":{"self":"%0","other":"%1"},"out":["%2"],"layer":"m.gate","call":1},
{"op":"aten.topk.default","args":{"self":"%2","k":1,"dim":-1,"largest":true,"sorted":true},"out":["%3","%4"],"layer":"m.gate","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%0","other":"%5"},"out":["%6"],"layer":"m.experts","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%6","other":"%4"},"out":["%7"],"layer":"m.experts","call":1}],
"passes":[{"step":"0","ops":[0,4],"ports":{"m.gate-input_0":["%0",0,2],"m.gate-output_0":["%2",2,2],"m.gate-output_1":["%4",2,2],"m.experts-output":["%7",4,4]}}]}`

// Along a path, rows that hang on a tie are left out, and what is off after it is no pass.
func TestTiesAlongPaths(t *testing.T) {
	scores := [4][]float32{{0.5, 0.502, -1}, {2, 1, 0}, {-1, 0.5, 0.502}, {3, 1, 0}}
	rows := func(chosen [4]int64, experts [4]float32, off float32) func(port string, from, to int) *tensor.Tensor {
		return func(port string, from, to int) *tensor.Tensor {
			var in, logits, out []float32
			for at := from; at < to; at++ {
				for i := range 8 {
					x := float32(at+1) * float32(i-3)
					in, out = append(in, x), append(out, x*experts[at])
				}
				if at == 3 {
					out[len(out)-1] *= 1 + off/4
				}
				logits = append(logits, scores[at]...)
			}
			switch port {
			case "m.gate-input_0":
				return toy.Of(t, in, 1, to-from, 8)
			case "m.gate-output_0":
				return toy.Of(t, logits, 1, to-from, 3)
			case "m.gate-output_1":
				return toy.Of(t, chosen[from:to], 1, to-from, 1)
			}
			return toy.Of(t, out, 1, to-from, 8)
		}
	}
	for _, tt := range []struct {
		chosen  [4]int64
		experts [4]float32
		off     float32 // of a number of the last row
		verdict report.Verdict
		layer   string
		reason  string
	}{
		{[4]int64{1, 0, 2, 0}, [4]float32{1, 1, 1, 1}, 0, report.Pass, "", "the same choices"},
		{[4]int64{1, 0, 2, 0}, [4]float32{1, 1, 1, 1}, 0.4, report.Pass, "", "a row may be off by more than a tensor"},
		{[4]int64{1, 0, 1, 0}, [4]float32{1, 1, 5, 1}, 0, report.Pass, "", "a tie, in the second pass"},
		{[4]int64{1, 0, 1, 0}, [4]float32{1, 1, 5, 1.5}, 0, report.Incomplete, "", "a tie, and a later token in the same pass"},
		{[4]int64{0, 0, 2, 0}, [4]float32{5, 1, 1, 1.5}, 0, report.Incomplete, "", "a tie, and a token in a later pass"},
		{[4]int64{1, 0, 0, 0}, [4]float32{1, 1, 5, 1}, 0, report.Fail, "m.gate", "no tie"},
		{[4]int64{1, 0, 2, 0}, [4]float32{1, 1, 1, 1.5}, 0, report.Fail, "m.experts", "no tie, and a token in a later pass"},
	} {
		ports := []string{"m.gate-input_0", "m.gate-output_0", "m.gate-output_1", "m.experts-output"}
		r := inTwo(t, routes, "bfloat16", ports, rows([4]int64{1, 0, 2, 0}, [4]float32{1, 1, 1, 1}, 0), rows(tt.chosen, tt.experts, tt.off))
		assert.Equal(t, []any{tt.verdict, tt.layer}, []any{r.Verdict, placeOf(r)}, "%s: %s", tt.reason, report.Headline(r))
	}
}

// Values of a rounded cache that lie between two steps come either way, and what hangs on them is off by as much.
func TestBoundariesOfARoundedCache(t *testing.T) {
	const most, width = 2.0, 32
	step := most / 127
	cache := change(t, wave(t, 1, 0, 1, 8, width), func(r, c int) float64 {
		if c == 0 {
			return most
		}
		return step * math.Round(100*math.Sin(float64(r*r+3*c)))
	})
	off := func(x *tensor.Tensor, by float64, of func(row, column int) bool) *tensor.Tensor {
		return change(t, x, func(r, c int) float64 {
			v := x.At(r*width + c)
			if of(r, c) {
				v += by
			}
			return v
		})
	}
	model := func(engine, kept string, cache, out, later *tensor.Tensor) *dump.Run {
		x := wave(t, 1, 0.3, 1, 8, width)
		r := run(engine, port{"m.layers.0.attn.k_proj-input_0", x}, port{"m.layers.0.attn.k_proj-output", wave(t, 1, 0.5, 1, 8, width)},
			port{"m.layers.0.attn.o_proj-input_0", out}, port{"m.layers.0.attn.o_proj-output", out},
			port{"m.layers.0.attn-output", out}, port{"m.layers.0.attn-key_cache", cache},
			port{"m.head-input_0", out}, port{"m.head-output", later})
		for i, e := range r.Entries {
			if layer, is := strings.CutSuffix(e.Layer, "-key_cache"); is {
				r.Entries[i].Layer, r.Entries[i].Port = layer, "key_cache"
			}
		}
		r.Info.Encoding = dump.Encoding{Compute: "float32", KVCache: kept}
		return r
	}
	y, z := wave(t, 1, 0.9, 1, 8, width), wave(t, 1, 1.4, 1, 8, width)
	none := func(int, int) bool { return false }
	one := func(r, c int) bool { return r == 3 && c == 5 }
	third := func(r, c int) bool { return (r+c)%3 == 0 && c > 0 }
	all := func(int, int) bool { return true }
	for _, tt := range []struct {
		kept         string
		steps        float64 // that some values of the cache are off
		of           func(row, column int) bool
		after        float64 // by which what is made of it is off
		want, reason string
	}{
		{"int8", 1, one, 1e-4, "", "a value at a boundary, and what hangs on it"},
		{"int8", 1, one, 1e-3, "", "and what hangs on it is off by more than the defaults, and no more than the cache"},
		{"int8", 0, none, 2e-3, "m.layers.0.attn", "nothing lies at a boundary"},
		{"int8", 1, one, 0.05, "m.layers.0.attn", "more than the cache is off"},
		{"int8", 1, third, 1e-4, "m.layers.0.attn", "so many do not lie there: groups of another size"},
		{"int8", 3, one, 1e-4, "m.layers.0.attn", "more than a step"},
		{"", 1, one, 1e-4, "m.layers.0.attn", "a cache that does not round"},
	} {
		golden := model("torch", tt.kept, cache, y, z)
		actual := model("mlx", tt.kept, off(cache, tt.steps*step, tt.of), off(y, tt.after, all), off(z, tt.after, all))
		r := compareRuns(t, golden, actual).Report("toy", true)
		assert.Equal(t, []any{tt.want == "", tt.want}, []any{r.Verdict == report.Pass, placeOf(r)}, tt.reason)
	}
}
