package judge_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
	"github.com/goparity/goparity/tensor/safetensors"
)

type port = toy.Port

var run, wave = toy.Run, toy.Wave

func compareRuns(t *testing.T, golden, actual *dump.Run, more ...func(*judge.Case)) *judge.Comparison {
	t.Helper()
	k := judge.Case{Name: "short", Golden: golden, Actual: actual}
	for _, f := range more {
		f(&k)
	}
	return compared(t, k, judge.Options{})
}

func compared(t *testing.T, k judge.Case, opt judge.Options) *judge.Comparison {
	t.Helper()
	c, err := judge.Compare(t.Context(), []judge.Case{k}, opt)
	require.NoError(t, err)
	return c
}

// in says in which encoding a run computes.
func in(encoding string, r *dump.Run) *dump.Run {
	r.Info.Encoding.Compute = encoding
	return r
}

// placeOf is the layer that a report accuses; "" for none.
func placeOf(r *report.Report) string {
	if r.FirstDivergence == nil {
		return ""
	}
	return r.FirstDivergence.Layer
}

// opened is the only run of a dump.
func opened(t *testing.T, dir ...string) *dump.Run {
	t.Helper()
	runs, err := dump.OpenCases(filepath.Join(dir...), dump.Options{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	t.Cleanup(func() { assert.NoError(t, runs[0].Close()) })
	return runs[0]
}

// find returns a port of a comparison by its label.
func find(t *testing.T, c *judge.Comparison, name string) *judge.Port {
	t.Helper()
	for _, p := range c.Ports {
		if label.Join(p.Layer, p.Port) == name {
			return p
		}
	}
	require.Fail(t, "no such port", name)
	return nil
}

// row returns a row of a report by its label.
func row(t *testing.T, r *report.Report, name string) report.Layer {
	t.Helper()
	for _, l := range r.Layers {
		if label.Join(l.Layer, l.Port) == name {
			return l
		}
	}
	require.Fail(t, "no such row", name)
	return report.Layer{}
}

// within is a criterion of a test.
func within(atol float64) compare.Criteria {
	return compare.Criteria{compare.Atol: atol}
}

// TestCutWhileCompared cuts or rewrites a file of one side when the first pair has been compared.
// Both sides are equal, so that without a look at the file it would pass.
func TestCutWhileCompared(t *testing.T) {
	for _, elements := range []int{100, 1 << 16} { // a file that is read, and one that is mapped
		size := 128 + 4*elements
		for _, c := range []struct {
			name   string
			to     int
			reason string
		}{
			{"a.0-output.npy", size - 4, "an element, within the last page: the system says nothing"},
			{"a.0-output.npy", 0, "all of it, after it was compared"},
			{"z-output.npy", 100, "most of it, perhaps before it is compared"},
			{"z-output.npy", size, "nothing, but it is written again"},
		} {
			dir := t.TempDir()
			var runs []*dump.Run
			for _, side := range []string{"golden", "actual"} {
				for _, name := range []string{"a.0-output.npy", "a.1-output.npy", "z-output.npy"} {
					writeNpy(t, filepath.Join(dir, side, name), elements)
				}
				runs = append(runs, opened(t, dir, side))
			}
			var once sync.Once
			file := filepath.Join(dir, "golden", c.name)
			cut := func(int64, int64) {
				once.Do(func() {
					assert.NoError(t, os.Truncate(file, int64(c.to)))
					assert.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)))
				})
			}
			_, err := judge.Compare(context.Background(), []judge.Case{{Name: "a", Golden: runs[0], Actual: runs[1]}},
				judge.Options{Progress: cut})
			var fault *mapfile.Fault
			require.ErrorAs(t, err, &fault, c.reason)
			assert.ErrorContains(t, err, c.name, c.reason)
		}
	}
}

// TestCutAfterCompare cuts a file before the report, which reads failing pairs again.
func TestCutAfterCompare(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a-output.npy")
	writeNpy(t, file, 1<<16)
	c := compareRuns(t, opened(t, dir), run("max", port{"a-output", wave(t, 3, 0, 1<<16)}))
	require.NotNil(t, c.Verdict)
	require.NoError(t, os.Truncate(file, 0))
	r := c.Report("x", true)
	assert.Equal(t, report.Error, r.Verdict, "what was compared is gone: no verdict")
	assert.Contains(t, r.Error, "became unreadable")
}

func writeNpy(t *testing.T, name string, elements int) {
	t.Helper()
	values := make([]float32, elements)
	for i := range values {
		values[i] = float32(i%17) - 3
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, npy.Write(f, toy.Of(t, values, elements)))
	require.NoError(t, f.Close())
}

// The weights that an engine loaded come before what it computes with them.
func TestLoaded(t *testing.T) {
	vector := func(by float32) *tensor.Tensor {
		v := make([]float32, 64)
		for i := range v {
			v[i] = by*float32(i%7-3) + 0 // no −0
		}
		return toy.Of(t, v, 8, 8)
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
		x := toy.Of(t, []float32{1 + off, 2, 3, 4}, 1, 4)
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
			c := compared(t, judge.Case{Name: "c", Golden: run("", 0), Actual: run(written(r.name, r.by), r.off)}, judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFast, Evidence: r.evidence}})
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

// programOf is a program of values of one shape and float32: constants, and then what each operator makes, of which
// one is written as "layer name.overload arguments". ports are as in program.json.
func programOf(t *testing.T, constants []*tensor.Tensor, ports string, ops ...string) *program.Program {
	t.Helper()
	var values, made []string
	value := func(from string) {
		values = append(values, fmt.Sprintf(`{"id":%d,"shape":[%s],"dtype":"float32","from":{%s}}`, len(values),
			strings.Trim(strings.Join(strings.Fields(fmt.Sprint(constants[0].Shape())), ","), "[]"), from))
	}
	for _, x := range constants {
		data, _ := x.Bytes()
		value(fmt.Sprintf(`"data":%q`, base64.StdEncoding.EncodeToString(data)))
	}
	for i, op := range ops {
		word := strings.SplitN(op, " ", 3)
		made = append(made, fmt.Sprintf(`{"op":"aten.%s","args":{%s},"out":["%%%d"],"layer":%q,"call":1}`, word[1], word[2], len(values), word[0]))
		value(fmt.Sprintf(`"op":%d`, i))
	}
	return parsed(t, fmt.Sprintf(`{"schema":1,"engine":"torch","case":"short","values":[%s],"ops":[%s],"passes":[{"step":"0","ops":[0,%d],"ports":{%s}}]}`,
		strings.Join(values, ","), strings.Join(made, ","), len(ops), ports))
}

func parsed(t *testing.T, text string) *program.Program {
	t.Helper()
	p, err := program.Parse("program.json", []byte(text), nil)
	require.NoError(t, err)
	return p
}
