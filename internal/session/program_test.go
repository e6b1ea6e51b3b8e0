package session_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// layerProgram is a program of what layerDump writes: an output of n columns.
func layerProgram(n int) string {
	return fmt.Sprintf(`{"schema":1,"engine":"torch","case":"a",
"values":[{"id":0,"shape":[1,6,%[1]d],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[1,6,%[1]d],"dtype":"float32","from":{"op":0}}],
"ops":[{"op":"aten.mul.Scalar","args":{"self":"%%0","other":0.3},"out":["%%1"],"layer":"model.up","call":1}],
"passes":[{"step":"0","ops":[0,1],"ports":{"model.up-input_0":["%%0",0,1],"model.up-output":["%%1",1,1]}}]}`, n)
}

// An update keeps the program of the variant that judges; a comparison has it, or says why not.
func TestPrograms(t *testing.T) {
	const all = "references: [float32, bfloat16]\n"
	for _, tt := range []struct {
		yaml, program string
		damage        func(file string) error // of the program
		kept          bool
		out, note     string
		reason        string
	}{
		{all, layerProgram(128), nil, true, "", "", "beside the reference's dump"},
		{all + "program: off\n", layerProgram(128), nil, false, "", "", "not wanted"},
		{all, layerProgram(127), nil, false, "case a: its program is left out: ", "", "of another run: not kept"},
		{all, `{"schema":1,`, nil, false, "not JSON at byte", "", "damaged: not kept"},
		{all, "", nil, false, "", "", "none was recorded"},
		{all, layerProgram(128), func(file string) error { return os.WriteFile(file, nil, 0o644) }, true, "",
			"case a: judged without the reference's program: store: ", "damaged in the store"},
		{all, layerProgram(128), os.Remove, true, "",
			"does not exist, but index.json lists it", "lost from the store"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s, dir := startLayer(t, tt.yaml, 1e-3, func(to string) { layerDump(t, to, "max", "float32", 1e-6, tensor.F32) })
			for _, variant := range []string{"float32", "bfloat16"} {
				if tt.program != "" {
					file := filepath.Join(filepath.Dir(dir), "ref", variant, "a", dump.ProgramFile)
					require.NoError(t, os.WriteFile(file, []byte(tt.program), 0o644))
				}
			}
			var out bytes.Buffer
			require.NoError(t, s.Update(&out))
			if tt.out != "" {
				assert.Contains(t, out.String(), tt.out)
			} else {
				assert.NotContains(t, out.String(), "left out")
			}
			kept, err := store.Open(filepath.Join(dir, "golden"))
			require.NoError(t, err)
			defer kept.Close()
			assert.Equal(t, tt.kept, kept.HasProgram("a"))
			for _, k := range kept.Runs() {
				assert.True(t, len(k.Program) == 0 || k.Variant == "float32")
				if len(k.Program) > 0 && tt.damage != nil {
					require.NoError(t, tt.damage(filepath.Join(dir, "golden", k.Program[0])))
				}
			}
			c, err := s.Default().Comparison()
			require.NoError(t, err)
			assert.Equal(t, tt.kept && tt.damage == nil, c.Cases[0].Program != nil)
			r, err := s.Default().Report()
			require.NoError(t, err)
			assert.Equal(t, report.Pass, r.Verdict, "judged without it")
			notes := fmt.Sprint(r.Notes)
			if tt.note == "" {
				assert.NotContains(t, notes, "judged without")
				return
			}
			assert.Contains(t, notes, tt.note)
			assert.Contains(t, notes, "parity golden program MODEL --golden DIR")
		})
	}
}
