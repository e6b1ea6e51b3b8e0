package paths_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// off says by how much a row of model.b is off, of a pass, a sequence and a position.
type off func(pass, sequence, position int) float32

func right(int, int, int) float32 { return 0 }

// from is wrong from a pass and a position of a sequence on.
func from(pass, sequence, position int) off {
	return func(k, s, at int) float32 {
		if k >= pass && s == sequence && at >= position {
			return 1
		}
		return 0
	}
}

var chunks = [][]dump.PassItem{{part(0, 0, 2)}, {part(0, 2, 4)}, {part(0, 4, 5)}}

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

// ran is the program of one pass over each of several sequences: b = 2 − a.
func ran(t *testing.T, lengths ...int) *program.Program { return ranWith(t, "neg", nil, lengths...) }

// ranWith is that with another operator in the place of neg, and with what the model was given.
func ranWith(t *testing.T, op string, constants func() (*tensor.File, error), lengths ...int) *program.Program {
	var values, ops, passes []string
	for k, n := range lengths {
		v := 3 * k
		value := fmt.Sprintf(`"shape":[%d,4],"dtype":"float32"`, n)
		values = append(values, fmt.Sprintf(`{"id":%d,%s,"from":{"input":"a","step":"%d"}}`, v, value, k),
			fmt.Sprintf(`{"id":%d,%s,"from":{"op":%d}}`, v+1, value, 2*k), fmt.Sprintf(`{"id":%d,%s,"from":{"op":%d}}`, v+2, value, 2*k+1))
		ops = append(ops, fmt.Sprintf(`{"op":"aten.%s.default","args":{"self":"%%%d"},"out":["%%%d"],"layer":"model.b","call":1}`, op, v, v+1),
			fmt.Sprintf(`{"op":"aten.add.Tensor","args":{"self":"%%%d","other":2,"alpha":1},"out":["%%%d"],"layer":"model.b","call":1}`, v+1, v+2))
		passes = append(passes, fmt.Sprintf(`{"step":"%d","ops":[%d,%d],"ports":{"model.a-output":["%%%d",%d,%d],"model.b-input_0":["%%%d",%d,%d],"model.b-output":["%%%d",%d,%d]}}`,
			k, 2*k, 2*k+2, v, 2*k, 2*k, v, 2*k, 2*k+2, v+2, 2*k+2, 2*k+2))
	}
	p, err := program.Parse("p", fmt.Appendf(nil, `{"schema":1,"engine":"test","case":"c","frames":[],"stacks":[],"values":[%s],"ops":[%s],"passes":[%s]}`,
		strings.Join(values, ","), strings.Join(ops, ","), strings.Join(passes, ",")), constants)
	require.NoError(t, err)
	return p
}

// ranOn is that of tokens, with what model.a makes of them.
func ranOn(t *testing.T, tokens [][]int) *program.Program {
	var named []tensor.Named
	var lengths []int
	for k, ids := range tokens {
		x, err := tensor.Of(cast[int64](ids), 1, len(ids))
		require.NoError(t, err)
		a := fed(t, dump.OnePass, tokens, [][]dump.PassItem{{part(k, 0, len(ids))}}, right).Entries[0].Tensor
		named = append(named, tensor.Named{Name: fmt.Sprintf("input:%d:input_ids", k), Tensor: x}, tensor.Named{Name: fmt.Sprintf("input:%d:a", k), Tensor: a})
		lengths = append(lengths, len(ids))
	}
	return ranWith(t, "neg", func() (*tensor.File, error) { return &tensor.File{Tensors: named}, nil }, lengths...)
}

func cast[To, From int | int64 | float32 | float64](x []From) (out []To) {
	for _, v := range x {
		out = append(out, To(v))
	}
	return out
}

