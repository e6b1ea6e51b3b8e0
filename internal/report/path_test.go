package report_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

// A run along a path says in every form which pass and row is the first that is wrong, and JSON keeps
// all of it.
func TestPath(t *testing.T) {
	r := &report.Report{Verdict: report.Fail, Kind: "path", FirstDivergence: &report.Divergence{Layer: "model.a", Port: "output", Step: "1",
		Row: &report.Row{Path: "chunked:4", Pass: 1, Position: 4}},
		Paths: []report.Path{{Path: "chunked:4", Passes: 2, Rows: 1, Matches: &report.Agreement{Outputs: 3, Layer: "model.a", Port: "output",
			Step: "1", RowRelL2: 0.5}, Consistent: &report.Agreement{Outputs: 1, BitForBit: true, Holds: true}, Repeats: &report.Agreement{}}}}
	var text, markdown, file bytes.Buffer
	require.NoError(t, report.Text(&text, r, report.TextOptions{Width: 120}))
	require.NoError(t, report.Markdown(&markdown, r))
	for _, out := range []string{text.String(), markdown.String()} {
		assert.Contains(t, out, "right in one pass, wrong along chunked:4: first divergence model.a, pass 1, sequence 0, position 4")
		assert.Contains(t, out, "path chunked:4: 2 forward passes, 1 row")
		assert.Contains(t, out, "matches the golden: no, 3 outputs, worst row rel. L2 0.5 at model.a output, pass 1")
		assert.Contains(t, out, "consistent with one pass: 1 output, bit for bit")
		assert.Contains(t, out, "equal to its first run: nothing was compared")
	}
	require.NoError(t, report.Write(&file, r))
	assert.Contains(t, file.String(), `"position": 4`)
	back, err := report.Read(&file)
	require.NoError(t, err)
	assert.Equal(t, r.FirstDivergence, back.FirstDivergence)
	assert.Equal(t, r.Paths, back.Paths)
}

// Paths that fail at one layer for one cause are one finding: the headline names them together, and the
// later ones say that they fail as the first does.
func TestPathsAlike(t *testing.T) {
	first := func(layer, cause string) *report.PathFirst {
		return &report.PathFirst{Layer: layer, Port: "output", Row: &report.Row{Path: "p", Pass: 1, Position: 4}, Cause: cause, Proven: true}
	}
	wrong, right := &report.Agreement{Outputs: 3, Layer: "a"}, &report.Agreement{Outputs: 3, Holds: true, BitForBit: true}
	r := &report.Report{Verdict: report.Fail, Kind: "path",
		FirstDivergence: &report.Divergence{Layer: "a", Port: "output", Row: &report.Row{Path: "decode:8", Pass: 1, Position: 4}},
		Paths: []report.Path{
			{Path: "decode:8", Matches: wrong, OnePass: right, First: first("a", "state/slot")},
			{Path: "chunked:4", Matches: wrong, OnePass: right, First: first("a", "state/slot")},
			{Path: "batch", Matches: wrong, OnePass: right, First: first("b", "state/sequence")},
			{Path: "repeat:2", Matches: right, OnePass: right},
		}}
	assert.Contains(t, report.Headline(r), "right in one pass, wrong along decode:8 and chunked:4: first divergence a")
	lines := report.PathLines(r)
	for i, want := range []string{"first wrong at a, pass 1, sequence 0, position 4: state/slot, proven",
		"fails as decode:8 does, first at a, pass 1, sequence 0, position 4: state/slot, proven",
		"first wrong at b, pass 1, sequence 0, position 4: state/sequence, proven"} {
		assert.Equal(t, want, lines[i][len(lines[i])-1])
	}
	assert.Contains(t, lines[0], "one pass matches the golden: 3 outputs, bit for bit")
	assert.NotContains(t, lines[1], "one pass matches the golden: 3 outputs, bit for bit", "it is said once")
}

// The grid has a row for each run and a column for each layer, in the order of the first; neighbours
// are joined where there are too many.
func TestPathGrid(t *testing.T) {
	depth := func(errors ...report.Float) (out []report.LayerError) {
		for i, e := range errors {
			out = append(out, report.LayerError{Layer: string(rune('a' + i)), RowRelL2: e, Holds: e < 1e-4})
		}
		return out
	}
	r := &report.Report{Paths: []report.Path{
		{Path: "decode:8", Case: "x", OnePass: &report.Agreement{Depth: depth(0, 1e-7, 1e-7)},
			Matches: &report.Agreement{Depth: depth(0, 0.5, 0.7)}, First: &report.PathFirst{Layer: "b"}},
		{Path: "batch", Case: "y", Matches: &report.Agreement{Depth: depth(0, 0)}},
	}}
	g := report.PathGrid(r)
	assert.Equal(t, []string{"a", "b", "c"}, g.Layers)
	require.Len(t, g.Rows, 3)
	assert.Equal(t, []string{"one-pass", "decode:8 x", "batch y"}, []string{g.Rows[0].Name, g.Rows[1].Name, g.Rows[2].Name})
	assert.Equal(t, report.GridRow{Name: "decode:8 x", First: 1, Cells: []report.GridCell{{true, true, 0}, {true, false, 0.5}, {true, false, 0.7}}}, g.Rows[1])
	assert.False(t, g.Rows[2].Cells[2].Compared, "the batch has no such layer")
	two := g.Narrow(2)
	assert.Equal(t, []string{"a", "c"}, two.Layers)
	assert.Equal(t, report.GridRow{Name: "decode:8 x", First: 0, Cells: []report.GridCell{{true, false, 0.5}, {true, false, 0.7}}}, two.Rows[1])
	assert.Nil(t, report.PathGrid(&report.Report{Paths: []report.Path{{Path: "batch", Matches: &report.Agreement{}}}}), "an older report")
}
