package dump_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
)

// What MAX leaves in its other print styles: a log for each step, or files without a header.
func TestListedStyles(t *testing.T) {
	const log = "model.a-output = tensor<1x2xf32> [1.500000e+00, -2.000000e+00]\nx = tensor([[1.0000, 2.0000, " +
		"3.0000]], dtype=f32, shape=[1,3])\n"
	tests := []struct {
		name   string
		order  string
		raw    string
		want   []float64
		err    string
		reason string
	}{
		{"log", `["0","model.a","output","print.log","model.a-output"]`, `{}`, []float64{1.5, -2}, "",
			"a name in the log"},
		{"label", `["0","model.a","output","print.log"]`, `{}`, []float64{1.5, -2}, "",
			"without a name the label counts"},
		{"tap", `["0","x","tap","print.log"]`, `{}`, []float64{1, 2, 3}, "", "both styles of printing"},
		{"not printed", `["0","model.b","output","print.log"]`, `{}`, nil, `has no tensor "model.b-output"`,
			"a log that lacks what is listed"},
		{"raw", `["0","model.a","output","model.a-output"]`, `{"0/model.a-output":"i16:2"}`, []float64{1, 2}, "",
			"run.json says what it holds"},
		{"raw of another size", `["0","model.a","output","model.a-output"]`, `{"0/model.a-output":"f32:2"}`,
			nil, "model.a-output", "the file is too short"},
		{"bad spec", `["0","model.a","output","model.a-output"]`, `{"0/model.a-output":"f33:2"}`,
			nil, `raw: spec "f33:2"`, "no such type"},
		{"no spec", `["0","model.a","output","model.a-output"]`, `{}`, nil, "unknown kind of file",
			"nothing says what it holds"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			step := filepath.Join(dir, "0")
			require.NoError(t, os.Mkdir(step, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(step, "print.log"), []byte(log), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(step, "model.a-output"), []byte{1, 0, 2, 0}, 0o644))
			run := `{"schema":1,"engine":"max","order":[` + tt.order + `],"raw":` + tt.raw + `}`
			require.NoError(t, os.WriteFile(filepath.Join(dir, dump.RunFile), []byte(run), 0o644))
			r, err := dump.Open(dir, dump.Options{})
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err, tt.reason)
				return
			}
			require.NoError(t, err, tt.reason)
			defer r.Close()
			require.Len(t, r.Entries, 1)
			e := r.Entries[0]
			var got []float64
			for i := range e.Tensor.Len() {
				got = append(got, e.Tensor.At(i))
			}
			assert.Equal(t, tt.want, got, tt.reason)
			assert.Equal(t, filepath.Ext(r.Info.Order[0].File) == ".log", e.Printed != nil)
		})
	}
}