// Without a golden, what a program of one pass makes of the rows of a run, laid out as that, judges the run
// along a path.
func TestCompareAlone(t *testing.T) {
	tokens := [][]int{{1, 2, 3, 4, 5}, {6, 7, 8}}
	for _, tt := range []struct {
		path    string
		tokens  [][]int
		passes  [][]dump.PassItem
		off     off
		verdict report.Verdict
		row     *report.Row
		reason  string
	}{
		{"chunked:2", tokens[:1], chunks, right, report.Pass, nil, "chunks"},
		{"chunked:2", tokens[:1], chunks, from(1, 0, 3), report.Fail, &report.Row{Pass: 1, Position: 3}, "wrong within a chunk"},
		{"batch", tokens, [][]dump.PassItem{{part(0, 0, 5), part(1, 0, 3)}, {again(1, 3), again(0, 5)}}, right, report.Pass, nil, "a batch, in two orders"},
		{"batch", tokens, [][]dump.PassItem{{part(0, 0, 5), part(1, 0, 3)}, {again(1, 3), again(0, 5)}}, from(1, 1, 0), report.Fail,
			&report.Row{Pass: 1, Sequence: 1}, "wrong in the second order alone"},
		{"repeat:2", tokens[:1], [][]dump.PassItem{{part(0, 0, 5)}, {again(0, 5)}}, from(1, 0, 4), report.Fail, &report.Row{Pass: 1, Position: 4},
			"what was right in the first run is no golden of the second"},
	} {
		runs := paths.Runs{Actual: []*dump.Run{fed(t, tt.path, tt.tokens, tt.passes, tt.off)}, Golden: paths.Goldens{Programs: []*program.Program{ranOn(t, tokens)}},
			Alone: &judge.AloneOptions{}}
		p, err := paths.Compare(context.Background(), runs, judge.Options{})
		require.NoError(t, err, tt.reason)
		r := p.Report("f")
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		assert.Contains(t, strings.Join(r.Notes, "\n"), "judged without a golden", tt.reason)
		if tt.row != nil {
			assert.Equal(t, "model.b", r.FirstDivergence.Layer, tt.reason)
			tt.row.Path = tt.path
			assert.Equal(t, tt.row, r.FirstDivergence.Row, tt.reason)
		}
	}
	other := paths.Runs{Actual: []*dump.Run{fed(t, "chunked:2", [][]int{{1, 2, 9, 4, 5}}, chunks, right)}, Golden: paths.Goldens{Programs: []*program.Program{ranOn(t, tokens)}},
		Alone: &judge.AloneOptions{}}
	p, err := paths.Compare(context.Background(), other, judge.Options{})
	require.NoError(t, err)
	assert.Equal(t, report.Fail, p.Report("f").Verdict, "other tokens than the program's")
}

// A first forward pass that agrees within the tolerance shows nothing to be right in one pass where replay finds it wrong, nor
// does one that a fault of the model leaves as it is.
func TestNoFaultOfThePath(t *testing.T) {
	prompt := [][]int{{1, 15, 7, 9, 4}}
	// relu is a run whose b is 2 + max(a, 0), or 2 + a without; of the first two tokens a is positive.
	relu := func(path string, passes [][]dump.PassItem, is bool) *dump.Run {
		r := fed(t, path, prompt, passes, right)
		for i := 0; i < len(r.Entries); i += 3 {
			a := make([]float64, r.Entries[i].Tensor.Len())
			r.Entries[i].Tensor.Float64s(a, 0)
			b := make([]float64, len(a))
			for k, v := range a {
				if at := passes[i/3][0].From + k/4; at < 2 {
					a[k] = math.Abs(v)
				}
				if b[k] = 2 + a[k]; is {
					b[k] = 2 + math.Max(a[k], 0)
				}
			}
			for k, x := range [][]float64{a, a, b} {
				var err error
				r.Entries[i+k].Tensor, err = tensor.Of(cast[float32](x), len(x)/4, 4)
				require.NoError(t, err)
			}
		}
		return r
	}
	slightly := func(pass, _, _ int) float32 { return []float32{1e-4, 1, 1}[pass] }
	for _, tt := range []struct {
		golden, actual *dump.Run
		program        *program.Program
		row            report.Row
		reason         string
	}{
		{fed(t, dump.OnePass, prompt, whole, right), fed(t, "chunked:2", prompt, chunks, slightly), ran(t, 5), report.Row{Path: "chunked:2"},
			"wrong in the first pass, within the tolerance"},
		{relu(dump.OnePass, whole, true), relu("chunked:2", chunks, false), ranWith(t, "relu", nil, 5), report.Row{Path: "chunked:2", Pass: 1, Position: 2},
			"an activation is missing, of which the first pass shows nothing"},
	} {
		p, err := paths.Compare(t.Context(), paths.Runs{Golden: paths.Goldens{Standard: []*dump.Run{tt.golden}, Programs: []*program.Program{tt.program}},
			Actual: []*dump.Run{tt.actual}}, judge.Options{})
		require.NoError(t, err, tt.reason)
		r := p.Report("x")
		assert.Equal(t, "local", r.Kind, tt.reason)
		assert.Equal(t, tt.row, *r.FirstDivergence.Row, tt.reason)
		assert.NotContains(t, report.Headline(r), "right in one pass", tt.reason)
	}
}

