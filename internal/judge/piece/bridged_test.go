package piece_test

import (
	"strings"
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

// judge judges what record has for each port of a program, and names the layers or, with name, the ports that are wrong.
// What comes from outside is as load has it.
func judge(t *testing.T, source string, encoding tensor.DType, load replay.Load, name func(at program.Port) string,
	record func(at program.Port, v *program.Value) piece.Record,
) (r *piece.Result, run *piece.Run, faults []string) {
	t.Helper()
	p, err := program.Parse("p", []byte(source), nil)
	require.NoError(t, err)
	run = &piece.Run{Program: p, Encoding: encoding, Load: load}
	for _, at := range p.Ports {
		run.Records = append(run.Records, record(at, &p.Values[at.Value]))
	}
	r, err = piece.Judge(t.Context(), run)
	require.NoError(t, err)
	for _, i := range r.Faults {
		faults = append(faults, name(p.Ports[i]))
	}
	return r, run, faults
}

func layerOf(at program.Port) string { return at.Layer }
func nameOf(at program.Port) string  { return at.Name }

func array(t *testing.T, d tensor.DType, shape []int, x []float64) *replay.Array {
	a, err := replay.Of(d, shape, x)
	require.NoError(t, err)
	return a
}

// judged judges a run of tensors of two numbers, by layer or port, and returns what is said of each layer, and the
// layers of faults and of what is written otherwise. edit changes a record.
func judged(t *testing.T, source string, values map[string][]float64, edit func(at program.Port, r *piece.Record)) (local map[string]*piece.Local, faults, written []string) {
	load := func(*program.Value) (*replay.Array, error) { return replay.Of(tensor.F32, []int{2}, []float64{1, 2}) }
	found, run, faults := judge(t, source, tensor.F32, load, layerOf, func(at program.Port, v *program.Value) (r piece.Record) {
		x, ok := values[at.Layer+"-"+at.Name]
		if !ok {
			x = values[at.Layer]
		}
		if x != nil {
			r = piece.Record{Tensor: array(t, v.DType, v.Shape, x), Golden: piece.Golden{Known: true}}
		}
		edit(at, &r)
		return r
	})
	local = map[string]*piece.Local{}
	for i, l := range found.Local {
		local[run.Program.Ports[i].Layer] = l
	}
	for _, s := range found.Stretches {
		for _, i := range s {
			written = append(written, run.Program.Ports[i].Layer)
		}
	}
	return local, faults, written
}

// Zeros are no witness: whatever is multiplied with them is right.
func TestZerosAreNoWitness(t *testing.T) {
	_, faults, written := judged(t, gated, map[string][]float64{"model": {1, 2}, "a": {0, 0}, "b": {0, 0}, "c": {0, 0}}, func(program.Port, *piece.Record) {})
	assert.Empty(t, written)
	assert.Equal(t, []string{"a", "b"}, faults)
}

// A record in another shape is no fault where what was made of its value is judged.
func TestBridged(t *testing.T) {
	unknown := strings.Replace(counted, `"aten.add.Tensor","args":{"self":"%3"`, `"aten.unknown.default","args":{"self":"%3"`, 1)
	require.NotEqual(t, counted, unknown)
	for _, tt := range []struct {
		program, misfit string
		c               []float64 // what was made of b; nil: not recorded
		faults, written []string
		reason          string
	}{
		{counted, "b", []float64{4, 6}, nil, []string{"b"}, "what is made of it is right: laid out otherwise"},
		{counted, "b", []float64{4, 9}, []string{"c"}, []string{"b"}, "what is made of it is wrong: the place is there, or in what made b"},
		{counted, "b", nil, []string{"b"}, nil, "nothing is known of what is made of it"},
		{counted, "c", []float64{4, 6}, []string{"c"}, nil, "nothing is made of it: the result of the model"},
		{unknown, "b", []float64{4, 9}, []string{"b"}, nil, "nor of what cannot be replayed, and has no golden"},
	} {
		_, faults, written := judged(t, tt.program, map[string][]float64{"model": {1, 2}, "a": {2, 4}, "b": {3, 5}, "c": tt.c}, func(at program.Port, r *piece.Record) {
			if at.Layer == tt.misfit {
				*r = piece.Record{Misfit: true}
			}
		})
		assert.Equal(t, tt.faults, faults, tt.reason)
		assert.Equal(t, tt.written, written, tt.reason)
	}
}

// What cannot be replayed is judged by the golden, where all that it is made of agrees with that.
func TestByGolden(t *testing.T) {
	unknown := strings.Replace(gated, "aten.mul.Tensor\",\"args\":{\"self\":\"%1\"", "aten.unknown.default\",\"args\":{\"self\":\"%1\"", 1)
	require.NotEqual(t, gated, unknown)
	right := piece.Golden{Known: true, Agrees: true, Error: 0.1}
	off := func(by float64) piece.Golden { return piece.Golden{Known: true, Error: by} }
	for _, tt := range []struct {
		a, b, c         piece.Golden
		encoding        tensor.DType
		wrong, unjudged bool
		reason          string
	}{
		{right, right, right, tensor.F32, false, false, "all agree"},
		{right, right, off(1.1), tensor.F32, true, false, "what is made of it does not"},
		{right, right, piece.Golden{}, tensor.F32, false, true, "there is no golden"},
		{right, off(9), off(9), tensor.F32, false, true, "nor does what it is made of"},
		{right, piece.Golden{}, off(9), tensor.F32, false, true, "of which nothing is known"},
		{piece.Golden{Known: true, Agrees: true, Tied: true}, right, off(9), tensor.F32, false, true, "it hangs on a choice"},
		{right, piece.Golden{Known: true, Agrees: true, Error: 0.9}, off(1.7), tensor.F32, false, true, "by little more than what it is made of"},
		{piece.Golden{Known: true, Agrees: true, Error: 0.9}, right, off(1.9), tensor.F32, true, false, "by more"},
		{right, right, off(1.4), tensor.BF16, false, true, "in 16 bits a floor and a half is not enough"},
		{right, right, off(1.6), tensor.BF16, true, false, "and more is"},
		{right, right, piece.Golden{Known: true, Error: 1.4, Measured: true}, tensor.BF16, true, false, "the floor is the reference's own"},
	} {
		r, _, faults := judge(t, unknown, tt.encoding, nil, layerOf, func(at program.Port, v *program.Value) piece.Record {
			x := map[string][]float64{"model": {1, 2}, "a": {2, 4}, "b": {3, 6}, "c": {7, 9}}[at.Layer]
			golden := map[string]piece.Golden{"a": tt.a, "b": tt.b, "c": tt.c, "model": right}[at.Layer]
			return piece.Record{Tensor: array(t, v.DType, v.Shape, x), Golden: golden}
		})
		assert.Equal(t, tt.wrong, len(faults) > 0, tt.reason)
		assert.Equal(t, tt.unjudged, r.Local[3].Unjudged, tt.reason)
		assert.Contains(t, r.Local[3].Opaque, "unknown")
	}
}
