package judge_test

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// off says by how much a row of model.b is off, of a pass, a sequence and a position.
type off func(pass, sequence, position int) float32

func right(int, int, int) float32 { return 0 }

// fed is a run of two layers along a path: b makes each row of one row of a.
func fed(t *testing.T, path string, tokens [][]int, passes [][]dump.PassItem, off off) *dump.Run {
	ids, err := json.Marshal(tokens)
	require.NoError(t, err)
	var entries []dump.Entry
	for k, pass := range passes {
		var a, b []float32
		for _, i := range pass {
			for at := i.From; at < i.To; at++ {
				for c := range 4 {
					v := float32(math.Sin(float64(7*tokens[i.Sequence][at] + 3*at + c)))
					a, b = append(a, v), append(b, 2-v+off(k, i.Sequence, at))
				}
			}
		}
		for _, p := range []struct {
			layer, port string
			values      []float32
		}{{"model.a", "output", a}, {"model.b", "input_0", a}, {"model.b", "output", b}} {
			x, err := tensor.Of(p.values, len(p.values)/4, 4)
			require.NoError(t, err)
			entries = append(entries, dump.Entry{Step: strconv.Itoa(k), Layer: p.layer, Port: p.port, Tensor: x})
		}
	}
	info := dump.Info{Schema: dump.Schema, Engine: "test", Case: "c", Mode: dump.Standard, TokenIDs: ids, Path: path, Passes: passes}
	return dump.New("run", info, dump.OrderRunFile, entries)
}

func part(sequence, from, to int) dump.PassItem {
	return dump.PassItem{Sequence: sequence, From: from, To: to}
}

func again(sequence, to int) dump.PassItem {
	return dump.PassItem{Sequence: sequence, To: to, Fresh: true}
}

// The first wrong row, and whether it is the path that is wrong: only where the candidate is known
// to be right in one pass.
func TestComparePaths(t *testing.T) {
	prompts := [][]int{{1, 15, 7, 9, 4}, {1, 8, 3}}
	golden := fed(t, "one-pass", prompts, [][]dump.PassItem{{part(0, 0, 5)}, {part(1, 0, 3)}}, right)
	chunks := [][]dump.PassItem{{part(0, 0, 2)}, {part(0, 2, 4)}, {part(0, 4, 5)}}
	batch := [][]dump.PassItem{{part(0, 0, 5), part(1, 0, 3)}}
	repeat := [][]dump.PassItem{{part(0, 0, 5)}, {part(1, 0, 3)}, {again(0, 5)}}
	lengths := [][]dump.PassItem{{part(0, 0, 1)}, {again(0, 3)}, {again(0, 5)}}
	from := func(pass, sequence, position int) off {
		return func(k, s, at int) float32 {
			if k >= pass && s == sequence && at >= position {
				return 1
			}
			return 0
		}
	}
	everywhere := func(int, int, int) float32 { return 1 }
	tests := []struct {
		name   string
		path   string
		passes [][]dump.PassItem
		off    off
		own    off    // of the candidate's own one pass; nil if it is not given
		kind   string // "" for a pass
		first  report.Row
		reason string
	}{
		{"right", "chunked:2", chunks, right, right, "", report.Row{}, "all rows are right"},
		{"later pass", "chunked:2", chunks, from(1, 0, 3), nil, "path", report.Row{Pass: 1, Position: 3}, "the first pass is one pass, and agrees"},
		{"first pass", "chunked:2", chunks, everywhere, nil, "local", report.Row{}, "it may be wrong in one pass, too"},
		{"first pass, one pass right", "chunked:2", chunks, everywhere, right, "path", report.Row{}, "it is not"},
		{"wrong in one pass too", "chunked:2", chunks, from(1, 0, 3), from(0, 0, 3), "local", report.Row{Position: 3}, "the place of the one pass"},
		{"a sequence of a batch", "batch", batch, from(0, 1, 1), nil, "path", report.Row{Sequence: 1, Position: 1}, "the other reaches as far, and is right"},
		{"the longer one", "batch", batch, from(0, 0, 3), nil, "local", report.Row{Position: 3}, "the other has no such position"},
		{"both sequences", "batch", batch, everywhere, nil, "local", report.Row{}, "none is right"},
		{"some positions", "lengths:1,3,5", lengths, from(0, 0, 2), nil, "local", report.Row{Pass: 1, Position: 2}, "the runs that are right end before"},
		{"a length", "lengths:1,3,5", lengths, func(k, _, _ int) float32 { return float32(k & 1) }, nil, "path", report.Row{Pass: 1}, "the whole is right"},
		{"a later run", "repeat:2", repeat, from(2, 0, 4), nil, "path", report.Row{Pass: 2, Position: 4}, "the first run is right"},
		{"bits of a later run", "repeat:2", repeat, func(k, s, at int) float32 { return from(2, 0, 4)(k, s, at) * 1e-6 }, nil, "path",
			report.Row{Pass: 2, Position: 4}, "equal means bit for bit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runs := judge.PathRuns{Golden: []*dump.Run{golden}, Actual: []*dump.Run{fed(t, tt.path, prompts, tt.passes, tt.off)}}
			if tt.passes[0][0].To < 5 && tt.path != "lengths:1,3,5" { // the second prompt is not fed
				runs.Actual = []*dump.Run{fed(t, tt.path, prompts[:1], tt.passes, tt.off)}
			}
			if tt.own != nil {
				runs.OnePass = []*dump.Run{fed(t, "", prompts[:1], [][]dump.PassItem{{part(0, 0, 5)}}, tt.own)}
			}
			p, err := judge.ComparePaths(context.Background(), runs, judge.Options{})
			require.NoError(t, err)
			r := p.Report("x")
			assert.Equal(t, tt.kind, r.Kind, tt.reason)
			require.Len(t, r.Paths, 1)
			if tt.kind == "" {
				assert.Equal(t, report.Pass, r.Verdict, tt.reason)
				assert.True(t, r.Paths[0].Matches.BitForBit && r.Paths[0].Consistent.BitForBit)
				return
			}
			require.Equal(t, report.Fail, r.Verdict, tt.reason)
			d := r.FirstDivergence
			tt.first.Path = d.Path
			assert.Equal(t, tt.first, *d.Row, tt.reason)
			assert.Equal(t, "model.b", d.Layer, tt.reason)
			depth := r.PathDepth.Runs[len(r.PathDepth.Runs)-1]
			assert.Equal(t, tt.path, depth.Path)
			assert.Equal(t, tt.own != nil, r.PathDepth.Runs[0].Path == report.OnePass, "the candidate's one pass comes first")
			if tt.kind != "path" {
				assert.Nil(t, r.Paths[0].First, "no fault of the path")
			} else {
				assert.Equal(t, &report.Place{Layer: d.Layer, Port: d.Port, Step: d.Step, Row: *d.Row}, r.Paths[0].First)
				assert.Contains(t, report.Headline(r), "right in one pass, wrong along "+tt.path)
			}
		})
	}
}

