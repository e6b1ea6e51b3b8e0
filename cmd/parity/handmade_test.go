package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What users write by hand is compared by equal names, without any YAML. testdata/handmade is real:
// torch.save(scores, "scores.pt") and torch.save({"mixed": …, "rest": …}, "out.pt") inside a
// module's forward, and scores.print("scores") … in MAX 26.7, whose second run (max_wrong) scales
// the scores by 1.1 too much.
func TestHandMadeDumps(t *testing.T) {
	dir := filepath.Join("testdata", "handmade")
	ordered := filepath.Join(t.TempDir(), "torch")
	require.NoError(t, os.CopyFS(ordered, os.DirFS(filepath.Join(dir, "torch"))))
	require.NoError(t,
		os.WriteFile(filepath.Join(ordered, "tensor_names.txt"), []byte("scores\nprobs\nout.mixed\nout.rest\n"), 0o644))
	for _, tt := range []struct {
		golden, actual string
		code           int
		want           []string
		reason         string
	}{
		{filepath.Join(dir, "torch"), filepath.Join(dir, "max"), 0, []string{"PASS: compared 4 of 4 outputs"},
			"scores, probs and the two entries of out"},
		{filepath.Join(dir, "torch"), filepath.Join(dir, "max_wrong"), 1,
			[]string{"scores tap", "probs tap", "out.mixed tap", "which layer is wrong first is not known",
				"tensor_names.txt"}, "names alone say nothing of the order"},
		{ordered, filepath.Join(dir, "max_wrong"), 1, []string{"FAIL: first divergence scores"},
			"with a list of names it is known"},
		{filepath.Join(dir, "torch", "scores.pt"), filepath.Join(dir, "max", "scores.max"), 0, []string{"1 of 1 output"},
			"two files"},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, tt.code, run(t.Context(), []string{"compare", tt.golden, tt.actual}, &out, &errs), "%s\n%s%s",
			tt.reason, out.String(), errs.String())
		for _, w := range tt.want {
			assert.Contains(t, out.String(), w, tt.reason)
		}
	}
}
