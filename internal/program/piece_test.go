package program_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// TestPieces cuts recorded models at each port, where all was recorded, and where little was.
func TestPieces(t *testing.T) {
	var b strings.Builder
	small, err := parse(small)
	require.NoError(t, err)
	programs := map[string]*program.Program{"small": small}
	models := []string{"small", "llama", "mixtral", "speech"}
	for _, model := range models[1:] {
		programs[model], err = program.Read(filepath.Join("..", "replay", "testdata", "programs", model, "program.json"))
		require.NoError(t, err)
	}
	said := func(p *program.Program, piece *program.Piece) string {
		require.NoError(t, piece.Check())
		assert.Equal(t, p.Ports[piece.Target].Value, piece.Whole[piece.Out])
		text := fmt.Sprintf("%v by %v", piece.Sources, piece.Origin)
		for _, g := range piece.Guards {
			text += fmt.Sprintf(", if %v = %v by %v", g.Sources, g.Equal, g.Origin)
		}
		return text
	}
	for _, model := range models {
		p := programs[model]
		for _, every := range []int{1, 5} {
			recorded := func(port int) bool { return port%every == 0 }
			for i, q := range p.Ports {
				own, beside := said(p, p.Piece(i, recorded)), said(p, p.Beside(i, recorded))
				fmt.Fprintf(&b, "%s, one of %d recorded, %d: %s %s-%s of %s", model, every, i, q.Step, q.Layer, q.Name, own)
				if beside != own {
					fmt.Fprintf(&b, "; beside: %s", beside)
				}
				b.WriteString("\n")
			}
		}
	}
	toy.Kept(t, "pieces.txt", b.String())
}

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