// Where the golden is of the path itself, the candidate's own one pass is replayed by the program of one pass.
func TestOnePassIsReplayed(t *testing.T) {
	prompt := [][]int{{1, 15, 7, 9, 4}}
	for _, programs := range [][]*program.Program{{ran(t, 5)}, {nil}} {
		p, err := paths.Compare(t.Context(), paths.Runs{Golden: standard(fed(t, "chunked:2", prompt, chunks, right)), Measured: true,
			OnePassGolden: paths.Goldens{Standard: []*dump.Run{fed(t, dump.OnePass, prompt, whole, right)}, Programs: programs},
			OnePass:       []*dump.Run{fed(t, "", prompt, whole, from(0, 0, 3))}, Actual: []*dump.Run{fed(t, "chunked:2", prompt, chunks, from(1, 0, 3))}}, judge.Options{})
		require.NoError(t, err)
		d := p.Report("x").FirstDivergence
		assert.Equal(t, "model.b", d.Layer)
		assert.Equal(t, programs[0] != nil, d.Piece != nil, "what replay found is told")
		replayed := func(p *judge.Port) bool { return p.Local != nil && p.Local.Opaque == "" && p.Local.Wrong }
		assert.Equal(t, programs[0] != nil, slices.ContainsFunc(p.Along.Ports, replayed), "of the path, too")
	}
}

func part(sequence, from, to int) dump.PassItem {
	return dump.PassItem{Sequence: sequence, From: from, To: to}
}

func again(sequence, to int) dump.PassItem {
	return dump.PassItem{Sequence: sequence, To: to, Fresh: true}
}

