package report_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/reporttest"
)

// Whatever Read takes, every writer can write.
func FuzzWriters(fz *testing.F) {
	for _, r := range []*report.Report{passing(), failing(), broken(), reporttest.Deep(1, 0)} {
		var b bytes.Buffer
		require.NoError(fz, report.Write(&b, r))
		fz.Add(b.Bytes())
	}
	fz.Add([]byte(`{"schema":1,"verdict":"fail","layers":[{"status":"fail","standard":{"mse":-1,"row_index":-5,"max_abs_index":[-1]},"golden":{"shape":[-1,0]},"rows":{"n":-3,"rel_l2":[]}}]}`))
	fz.Add([]byte(`{"schema":1,"verdict":"fail","first_divergence":{},"layers":[{"status":"inherited","injected":{"mse":"NaN","n":-1},"tolerance":{"cosine":7}}]}`))
	fz.Fuzz(func(t *testing.T, data []byte) {
		r, err := report.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		require.NoError(t, report.Text(io.Discard, r, report.TextOptions{Verbose: true}))
		require.NoError(t, report.Markdown(io.Discard, r, "report.json"))
		require.NoError(t, report.Annotations(io.Discard, r))
		require.NoError(t, r.Verification(report.Standard).Text(io.Discard, report.TextOptions{Width: 120}))
		require.NoError(t, r.Verification(report.Injected).Text(io.Discard, report.TextOptions{Width: 120}))
		require.NoError(t, r.Modes().Text(io.Discard, report.TextOptions{Width: 120}))
		_, err = report.Baseline(io.Discard, r, r, report.TextOptions{})
		require.NoError(t, err)
		for _, c := range []compare.Criteria{{compare.RelL2: 1e-3}, {compare.Atol: 1e-3, compare.Rtol: 1e-3},
			{compare.Cosine: 0.9}} {
			anew, err := report.Rejudge(r, c, "a test")
			require.NoError(t, err)
			require.NoError(t, report.Write(io.Discard, anew), "what was judged again is a report")
		}
	})
}
