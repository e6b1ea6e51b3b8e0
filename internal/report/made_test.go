package report_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

func TestMadeHere(t *testing.T) {
	there, here := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(there, "ref"), filepath.Join(there, "cand"), filepath.Join(here, "ref")} {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	t.Chdir(here)
	for _, tt := range []struct {
		dir    string
		in     report.Inputs
		want   []string
		err    string
		reason string
	}{
		{there, report.Inputs{Golden: "ref", Actual: "cand"}, []string{"ref", filepath.Join(there, "cand")}, "",
			"the working folder first, then that of the report"},
		{there, report.Inputs{Golden: "ref", Actual: filepath.Join(there, "cand")}, []string{"ref", filepath.Join(there, "cand")}, "",
			"an absolute path stays"},
		{there, report.Inputs{Golden: "ref", Actual: "cand", Weights: []string{"ref", "gone"}}, nil, "gone, of which the report was made",
			"what is in neither is named"},
		{"", report.Inputs{Golden: "ref", Actual: "cand"}, nil, "cand, of which", "a report that does not say where it was made"},
		{"..", report.Inputs{Golden: "ref", Actual: "cand"}, nil, "cand, of which", "a folder that means something else here"},
		{there, report.Inputs{Golden: "ref"}, nil, "made says not which two dumps", "half a comparison"},
	} {
		m := report.Made{Command: "compare", Dir: tt.dir, Inputs: tt.in}
		in, err := m.Here()
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		var files []string
		for _, p := range in.Paths() {
			files = append(files, *p)
		}
		assert.Equal(t, tt.want, files, tt.reason)
	}
	in := report.Inputs{Noise: "n", Raw: "f32:2", Program: "p"}
	assert.Equal(t, "n", *in.Also()["noise"])
	*in.Also()["injected"] = "i"
	assert.Equal(t, []string{"--also", "injected=i", "--also", "noise=n", "--program", "p", "--assume", "raw=f32:2"}, in.Args())
	assert.Len(t, in.Also(), 6, "the further dumps")
	_, err := (&report.Made{Dir: there, Inputs: report.Inputs{Golden: "a", Actual: "b"}}).Here()
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
