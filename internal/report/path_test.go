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
