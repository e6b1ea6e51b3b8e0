package weights_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

const group = 32

// codes are those of a weight, with the scales and biases of groups: bias + scale·code.
type codes struct {
	q           []int
	scale, bias []float32
}

// format is MLX's, with scales of a type; or compressed-tensors', whose zero point is in the middle.
type format struct {
	bits    int
	scales  tensor.DType
	centred bool
	clipped float32 // by which part of its width a group is narrower at each end
}

// round rounds to a format's type of scales.
func (f format) round(v float32) float32 {
	if f.scales == tensor.BF16 {
		return bfloat16(v)
	}
	return v
}

// codesOf rounds a weight to nearest.
func (f format) codesOf(x matrix) (c codes) {
	top := float64(int(1)<<f.bits - 1)
	for part := range slices.Chunk(x.v, group) {
		low, high := slices.Min(part), slices.Max(part)
		if f.centred {
			high = max(high, -low)
			low = -high * float32((top+1)/(top-1))
		}
		cut := f.clipped * (high - low)
		low, high = low+cut, high-cut
		scale, bias := (high-low)/float32(top), low // the codes are those before these are rounded, as mlx's are
		if f.centred {
			bias = -scale * float32(top+1) / 2
		}
		if high-low < 1e-6 {
			scale, bias = 0, 0
		}
		for _, v := range part {
			q := math.RoundToEven((float64(v) - float64(bias)) / float64(scale))
			c.q = append(c.q, int(min(max(q, 0), top)))
		}
		c.scale, c.bias = append(c.scale, f.round(scale)), append(c.bias, f.round(bias))
	}
	return c
}

// pack writes a model whose projections are quantised. change damages codes; nil for none.
func (f format) pack(t *testing.T, m model, change func(name string, c *codes)) string {
	t.Helper()
	var named []tensor.Named
	add := func(name string, x *tensor.Tensor, err error) {
		require.NoError(t, err)
		named = append(named, tensor.Named{Name: name, Tensor: x})
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		base, ok := strings.CutSuffix(name, "_proj.weight")
		if x := m[name]; !ok {
			y, err := x.tensor(tensor.F32)
			add(name, y, err)
			continue
		}
		base += "_proj"
		x := m[name]
		c := f.codesOf(x)
		if change != nil {
			change(name, &c)
		}
		rows := len(x.v) / x.width
		words := make([]byte, len(x.v)*f.bits/8)
		for i, q := range c.q {
			for b := range f.bits {
				at := i*f.bits + b
				words[at/8] |= byte(q >> b & 1 << (at % 8))
			}
		}
		y, err := tensor.New(tensor.U32, []int{rows, len(words) / rows / 4}, words)
		if f.centred {
			add(base+".weight_packed", y, err)
			y, err = tensor.Of([]int64{int64(rows), int64(x.width)}, 2)
			add(base+".weight_shape", y, err)
		} else {
			add(base+".weight", y, err)
		}
		for part, v := range map[string][]float32{"scales": c.scale, "biases": c.bias} {
			y, err := matrix{v, x.width / group}.tensor(f.scales)
			switch {
			case !f.centred:
				add(base+"."+part, y, err)
			case part == "scales":
				add(base+".weight_scale", y, err)
			}
		}
	}
	how := map[string]any{"quantization": map[string]any{"group_size": group, "bits": f.bits}}
	if f.centred {
		how = map[string]any{"quantization_config": map[string]any{"quant_method": "compressed-tensors", "format": "pack-quantized",
			"config_groups": map[string]any{"group_0": map[string]any{"weights": map[string]any{"num_bits": f.bits, "group_size": group, "symmetric": true}}}}}
	}
	require.NoError(t, json.Unmarshal([]byte(config), &how))
	text, err := json.Marshal(how)
	require.NoError(t, err)
	return write(t, named, string(text))
}