// Each case of a path has its own first place, and its own errors along the depth.
func TestPlaces(t *testing.T) {
	prompts := [][]int{{1, 15, 7, 9, 4}}
	golden := fed(t, "", prompts, [][]dump.PassItem{{part(0, 0, 5)}}, right)
	chunks := [][]dump.PassItem{{part(0, 0, 2)}, {part(0, 2, 4)}, {part(0, 4, 5)}}
	var runs []*dump.Run
	for i, wrongFrom := range []int{3, 9, 4} {
		r := fed(t, "chunked:2", prompts, chunks, func(_, _, at int) float32 {
			if at >= wrongFrom {
				return 1
			}
			return 0
		})
		r.Info.Case = strconv.Itoa(i)
		runs = append(runs, r)
	}
	p, err := judge.ComparePaths(context.Background(), judge.PathRuns{Golden: []*dump.Run{golden}, Actual: runs}, judge.Options{})
	require.NoError(t, err)
	r := p.Report("x")
	require.Len(t, r.Paths, 3)
	assert.Equal(t, report.Row{Path: "chunked:2", Pass: 1, Position: 3}, r.Paths[0].First.Row)
	assert.Nil(t, r.Paths[1].First, "it is right")
	assert.Equal(t, report.Row{Path: "chunked:2", Pass: 2, Position: 4}, r.Paths[2].First.Row)
	require.Equal(t, []string{"model.a", "model.b"}, r.PathDepth.Layers)
	assert.Greater(t, float64(r.PathDepth.Runs[0].Errors[1]), 1.0)
	assert.LessOrEqual(t, float64(r.PathDepth.Runs[1].Errors[1]), 1.0)
	assert.LessOrEqual(t, float64(r.PathDepth.Runs[2].Errors[0]), 1.0, "its input is right")
}

// Tolerances that were asked for hold for repeated runs, too; and a prompt between them that no golden
// has is not judged.
func TestRepeats(t *testing.T) {
	golden := fed(t, "", [][]int{{1, 2, 3}}, [][]dump.PassItem{{part(0, 0, 3)}}, right)
	actual := fed(t, "repeat:2", [][]int{{1, 2, 3}, {9, 9}}, [][]dump.PassItem{{part(0, 0, 3)}, {part(1, 0, 2)}, {again(0, 3)}},
		func(k, _, _ int) float32 { return float32(k) * 1e-6 })
	opt := judge.Options{Criteria: func(string, string, tensor.DType) (compare.Criteria, string) {
		return compare.Criteria{compare.Atol: 1e-3}, "a test"
	}}
	p, err := judge.ComparePaths(context.Background(), judge.PathRuns{Golden: []*dump.Run{golden}, Actual: []*dump.Run{actual}}, opt)
	require.NoError(t, err)
	r := p.Report("x")
	assert.Equal(t, report.Pass, r.Verdict)
	assert.Contains(t, r.Notes, "no golden has the tokens of forward pass 1: it was not judged")
	assert.False(t, r.Paths[0].Repeats.BitForBit)
	assert.True(t, r.Paths[0].Repeats.Holds)
}
