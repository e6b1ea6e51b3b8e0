package piece_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// doubled is x → a = 2x → b = a + 1 → c = 3b, four rows of two.
const doubled = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[1,4,2],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":1,"shape":[1,4,2],"dtype":"float32","from":{"op":0}},{"id":2,"shape":[1,4,2],"dtype":"float32","from":{"op":1}},
{"id":3,"shape":[1,4,2],"dtype":"float32","from":{"op":2}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.add.Tensor","args":{"self":"%1","other":1,"alpha":1},"out":["%2"],"layer":"b","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%2","other":3},"out":["%3"],"layer":"c","call":1}],
"passes":[{"step":"0","ops":[0,3],"ports":{"model-input_x":["%0",0,3],"a-output":["%1",1,1],"b-output":["%2",2,2],"c-output":["%3",3,3]}}]}`

// rows is a record of which the candidate has some rows.
func rows(t *testing.T, x []float64, own ...bool) piece.Record {
	for i, is := range own {
		if !is {
			x[2*i], x[2*i+1] = 0, 0
		}
	}
	r := piece.Record{Tensor: array(t, tensor.F32, []int{1, 4, 2}, x), Rows: &piece.Rows{Axis: 1, Batch: 1, Length: 4, Own: own}}
	if slices.Contains(own, false) {
		r.Complete = func(made *replay.Array) (*replay.Array, error) {
			out := made.Floats()
			for i, is := range own {
				if is {
					copy(out[2*i:2*i+2], x[2*i:2*i+2])
				}
			}
			return replay.Of(tensor.F32, []int{1, 4, 2}, out)
		}
	}
	return r
}

// Wherever the rows of tokens lie in a tensor, a wrong one is named, and one that is not the candidate's own counts for nothing.
func TestRowsOfAnyLayout(t *testing.T) {
	for _, tt := range []struct {
		shape               []int
		axis, batch, length int
		reason              string
	}{
		{[]int{2, 3, 4}, 1, 2, 3, "[B L w]"},
		{[]int{2, 2, 3, 4}, 2, 2, 3, "[B h L w]"},
		{[]int{2, 4, 3}, 2, 2, 3, "[B w L]"},
		{[]int{2, 2, 4, 3}, 3, 2, 3, "[B h w L]"},
		{[]int{2, 3}, 1, 2, 3, "[B L]"},
		{[]int{6, 4}, 0, 2, 3, "[B·L w]"},
		{[]int{12, 2, 2}, 0, 2, 3, "[B·L·m h w]"},
		{[]int{1, 3, 4}, 1, 2, 3, "[1 L w], for all sequences"},
	} {
		shape, err := json.Marshal(tt.shape)
		require.NoError(t, err)
		n := 1
		for _, d := range tt.shape {
			n *= d
		}
		inner, lines := n, 1 // elements of an index of the axis, and sequences that are told apart
		for _, d := range tt.shape[:tt.axis+1] {
			inner /= d
		}
		if tt.axis == 0 {
			inner = n / tt.batch / tt.length
		}
		if tt.axis == 0 || tt.shape[0] == tt.batch {
			lines = tt.batch
		}
		row := func(i int) int { return i/(n/lines)*tt.length + i/inner%tt.length }
		for k := range lines * tt.length {
			for _, mine := range []bool{true, false} {
				own := slices.Repeat([]bool{true}, tt.batch*tt.length)
				own[k] = mine
				r, _, faults := judge(t, strings.ReplaceAll(twice, "[16,16]", string(shape)), tensor.F32, nil, layerOf, func(at program.Port) []float64 {
					x := make([]float64, n)
					for i := range x {
						x[i] = map[string]float64{"model": 1, "y": 2, "z": 1}[at.Layer] * float64(i+1)
						if at.Layer != "model" && row(i) == k {
							x[i] *= 3
						}
					}
					return x
				}, func(_ program.Port, r *piece.Record) {
					r.Rows = &piece.Rows{Axis: tt.axis, Batch: tt.batch, Length: tt.length, Own: own}
				})
				if !mine {
					assert.Empty(t, faults, tt.reason)
					continue
				}
				assert.Equal(t, []string{"y"}, faults, tt.reason)
				assert.Equal(t, []int{k}, r.Local[1].Rows, tt.reason)
			}
		}
	}
}

// Rows that no forward pass recorded are made by replay, and are no witness: a stretch closes only by
// ports that have rows of those that are wrong.
func TestRows(t *testing.T) {
	type port = struct {
		x   []float64
		own []bool
	}
	all := []bool{true, true, true, true}
	begins, ends := []bool{true, true, false, false}, []bool{false, false, true, true}
	right := map[string]port{
		"model": {[]float64{1, 2, 3, 4, 5, 6, 7, 8}, all}, "a": {[]float64{2, 4, 6, 8, 10, 12, 14, 16}, all},
		"b": {[]float64{3, 5, 7, 9, 11, 13, 15, 17}, all}, "c": {[]float64{9, 15, 21, 27, 33, 39, 45, 51}, all},
	}
	wrong := []float64{2, 4, 6, 8, 10, 12, 28, 32} // the last row of a
	tests := []struct {
		name    string
		change  map[string]port
		faults  []string
		rows    []int
		stretch bool
		reason  string
	}{
		{"right", nil, nil, nil, false, "all rows"},
		{"last rows alone", map[string]port{"c": {right["c"].x, ends}, "b": {right["b"].x, begins}}, nil, nil, false, "others are made"},
		{"written otherwise", map[string]port{"a": {wrong, all}}, nil, nil, true, "b has the row that is wrong in a, and has it right"},
		{"no witness", map[string]port{"a": {wrong, all}, "b": {right["b"].x, begins}, "c": {right["c"].x, begins}}, []string{"a"}, []int{3}, false,
			"nothing after a has its last row"},
		{"a later witness", map[string]port{"a": {wrong, all}, "b": {right["b"].x, begins}}, nil, nil, true,
			"c has it; what was made of b is made anew without a"},
		{"wrong", map[string]port{"a": {wrong, all}, "b": {[]float64{3, 5, 7, 9, 11, 13, 29, 33}, all}, "c": {right["c"].x, begins}}, []string{"a"}, []int{3}, false,
			"b follows from a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			load := func(*program.Value) (*replay.Array, error) {
				return replay.Of(tensor.F32, []int{1, 4, 2}, right["model"].x)
			}
			have := maps.Clone(right)
			maps.Copy(have, tt.change)
			r, _, faults := judge(t, doubled, tensor.F32, load, layerOf, func(program.Port) []float64 { return nil }, func(at program.Port, r *piece.Record) {
				*r = rows(t, slices.Clone(have[at.Layer].x), have[at.Layer].own...)
			})
			for _, f := range r.Faults {
				assert.Equal(t, tt.rows, r.Local[f].Rows, tt.reason)
			}
			assert.Equal(t, tt.faults, faults, tt.reason)
			assert.Len(t, r.Stretches, map[bool]int{true: 1}[tt.stretch], tt.reason)
		})
	}
}
