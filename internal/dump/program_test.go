package dump_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
)

// A program beside a run is its own, and its constants are no tensors.
func TestProgramOfADump(t *testing.T) {
	const run = `{"schema":2,"order":[["0","a","output","a-output.npy"]]}`
	for _, tt := range []struct {
		reason string
		files  map[string]any
		want   []string // by run, the program's path; "" for none
	}{
		{"at the root of a flat folder", map[string]any{"a-output.npy": 1., "program.json": "", "program.safetensors": ""},
			[]string{"program.json"}},
		{"over step folders", map[string]any{"0/a-output.npy": 1., "program.json": "", "program.safetensors": ""},
			[]string{"program.json"}},
		{"each case has its own", map[string]any{"a/run.json": run, "a/0/a-output.npy": 1., "a/program.json": "",
			"b/run.json": run, "b/0/a-output.npy": 1.}, []string{"a/program.json", ""}},
		{"none", map[string]any{"a-output.npy": 1.}, []string{""}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			dir := folder(t, tt.files)
			runs, err := dump.OpenCases(dir, dump.Options{})
			require.NoError(t, err)
			defer dump.CloseAll(runs)
			require.Len(t, runs, len(tt.want))
			for i, r := range runs {
				assert.Len(t, r.Entries, 1)
				want := tt.want[i]
				if want != "" {
					want = filepath.Join(dir, filepath.FromSlash(want))
				}
				assert.Equal(t, want, r.Program)
			}
		})
	}
}
