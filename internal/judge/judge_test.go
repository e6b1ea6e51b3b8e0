package judge_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// port is one tensor of a run in these tests.
type port struct {
	label string
	t     *tensor.Tensor
}

func of[T float32 | float64 | int64](t *testing.T, values []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

// wave is a tensor of numbers that do not repeat; scale and shift tell one from another.
func wave(t *testing.T, scale, shift float64, shape ...int) *tensor.Tensor {
	t.Helper()
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(scale * (float64(i*i%31)/7 - 2 + shift + float64(i)/50))
	}
	return of(t, v, shape...)
}

// run makes a run of one step of the case "short".
func run(engine string, ports ...port) *dump.Run {
	var entries []dump.Entry
	for _, p := range ports {
		layer, name := label.Split(p.label)
		entries = append(entries, dump.Entry{Step: "0", Layer: layer, Port: name, Tensor: p.t})
	}
	return dump.New(engine, dump.Info{Engine: engine, Case: "short", Mode: dump.Standard}, dump.OrderRunFile, entries)
}

func compareRuns(t *testing.T, golden, actual *dump.Run, more ...func(*judge.Case)) *judge.Comparison {
	t.Helper()
	k := judge.Case{Name: "short", Golden: golden, Actual: actual}
	for _, f := range more {
		f(&k)
	}
	c, err := judge.Compare(context.Background(), []judge.Case{k}, judge.Options{})
	require.NoError(t, err)
	return c
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
