package judge_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
)

// chain is a model of two layers, a and b; the candidate's tensors are scaled.
func chain(t *testing.T, inA, outA, inB, outB float64) *judge.Comparison {
	t.Helper()
	labels := []string{"m.a-input_0", "m.a-output", "m.b-input_0", "m.b-output"}
	var g, a []port
	for i, scale := range []float64{inA, outA, inB, outB} {
		g = append(g, port{labels[i], wave(t, 1, float64(i), 1, 6, 8)})
		a = append(a, port{labels[i], wave(t, scale, float64(i), 1, 6, 8)})
	}
	return compareRuns(t, run("torch", g...), run("max", a...))
}

func TestStatusOfRows(t *testing.T) {
	const pass, fail, ignored = report.StatusPass, report.StatusFail, report.StatusIgnored
	for _, c := range []struct {
		scale   [4]float64
		decide  []string // by the test; nil: all by the fixture's tolerances
		verdict report.Verdict
		status  [4]report.Status
		reason  string
	}{
		{[4]float64{1, 1, 1, 1}, nil, report.Pass, [4]report.Status{pass, pass, pass, pass}, "all is equal"},
		{[4]float64{1, 1, 1, 1.1}, nil, report.Fail, [4]report.Status{pass, pass, pass, fail}, "an output is wrong"},
		{[4]float64{1, 1, 1.1, 1}, nil, report.Pass, [4]report.Status{pass, pass, pass, pass},
			"an input never fails alone"},
		{[4]float64{1, 1, 1.1, 1.1}, nil, report.Fail, [4]report.Status{pass, pass, fail, fail},
			"next to a wrong output it is evidence"},
		{[4]float64{1, 1, 1, 1.1}, []string{"m.a"}, report.Pass, [4]report.Status{pass, pass, ignored, ignored},
			"no one asked for b"},
		{[4]float64{1, 1.1, 1.1, 1.1}, []string{"m.a"}, report.Fail, [4]report.Status{pass, fail, ignored, ignored},
			"a was asked for"},
		{[4]float64{1, 1, 1, 1}, []string{}, report.Error, [4]report.Status{ignored, ignored, ignored, ignored},
			"nothing was judged: no pass"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			cmp := chain(t, c.scale[0], c.scale[1], c.scale[2], c.scale[3])
			for _, l := range c.decide {
				for _, r := range cmp.Layers.Runs(l) {
					for _, p := range r.Judged {
						p.Decide(nil, "", false)
					}
				}
			}
			r := cmp.Report("toy", c.decide == nil)
			assert.Equal(t, c.verdict, r.Verdict)
			require.Len(t, r.Layers, 4)
			for i, l := range r.Layers {
				assert.Equal(t, c.status[i], l.Status, "%s %s", l.Layer, l.Port)
				assert.False(t, l.Status == ignored && l.Note == "", "an ignored row says why")
			}
			assert.Equal(t, c.verdict == report.Fail, r.FirstDivergence != nil)
			assert.NoError(t, report.Write(&bytes.Buffer{}, r))
		})
	}
}

// A test's criteria decide, not the fixture's; and a pass never hides a failure of another test.
func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		atol   []float64
		want   report.Status
		source string
		reason string
	}{
		{[]float64{1.5}, report.StatusPass, "a_test.go:0", "wider than the default"},
		{[]float64{1e-9}, report.StatusFail, "a_test.go:0", "narrower"},
		{[]float64{1e-9, 1.5}, report.StatusFail, "a_test.go:0", "the failure first"},
		{[]float64{1.5, 1e-9}, report.StatusFail, "a_test.go:1", "the failure last"},
		{[]float64{1.5, 1.4}, report.StatusPass, "a_test.go:1", "of two passes the last"},
	} {
		cmp := chain(t, 1, 1, 1, 1.1)
		for i, atol := range c.atol {
			find(t, cmp, "m.b-output").Decide(within(atol), fmt.Sprintf("a_test.go:%d", i), false)
		}
		got := row(t, cmp.Report("toy", false), "m.b-output")
		assert.Equal(t, c.want, got.Status, c.reason)
		assert.Equal(t, c.source, got.Tolerance.Source, c.reason)
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	short := wave(t, 1, 0, 1, 4)
	for _, c := range []struct {
		golden, actual []port
		want           string
		reason         string
	}{
		{[]port{{"a-output", short}}, []port{{"b.c-output", wave(t, 1, 0, 3, 5)}},
			"no port of the golden (a output …) matches one of the candidate (b.c output …)", "no name in common"},
		{[]port{{"a-output", wave(t, 1, 0, 1, 0)}}, []port{{"a-output", wave(t, 1, 0, 1, 0)}},
			"nothing could be compared", "only empty tensors"},
	} {
		_, err := judge.Compare(context.Background(),
			[]judge.Case{{Name: "short", Golden: run("torch", c.golden...), Actual: run("max", c.actual...)}},
			judge.Options{})
		assert.ErrorIs(t, err, judge.ErrNothing, c.reason)
		assert.ErrorContains(t, err, c.want, c.reason)
	}

	g := run("torch", port{"m.a-output", short}, port{"m.b-output", wave(t, 1, 1, 2, 4)})
	a := run("max", port{"m.a-output", short}, port{"m.b-output", wave(t, 1, 1, 2, 5)})
	c := compareRuns(t, g, a)
	r := c.Report("toy", true)
	assert.Equal(t, report.Fail, r.Verdict, "a wrong shape is a failure")
	l := row(t, r, "m.b-output")
	assert.Equal(t, report.StatusError, l.Status)
	assert.Contains(t, l.Note, "5")

	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := judge.Compare(canceled, []judge.Case{{Name: "short", Golden: g, Actual: a}}, judge.Options{})
	assert.ErrorIs(t, err, context.Canceled)
}

// The report is the same on one core and on many, and tests may decide while another reads.
func TestParallel(t *testing.T) {
	build := func() []byte {
		var g, a []port
		for i := range 40 {
			label := fmt.Sprintf("m.layers.%d-output", i)
			g = append(g, port{label, wave(t, 1, float64(i), 1, 6, 8)})
			a = append(a, port{label, wave(t, 1+float64(i%3)/1000, float64(i), 1, 6, 8)})
		}
		c := compareRuns(t, run("torch", g...), run("max", a...))
		var wg sync.WaitGroup
		for i, p := range c.Ports {
			wg.Go(func() {
				if j := p.Decide(within(1e-3), "x_test.go:1", false); j.Row.Status == report.StatusFail {
					j.Explain()
				}
				p.Decide(nil, "", false)
			})
			if i%10 == 0 {
				wg.Go(func() { c.Report("toy", false) })
				wg.Go(func() { c.Layers.Missing("m.layers.0") })
			}
		}
		wg.Wait()
		var b bytes.Buffer
		require.NoError(t, report.Write(&b, c.Report("toy", true)))
		return b.Bytes()
	}
	many := build()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := build()
	assert.Equal(t, string(one), string(many))
}
