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

// Zeros are no witness: whatever is multiplied with them is right.
func TestZerosAreNoWitness(t *testing.T) {
	p, err := program.Parse("p", []byte(gated), nil)
	require.NoError(t, err)
	run := &piece.Run{Program: p, Encoding: tensor.F32}
	for _, at := range p.Ports {
		r := piece.Record{Golden: piece.Golden{Known: true}}
		r.Tensor, err = replay.Of(tensor.F32, []int{2}, map[string][]float64{"model": {1, 2}, "a": {0, 0}, "b": {0, 0}, "c": {0, 0}}[at.Layer])
		require.NoError(t, err)
		run.Records = append(run.Records, r)
	}
	found, err := piece.Judge(context.Background(), run)
	require.NoError(t, err)
	assert.Empty(t, found.Stretches)
	var faults []string
	for _, i := range found.Faults {
		faults = append(faults, p.Ports[i].Layer)
	}
	assert.Equal(t, []string{"a", "b"}, faults)
}