// Each element is as near as its format can have it, or that is a fault. All that is said is in testdata/quantised.want.
func TestQuantised(t *testing.T) {
	mlx4, coarse, fine := format{4, tensor.F32, false, 0}, format{3, tensor.BF16, false, 0}, format{8, tensor.F32, false, 0}
	centred := format{4, tensor.F32, true, 0}
	in := func(name string, change func(c *codes)) func(string, *codes) {
		return func(n string, c *codes) {
			if n == name || name == "" {
				change(c)
			}
		}
	}
	one := func(c *codes) { c.q[77] ^= 2 }
	lowest := func(c *codes) {
		for i := range group {
			c.q[5*group+i] ^= 1
		}
	}
	other := func(c *codes) { c.scale[3] = 1.5 * c.scale[4] }
	moved := func(c *codes) { // as a quantiser does that makes up for the errors of other inputs
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range c.q {
			if rng.IntN(8) == 0 {
				c.q[i] = min(max(c.q[i]+1-2*rng.IntN(2), 0), 15)
			}
		}
	}
	larger := func(c *codes) {
		moved(c)
		for i := range c.scale {
			c.scale[i] *= 1.15
		}
	}
	same := func(model) {}
	made := func() model { // of which a group is so small that its scale is 0
		m := llama()
		copy(m[gate1].v[7*group:], slices.Repeat([]float32{5e-8}, group))
		return m
	}
	exchanged := func(m model) { m[gate0], m[gate1] = m[gate1], m[gate0] }
	var all strings.Builder
	for _, r := range []struct {
		ref    *format // nil for numbers
		cand   *format
		model  func(m model) // what the candidate is of
		change func(name string, c *codes)
		wrong  []string // nil for a pass
		reason string
	}{
		{nil, &mlx4, same, nil, nil, "rounded to nearest"},
		{nil, &coarse, same, nil, nil, "scales of 16 bits"},
		{nil, &format{2, tensor.BF16, false, 0}, same, nil, nil, "of 2 bits"},
		{nil, &format{5, tensor.BF16, false, 0}, same, nil, nil, "of 5 bits"},
		{nil, &fine, same, nil, nil, "of 8 bits"},
		{nil, &centred, same, nil, nil, "without biases"},
		{nil, &format{4, tensor.F32, false, 0.06}, same, nil, nil, "what is largest is cut off by a step"},
		{nil, &mlx4, func(m model) { m.each("proj", transposed) }, nil, nil, "transposed, and quantised along the other axis"},
		{nil, &mlx4, same, in(gate1, one), []string{gate1}, "one code"},
		{nil, &coarse, same, in(gate1, lowest), []string{gate1}, "the lowest bits of a group"},
		{nil, &mlx4, same, in(gate1, other), []string{gate1}, "the scale of another group"},
		{nil, &mlx4, same, in(gate1, func(c *codes) { c.bias[9] += c.scale[9] }), []string{gate1}, "a bias"},
		{nil, &mlx4, same, in(gate1, func(c *codes) { c.scale[3], c.bias[3] = 0, 0 }), []string{gate1}, "a group is lost"},
		{nil, &mlx4, exchanged, nil, []string{gate0, gate1}, "exchanged"},
		{nil, &centred, same, in("", moved), nil, "not to nearest, anywhere"},
		{nil, &centred, same, in(gate1, moved), []string{gate1}, "not to nearest, in one weight"},
		{nil, &mlx4, same, in(gate1, moved), []string{gate1}, "by a quantiser that makes up for nothing"},
		{nil, &centred, same, func(n string, c *codes) {
			if n == gate1 {
				larger(c)
			} else {
				moved(c)
			}
		}, []string{gate1}, "one is larger than the others"},
		{&fine, nil, same, nil, nil, "the reference is quantised"},
		{&mlx4, nil, exchanged, nil, []string{gate0, gate1}, "and two are exchanged"},
		{&mlx4, nil, func(m model) { m[gate1].v[77] += 2 }, nil, []string{gate1}, "and an element is much larger"},
		{&fine, &mlx4, same, nil, nil, "both are quantised"},
		{&fine, &mlx4, same, in(gate1, one), []string{gate1}, "both, and one code"},
		{&mlx4, &mlx4, same, nil, nil, "alike"},
	} {
		write := func(f *format, m model, change func(name string, c *codes)) string {
			if f == nil {
				return m.write(t, tensor.F32)
			}
			return f.pack(t, m, change)
		}
		cand := made()
		r.model(cand)
		got := compare(t, write(r.ref, made(), nil), write(r.cand, cand, r.change))
		fmt.Fprintf(&all, "=== %s\n", r.reason)
		require.NoError(t, got.Text(&all))
		var wrong []string
		for _, w := range got.Weights {
			if !w.Good() {
				wrong = append(wrong, w.Reference)
			} else if w.Reference == query {
				fmt.Fprintf(&all, "  %s\n", w.String())
			}
		}
		assert.ElementsMatch(t, r.wrong, wrong, r.reason)
		assert.Equal(t, len(r.wrong) == 0, got.Pass, r.reason)
	}
	toy.Kept(t, "quantised.want", all.String())
}
