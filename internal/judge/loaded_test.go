package judge_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// The weights that an engine loaded come before what it computes with them.
func TestLoaded(t *testing.T) {
	vector := func(by float32) *tensor.Tensor {
		v := make([]float32, 64)
		for i := range v {
			v[i] = by*float32(i%7-3) + 0 // no −0
		}
		x, err := tensor.Of(v, 8, 8)
		require.NoError(t, err)
		return x
	}
	written := func(name string, by float32) string {
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, "weights.safetensors"))
		require.NoError(t, err)
		require.NoError(t, safetensors.Write(f, []tensor.Named{{Name: "lin.weight", Tensor: vector(1)}, {Name: name, Tensor: vector(by)}}, nil))
		require.NoError(t, f.Close())
		return dir
	}
	run := func(path string, off float32) *dump.Run {
		x, err := tensor.Of([]float32{1 + off, 2, 3, 4}, 1, 4)
		require.NoError(t, err)
		info := dump.Info{Case: "c", Mode: dump.Standard}
		if path != "" {
			info.Weights = []string{"weights.safetensors"}
		}
		return dump.New(path, info, dump.OrderRunFile, []dump.Entry{{Step: "0", Layer: "lin", Port: "output", Tensor: x}})
	}
	reference := func() (checkpoint.Weights, checkpoint.Config, error) {
		return checkpoint.Weights{"lin.weight": vector(1), "norm.weight": vector(2)}, checkpoint.Config{}, nil
	}
	for _, r := range []struct {
		name         string
		by, off      float32
		evidence     func() (checkpoint.Weights, checkpoint.Config, error)
		weights      report.Status
		verdict      report.Verdict
		kind, reason string
	}{
		{"norm.weight", 2, 0, reference, report.StatusPass, report.Pass, "", "as in the checkpoint"},
		{"norm.weight", 1, 0, reference, report.StatusFail, report.Fail, "weights", "wrong, though the outputs agree"},
		{"norm.weight", 0, 1, reference, report.StatusFail, report.Fail, "weights", "zeros; the output follows from them"},
		{"other.table", 5, 0, reference, report.StatusPass, report.Pass, "", "what only one side has is no fault here"},
		{"norm.weight", 2, 1, reference, report.StatusPass, report.Fail, "local", "the weights are right, the layer is not"},
		{"norm.weight", 1, 0, nil, report.NotJudged, report.Pass, "", "nothing to compare with"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			c, err := judge.Compare(context.Background(), []judge.Case{{Name: "c", Golden: run("", 0), Actual: run(written(r.name, r.by), r.off)}},
				judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFast, Evidence: r.evidence}})
			require.NoError(t, err)
			got := c.Report("x", true)
			assert.Equal(t, r.verdict, got.Verdict)
			assert.Equal(t, r.kind, got.Kind)
			status := map[string]report.Status{}
			for _, s := range got.JudgedStages() {
				status[s.Stage] = s.Status
			}
			assert.Equal(t, r.weights, status[report.StageWeights])
			if r.weights == report.NotJudged {
				require.Len(t, got.NotJudged, 1)
				assert.Contains(t, got.NotJudged[0], "no weights of the reference are known")
			}
			if r.weights != report.StatusFail {
				return
			}
			want := map[bool]report.Status{true: report.StatusInherited, false: report.StatusPass}[r.off > 0]
			assert.Equal(t, want, status[report.StageTensors])
			require.NotEmpty(t, got.Causes)
			assert.Contains(t, []string{"weights/zero", "weights/other"}, got.Causes[0].ID)
			assert.True(t, got.Causes[0].Proven)
			assert.Contains(t, report.Headline(got), "1 of 2 weights are not the reference's, first norm.weight")
			again, err := report.Rejudge(got, compare.Criteria{compare.RelL2: 0.9, compare.RowRelL2: 0.9}, "a test")
			require.NoError(t, err)
			assert.Equal(t, report.Fail, again.Verdict, "no tolerance excuses a weight")
		})
	}
}
