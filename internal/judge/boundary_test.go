package judge_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

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
		behind       float64 // by which what is made of it is off
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
		actual := model("mlx", tt.kept, off(cache, tt.steps*step, tt.of), off(y, tt.behind, all), off(z, tt.behind, all))
		r := compareRuns(t, golden, actual).Report("toy", true)
		if tt.want == "" {
			assert.Equal(t, report.Pass, r.Verdict, tt.reason)
			continue
		}
		if assert.Equal(t, report.Fail, r.Verdict, tt.reason) && assert.NotNil(t, r.FirstDivergence, tt.reason) {
			assert.Equal(t, tt.want, r.FirstDivergence.Layer, "%s: %s", tt.reason, r.FirstDivergence.Text)
		}
	}
}
