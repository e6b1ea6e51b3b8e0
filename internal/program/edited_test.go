package program_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// What counts operators moves with those that stand in the place of one, and the values of a piece become those of the
// whole program.
func TestEdited(t *testing.T) {
	p, err := program.Parse("p", []byte(`{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[2],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[2],"dtype":"float32","from":{"op":2}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%1","other":3},"out":["%2"],"layer":"b","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%2","other":4},"out":["%3"],"layer":"b","call":1}],
"passes":[{"step":"0","ops":[0,3],"ports":{"model-input_x":["%0",0,3],"a-output":["%1",1,1],"b-output":["%3",3,3]}}]}`), nil)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 2}, p.Ordinals())
	cut := p.Piece(2, func(port int) bool { return port == 1 })
	require.Equal(t, []int{1, 2}, cut.Origin)
	made := program.ID(len(cut.Values))
	twice := cut.Program.Ops[0]
	twice.Out = []program.ID{made}
	again := cut.Program.Ops[0]
	again.Args = again.Args.Map(func(program.ID) program.ID { return made })
	change := program.Change{Piece: cut, Ops: map[int][]program.Op{0: {twice, again}}, Made: []program.Value{{Shape: []int{2}, DType: tensor.F32}}}
	q, err := p.Edited([]program.Change{change})
	require.NoError(t, err)
	var out [][]program.ID
	for _, o := range q.Ops {
		out = append(out, o.Operands(), o.Out)
	}
	assert.Equal(t, [][]program.ID{{0}, {1}, {1}, {4}, {4}, {2}, {2}, {3}}, out)
	assert.Equal(t, []int{0, 1, 4}, []int{q.Ports[0].At, q.Ports[1].At, q.Ports[2].At})
	assert.Equal(t, 4, q.Ports[0].Until, "the model's call ends later")
	assert.Equal(t, [2]int{0, 4}, [2]int{q.Passes[0].First, q.Passes[0].End})
	assert.Equal(t, "b", q.Ops[2].Layer)
	assert.Len(t, p.Ops, 3, "the program itself stays")

	_, err = p.Edited([]program.Change{change, change})
	assert.ErrorContains(t, err, "two edits change operator 1 of b")
}
