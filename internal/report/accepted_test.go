package report_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
)

// Every report that Read accepts can be written by every writer, whatever it lacks: here all ways to
// put parts together, of which each is there or not.
func TestWhatIsAcceptedIsWritten(t *testing.T) {
	parts := [][]string{
		{`"verdict":"pass"`, `"verdict":"fail"`, `"verdict":"incomplete"`, `"verdict":"error"`},
		{``, `"kind":"text"`, `"kind":"input"`, `"kind":"weights"`, `"kind":"path"`, `"kind":"unordered"`, `"kind":"serving"`,
			`"kind":"local"`, `"kind":"drift"`},
		{``, `"first_divergence":{}`, `"first_divergence":{"layer":"a","port":"output","place":"in a","row":{}}`},
		{``, `"layers":[{"layer":"a","port":"output","status":"ignored"}]`, `"layers":[{"layer":"a","port":"output","status":"pass","standard":{}}]`,
			`"layers":[{"layer":"a","port":"output","status":"fail"}]`},
		{``, `"texts":[{"case":"c","status":"pass"}]`, `"texts":[{"case":"c","status":"fail"}],"causes":[{}]`},
		{``, `"serving":{"verdict":"pass","answers":[{"status":"pass"}]}`, `"generation":[{"case":"c","verdict":"diverged"}]`,
			`"paths":[{"path":"decode:3"}],"path_depth":{}`, `"weights":[{}]`, `"coverage":{"open":["x"]}`},
	}
	accepted := 0
	var put func(rest [][]string, keys []string)
	put = func(rest [][]string, keys []string) {
		if len(rest) > 0 {
			for _, key := range rest[0] {
				more := keys
				if key != "" {
					more = append(keys[:len(keys):len(keys)], key)
				}
				put(rest[1:], more)
			}
			return
		}
		data := "{" + strings.Join(append([]string{`"schema":1`}, keys...), ",") + "}"
		r, err := report.Read(strings.NewReader(data))
		if err != nil {
			return
		}
		if accepted++; accepted%7 == 0 { // no list of parts is as long: each part meets each other
			require.NotPanics(t, func() { writeAll(t, r) }, data)
		}
	}
	put(parts, nil)
	assert.Greater(t, accepted, 1000, "reports that are accepted")
}

func writeAll(t *testing.T, r *report.Report) {
	require.NoError(t, report.Text(io.Discard, r, report.TextOptions{Verbose: true}))
	require.NoError(t, report.Markdown(io.Discard, r, "report.json"))
	require.NoError(t, report.Annotations(io.Discard, r))
	require.NoError(t, r.Modes().Text(io.Discard, report.TextOptions{Width: 120}))
	require.NoError(t, report.Write(io.Discard, r))
	b := report.BriefOf(r, "report.json")
	assert.True(t, json.Valid(b.JSON()))
	assert.NotEmpty(t, b.Text())
	_, err := export.Attach([]byte(`<testsuite><testcase name="TestX/a"><failure/></testcase></testsuite>`), r, "x")
	require.NoError(t, err)
	require.NoError(t, export.HTML(io.Discard, r, "report.json"))
}
