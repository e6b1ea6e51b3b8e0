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
