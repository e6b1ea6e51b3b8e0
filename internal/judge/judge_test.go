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
	"github.com/goparity/goparity/internal/toy"
)

type port = toy.Port

var run, wave = toy.Run, toy.Wave

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
