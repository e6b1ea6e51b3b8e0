package piece_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// gated is x → a = 2x, b = 3x, c = a·b.
const gated = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[2],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[2],"dtype":"float32","from":{"op":2}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%0","other":3},"out":["%2"],"layer":"b","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%1","other":"%2"},"out":["%3"],"layer":"c","call":1}],
"passes":[{"step":"0","ops":[0,3],"ports":{"model-input_x":["%0",0,3],"a-output":["%1",1,1],"b-output":["%2",2,2],"c-output":["%3",3,3]}}]}`

// judged judges a run of tensors of two numbers, by layer, and returns what is said of each layer, and the layers of
// faults and of what is written otherwise. edit changes the record of a layer.
func judged(t *testing.T, source string, values map[string][]float64, edit func(layer string, r *piece.Record)) (local map[string]*piece.Local, faults, written []string) {
	t.Helper()
	p, err := program.Parse("p", []byte(source), nil)
	require.NoError(t, err)
	run := &piece.Run{Program: p, Encoding: tensor.F32}
	run.Load = func(*program.Value) (*replay.Array, error) { return replay.Of(tensor.F32, []int{2}, []float64{1, 2}) }
	for _, at := range p.Ports {
		r := piece.Record{}
		if x := values[at.Layer]; x != nil {
			r.Golden.Known = true
			r.Tensor, err = replay.Of(tensor.F32, []int{2}, x)
			require.NoError(t, err)
		}
		edit(at.Layer, &r)
		run.Records = append(run.Records, r)
	}
	found, err := piece.Judge(context.Background(), run)
	require.NoError(t, err)
	local = map[string]*piece.Local{}
	for i, l := range found.Local {
		local[p.Ports[i].Layer] = l
	}
	for _, i := range found.Faults {
		faults = append(faults, p.Ports[i].Layer)
	}
	for _, s := range found.Stretches {
		for _, i := range s {
			written = append(written, p.Ports[i].Layer)
		}
	}
	return local, faults, written
}

// Zeros are no witness: whatever is multiplied with them is right.
func TestZerosAreNoWitness(t *testing.T) {
	_, faults, written := judged(t, gated, map[string][]float64{"model": {1, 2}, "a": {0, 0}, "b": {0, 0}, "c": {0, 0}}, func(string, *piece.Record) {})
	assert.Empty(t, written)
	assert.Equal(t, []string{"a", "b"}, faults)
}

// A record in another shape is no fault where what was made of its value is judged.
func TestBridged(t *testing.T) {
	for _, tt := range []struct {
		misfit          string
		c               []float64 // what was made of b; nil: not recorded
		faults, written []string
		reason          string
	}{
		{"b", []float64{4, 6}, nil, []string{"b"}, "what is made of it is right: laid out otherwise"},
		{"b", []float64{4, 9}, []string{"c"}, []string{"b"}, "what is made of it is wrong: the place is there, or in what made b"},
		{"b", nil, []string{"b"}, nil, "nothing is known of what is made of it"},
		{"c", []float64{4, 6}, []string{"c"}, nil, "nothing is made of it: the result of the model"},
	} {
		_, faults, written := judged(t, counted, map[string][]float64{"model": {1, 2}, "a": {2, 4}, "b": {3, 5}, "c": tt.c}, func(layer string, r *piece.Record) {
			if layer == tt.misfit {
				*r = piece.Record{Misfit: true}
			}
		})
		assert.Equal(t, tt.faults, faults, tt.reason)
		assert.Equal(t, tt.written, written, tt.reason)
	}
}