// The first wrong row, and whether it is the path that is wrong: only where the candidate is known
// to be right in one pass.
func TestCompare(t *testing.T) {
	prompts := [][]int{{1, 15, 7, 9, 4}, {1, 8, 3}}
	golden := fed(t, "one-pass", prompts, [][]dump.PassItem{{part(0, 0, 5)}, {part(1, 0, 3)}}, right)
	batch := [][]dump.PassItem{{part(0, 0, 5), part(1, 0, 3)}}
	repeat := [][]dump.PassItem{{part(0, 0, 5)}, {part(1, 0, 3)}, {again(0, 5)}}
	lengths := [][]dump.PassItem{{part(0, 0, 1)}, {again(0, 3)}, {again(0, 5)}}
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
	for i := range 2 * len(tests) {
		tt, name, programs := tests[i/2], tests[i/2].name, []*program.Program(nil)
		if i%2 == 1 {
			name, programs = name+", replayed", []*program.Program{ran(t, 5, 3)}
		}
		t.Run(name, func(t *testing.T) {
			runs := paths.Runs{Golden: paths.Goldens{Standard: []*dump.Run{golden}, Programs: programs}, Actual: []*dump.Run{fed(t, tt.path, prompts, tt.passes, tt.off)}}
			if tt.passes[0][0].To < 5 && tt.path != "lengths:1,3,5" { // the second prompt is not fed
				runs.Actual = []*dump.Run{fed(t, tt.path, prompts[:1], tt.passes, tt.off)}
			}
			if tt.own != nil {
				runs.OnePass = []*dump.Run{fed(t, "", prompts[:1], [][]dump.PassItem{{part(0, 0, 5)}}, tt.own)}
			}
			p, err := paths.Compare(context.Background(), runs, judge.Options{})
			require.NoError(t, err)
			r := p.Report("x")
			assert.Equal(t, tt.kind, r.Kind, tt.reason)
			require.Len(t, r.Paths, 1)
			assert.Equal(t, []bool{tt.own != nil, tt.own != nil}, []bool{r.Paths[0].OnePass != nil, r.Paths[0].Consistent != nil}, tt.reason)
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
	var runs []*dump.Run
	for _, wrongFrom := range []int{3, 9, 4} {
		runs = append(runs, fed(t, "chunked:2", prompts, chunks, from(0, 0, wrongFrom)))
	}
	p, err := paths.Compare(context.Background(), paths.Runs{Golden: standard(golden), Actual: runs}, judge.Options{})
	require.NoError(t, err)
	r := p.Report("x")
	require.Len(t, r.Paths, 3)
	assert.Equal(t, []string{"c", "c chunked:2", "c chunked:2'"}, []string{r.Paths[0].Case, r.Paths[1].Case, r.Paths[2].Case}, "runs of one case")
	assert.Equal(t, report.Row{Path: "chunked:2", Pass: 1, Position: 3}, r.Paths[0].First.Row)
	assert.Nil(t, r.Paths[1].First, "it is right")
	assert.Equal(t, report.Row{Path: "chunked:2", Pass: 2, Position: 4}, r.Paths[2].First.Row)
	require.Equal(t, []string{"model.a", "model.b"}, r.PathDepth.Layers)
	assert.Greater(t, float64(r.PathDepth.Runs[0].Errors[1]), 1.0)
	assert.LessOrEqual(t, float64(r.PathDepth.Runs[1].Errors[1]), 1.0)
	assert.LessOrEqual(t, float64(r.PathDepth.Runs[2].Errors[0]), 1.0, "its input is right")

	other := [][]int{{1, 8, 3}}
	p, err = paths.Compare(t.Context(), paths.Runs{Golden: standard(golden, fed(t, "", other, [][]dump.PassItem{{part(0, 0, 3)}}, right)), Actual: runs[1:2],
		OnePass: []*dump.Run{fed(t, "", other, [][]dump.PassItem{{part(0, 0, 3)}}, right)}}, judge.Options{})
	require.NoError(t, err)
	assert.Contains(t, strings.Join(p.Report("x").Notes, "\n"), "it was not compared with its own one pass, which had other tokens")
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
	p, err := paths.Compare(context.Background(), paths.Runs{Golden: standard(golden), Actual: []*dump.Run{actual}}, opt)
	require.NoError(t, err)
	r := p.Report("x")
	assert.Equal(t, report.Pass, r.Verdict)
	assert.Contains(t, r.Notes, "no golden has the tokens of forward pass 1: it was not judged")
	assert.False(t, r.Paths[0].Repeats.BitForBit)
	assert.True(t, r.Paths[0].Repeats.Holds)
}

// Without a golden what was replayed is not replayed again: each weight is taken by one piece, once.
func TestAloneReadsOnce(t *testing.T) {
	const text = `{"schema":1,"engine":"test","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2,4],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[4],"dtype":"float32","from":{"weight":"w"}},
{"id":2,"shape":[2,4],"dtype":"float32","from":{"op":0}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":"%1"},"out":["%2"],"layer":"model.a","call":1}],
"passes":[{"step":"0","ops":[0,1],"ports":{"model.a-input_0":["%0",0,1],"model.a-output":["%2",1,1]}}]}`
	x, err := tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4)
	require.NoError(t, err)
	y, err := tensor.Of([]float32{1, 4, 9, 16, 5, 12, 21, 32}, 2, 4)
	require.NoError(t, err)
	w, err := tensor.Of([]float32{1, 2, 3, 4}, 4)
	require.NoError(t, err)
	reads := 0
	data, _ := w.Bytes()
	w = w.Deferred(func() []byte { reads++; return data })
	p, err := program.Parse("p", []byte(text), nil)
	require.NoError(t, err)
	actual := dump.New("run", dump.Info{Schema: dump.Schema, Engine: "test", Case: "c", Mode: dump.Standard}, dump.OrderRunFile,
		[]dump.Entry{{Step: "0", Layer: "model.a", Port: "input_0", Tensor: x}, {Step: "0", Layer: "model.a", Port: "output", Tensor: y}})
	opt := judge.Options{Diagnosis: judge.Diagnosis{Evidence: func() (checkpoint.Weights, checkpoint.Config, error) {
		return checkpoint.Weights{"w": w}, nil, nil
	}}}
	blank, err := judge.Blank("c", p)
	require.NoError(t, err)
	k, err := judge.Alone(context.Background(), judge.Case{Name: "c", Golden: blank, Actual: actual, Program: p}, judge.AloneOptions{Options: opt})
	require.NoError(t, err)
	first := reads
	require.Positive(t, first)
	c, err := judge.Compare(context.Background(), []judge.Case{k}, opt)
	require.NoError(t, err)
	assert.NotEqual(t, report.Fail, c.Report("f", true).Verdict)
	assert.Equal(t, first, reads, "by the judge, too")
}
