package session_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// layerDump writes a run of one layer whose output is off the reference's by a part of it, in rows
// that take turns.
func layerDump(t *testing.T, dir, engine, encoding string, off float64, d tensor.DType) {
	t.Helper()
	in, out := wave(t, 1, 1, 1, 6, 128), wave(t, 1, 0.3, 1, 6, 128)
	v, half := make([]float32, out.Len()), make([]byte, 0, 2*out.Len())
	out.Float32s(v, 0)
	for i := range v {
		v[i] *= float32(1 + off*math.Sin(float64(i)))
		half = append(half, byte(math.Float32bits(v[i])>>16), byte(math.Float32bits(v[i])>>24))
	}
	made := toy.Of(t, v, 1, 6, 128)
	if d == tensor.BF16 {
		var err error
		made, err = tensor.New(d, made.Shape(), half)
		require.NoError(t, err)
	}
	info := dump.Info{Schema: dump.Schema, Engine: engine, Device: "cpu", Encoding: dump.Encoding{Compute: encoding},
		Case: "a", Mode: dump.Standard, TokenIDs: json.RawMessage("[[1,2,3,4,5,6]]")}
	if engine == "torch" {
		info.Attention = "eager"
	}
	writeRun(t, dir, info, dump.Entry{Step: "0", Layer: "model.up", Port: "input_0", Tensor: in},
		dump.Entry{Step: "0", Layer: "model.up", Port: "output", Tensor: made})
}

func TestGoldensInTheCandidatesEncoding(t *testing.T) {
	const all = "references: [float32, bfloat16, float16]\n"
	for _, tt := range []struct {
		yaml     string
		cost     float64 // how far the reference is off in 16 bits
		encoding string  // of the candidate
		dtype    tensor.DType
		off      float64
		measured string // the variant
		pass     bool
		reason   string
	}{
		{all, 1e-3, "bfloat16", tensor.F32, 0.04, "bfloat16", false, "within the default, and seven times what a rounding is"},
		{"", 1e-3, "bfloat16", tensor.F32, 0.04, "", true, "no other variant"},
		{all, 0.04, "bfloat16", tensor.F32, 0.08, "bfloat16", true, "beyond the default, and twice what the reference is off"},
		{"", 0.04, "bfloat16", tensor.F32, 0.08, "", false, "the same by the default"},
		{all, 1e-4, "float16", tensor.F32, 5.5e-3, "float16", false, "the candidate's, not another one of 16 bits"},
		{all, 1e-3, "float32", tensor.F32, 1e-5, "", true, "float32 costs nothing"},
		{all, 1e-3, "", tensor.BF16, 0.04, "bfloat16", false, "the run does not say: by its outputs"},
		{all, 1e-3, "", tensor.F32, 1e-5, "", true, "the run does not say: by its outputs"},
		{all, 1e-3, "q8_0", tensor.BF16, 0.04, "", true, "what a quantised one costs is another matter"},
		{"model: {encodings: {cpu: {reference: bfloat16}}}\n" + all, 1e-3, "bfloat16", tensor.F32, 0.04, "", true,
			"the one that judges is in the encoding itself"},
		{"model: {encodings: {cpu: {reference: float16}}}\n" + all, 1e-3, "bfloat16", tensor.F32, 0.04, "bfloat16", false,
			"coarser than the one that judges"},
		{"model: {encodings: {cpu: {reference: bfloat16}}}\n" + all, 1e-3, "float16", tensor.F32, 0.04, "", true,
			"finer than the one that judges"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s, dir := startLayer(t, tt.yaml, tt.cost, func(to string) { layerDump(t, to, "max", tt.encoding, tt.off, tt.dtype) })
			require.NoError(t, s.Update(io.Discard))
			c, err := s.Default().Comparison()
			require.NoError(t, err)
			r, err := s.Default().Report()
			require.NoError(t, err)
			assert.Equal(t, tt.pass, r.Verdict == report.Pass, "%s: %+v", r.Verdict, c.Notes)
			out, notes := find(t, c, "model.up-output").Base.Result, strings.Join(r.Notes, "\n")
			if tt.measured == "" {
				assert.Nil(t, c.Cases[0].Encoded)
				assert.Nil(t, out.Cost)
				assert.NotContains(t, notes, compare.Cost.Rule)
				return
			}
			require.NotNil(t, c.Cases[0].Encoded)
			assert.Equal(t, tt.measured, c.Cases[0].Encoded.Info.Encoding.Compute)
			assert.NotNil(t, out.Cost)
			assert.Contains(t, notes, "1 of 1 outputs are judged by what "+tt.measured+" costs the reference (torch, eager): "+compare.Cost.Rule)
			row := r.Layers[1]
			assert.Equal(t, fmt.Sprintf("3 × what %s costs the reference (torch, eager)", tt.measured), row.Tolerance.Source)
			assert.Equal(t, report.Float(out.Cost.Row), row.Standard.RowCost)

			for _, p := range golden(t, dir).Runs() {
				if p.Variant == tt.measured {
					assert.Equal(t, fixture.UseCost, p.Use)
					assert.Equal(t, compare.Cost.Rule, p.Formula)
				} else if p.Variant == "float32" && !strings.Contains(tt.yaml, "reference:") {
					assert.Equal(t, fixture.UseJudge, p.Use)
					assert.Empty(t, p.Formula)
				}
			}
		})
	}
}

// startLayer makes a fixture of one case with dumps of the reference in float32, bfloat16 and
// float16, and the candidate's run.
func startLayer(t *testing.T, yaml string, cost float64, candidate func(to string)) (*session.Session, string) {
	t.Helper()
	dir, root := toyFolder(t, yaml+"cases:\n  a: {token_ids: [1, 2, 3, 4, 5, 6]}\n")
	for _, variant := range []string{"float32", "bfloat16", "float16"} {
		off := cost
		if variant == "float32" {
			off = 0
		}
		layerDump(t, filepath.Join(root, "ref", variant, "a"), "torch", variant, -off, tensor.F32)
	}
	candidate(filepath.Join(root, "cand", "a"))
	s := begin(t, session.Config{Fixtures: []string{dir}, Update: setting.UpdateAll, GoldenDump: filepath.Join(root, "ref"),
		Replay: filepath.Join(root, "cand")})
	return s, dir
}

// in16 is a run of an engine that says in which encoding it computed.
func in16(engine, encoding string, ports ...port) *dump.Run {
	r := run(engine, ports...)
	r.Path, r.Info.Encoding.Compute = engine+encoding, encoding
	return r
}

// A run that is not the reference's in that encoding, on those tokens, measures nothing.
func TestNoMeasure(t *testing.T) {
	for _, tt := range []struct {
		edit         func(golden, actual, encoded *dump.Run)
		want, reason string
	}{
		{func(_, _, e *dump.Run) { e.Info.TokenIDs = json.RawMessage("[[1,2,4]]") },
			"by token_ids of run.json, token 2 of sequence 0 is 3 in the golden and 4 in the reference in the candidate's encoding", "another prompt"},
		{func(_, _, e *dump.Run) { e.Info.Encoding.Compute = "float16" },
			"it ran in float16, and the candidate is judged as bfloat16", "another encoding"},
		{func(_, a, e *dump.Run) { a.Info.Nonce, e.Info.Nonce = "n", "n" }, "it is the candidate's own run", "nothing could fail"},
		{func(_, a, _ *dump.Run) { a.Info.Encoding.Compute = "float32" },
			"the runs are judged as float32, and only what 16 bits cost is measured", "it would judge nothing"},
		{func(g, _, _ *dump.Run) { g.Info.Encoding.Compute = "bfloat16" }, "the golden is in bfloat16 itself", "there is no difference"},
		{func(_, _, e *dump.Run) {
			for i, x := range e.Entries {
				if x.Step == "1" && x.Port == "input_0" {
					e.Entries[i].Tensor = toy.Of(t, []int64{8}, 1, 1)
				}
			}
		}, "its decode steps were given the tokens [8] of sequence 0, those of the golden [7]", "another continuation"},
	} {
		made := func(engine, encoding string) *dump.Run {
			r := in16(engine, encoding, port{"model.embed-input_0", toy.Of(t, []int64{1, 2, 3}, 1, 3)}, port{"model.embed-output", wave(t, 1, 0, 1, 3, 64)})
			r.Entries = append(r.Entries,
				dump.Entry{Step: "1", Layer: "model.embed", Port: "input_0", Tensor: toy.Of(t, []int64{7}, 1, 1)},
				dump.Entry{Step: "1", Layer: "model.embed", Port: "output", Tensor: wave(t, 1, 0, 1, 1, 64)})
			r.Info.TokenIDs = json.RawMessage("[[1,2,3]]")
			return r
		}
		k := judge.Case{Name: "short", Golden: made("torch", "float32"), Actual: made("max", "bfloat16"), Encoded: made("torch", "bfloat16")}
		_, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
		require.NoError(t, err)
		tt.edit(k.Golden, k.Actual, k.Encoded)
		_, err = judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
		assert.ErrorContains(t, err, "is no measure of what an encoding costs the reference: "+tt.want, tt.reason)
	}
}

// Where the encoding is too small for the reference itself, nothing is known of the candidate.
func TestOverflowOfTheReference(t *testing.T) {
	values := func(row0, others float64) *tensor.Tensor {
		v := make([]float64, 4*64)
		for i := range v {
			if v[i] = others * math.Sin(float64(i)); i < 64 {
				v[i] = row0
			}
		}
		return toy.Of(t, v, 1, 4, 64)
	}
	in := wave(t, 1, 0, 1, 4, 64)
	made := func(engine, encoding string, out *tensor.Tensor) *dump.Run {
		return in16(engine, encoding, port{"model.up-input_0", in}, port{"model.up-output", out})
	}
	for _, tt := range []struct {
		actual, encoded *tensor.Tensor
		status          report.Status
		reason          string
	}{
		{values(math.Inf(1), 1.0001), values(math.Inf(1), 1), report.StatusPass, "both overflow in one row"},
		{values(7e4, 1.0001), values(math.Inf(1), 1), report.StatusPass, "the candidate does not"},
		{values(math.Inf(1), 1.1), values(math.Inf(1), 1), report.StatusFail, "the other rows are judged"},
		{values(math.Inf(1), 1.0001), values(7e4, 1), report.StatusFail, "only the candidate overflows"},
		{values(1, 1), values(math.Inf(1), math.Inf(1)), report.StatusIgnored, "no row is left: no pass"},
	} {
		k := judge.Case{Name: "short", Golden: made("torch", "float32", values(7e4, 1)), Actual: made("max", "float16", tt.actual),
			Encoded: made("torch", "float16", tt.encoded)}
		c, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
		require.NoError(t, err)
		r := c.Report("toy", true)
		assert.Equal(t, tt.status, r.Layers[1].Status, "%s: %+v", tt.reason, r.Layers[1])
		if tt.status == report.StatusIgnored {
			assert.NotEqual(t, report.Pass, r.Verdict, tt.reason)
			assert.Contains(t, r.Layers[1].Note, "all rows overflow in float16 in the reference itself", tt.reason)
		}
	}
}

// Beside a float64 golden the larger measure judges, of the tensor as of its rows.
func TestCostBesideFloat64(t *testing.T) {
	rows := func(first, others float64) *tensor.Tensor {
		v := make([]float64, 64*64)
		for i := range v {
			if v[i] = others; i < 64 {
				v[i] = first
			}
		}
		return toy.Of(t, v, 1, 64, 64)
	}
	half := make([]byte, 0, 2*64*64) // 0.125 in the first row, 1 in the others
	for i := range 64 * 64 {
		if half = append(half, 0, 0x3c); i < 64 {
			half[2*i+1] = 0x30
		}
	}
	g, err := tensor.New(tensor.F16, []int{1, 64, 64}, half)
	require.NoError(t, err)
	made := func(engine, encoding string, out *tensor.Tensor) *dump.Run {
		return in16(engine, encoding, port{"model.up-output", out})
	}
	for first, pass := range map[float64]bool{0.125 * 1.1: true, 0.125 * 1.2: false} {
		k := judge.Case{Name: "short", Golden: made("torch", "float16", g), Golden64: made("torch", "float64", rows(0.125*1.04, 1)),
			Encoded: made("torch", "bfloat16", rows(0.125, 1)), Actual: made("max", "bfloat16", rows(first, 1.01))}
		c, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{})
		require.NoError(t, err)
		p := find(t, c, "model.up-output")
		assert.Contains(t, p.Source, "3 × the reference's own distance from float64")
		assert.Equal(t, pass, p.Base.Pass, "%v", p.Base.Violations)
	}
}

// A reference whose path is not what its one pass is cannot accuse without a word.
func TestReferenceContradictsItself(t *testing.T) {
	path := store.Along{Variant: "float32", Case: "a", Path: "decode:2", Own: true, RowRelL2: 0.4, Limit: 1e-4, Label: "model.up-output"}
	for _, tt := range []struct {
		edit   func(p *store.Along)
		off    float64
		said   bool
		reason string
	}{
		{func(*store.Along) {}, 0.1, true, "beyond rounding"},
		{func(*store.Along) {}, 0, false, "the candidate passes"},
		{func(p *store.Along) { p.RowRelL2 = 1e-5 }, 0.1, false, "rounding: it has goldens of its own since another case is beyond"},
		{func(p *store.Along) { p.Case = "" }, 0.1, false, "rows of a batch"},
		{func(p *store.Along) { p.Variant = "bfloat16" }, 0.1, false, "another variant"},
		{func(p *store.Along) { p.RowRelL2, p.Limit = 0, 0 }, 0.1, false, "one pass has no such rows"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			made, dir := startLayer(t, "", 0, func(to string) { layerDump(t, to, "max", "float32", tt.off, tensor.F32) })
			require.NoError(t, made.Update(io.Discard))
			p := path
			tt.edit(&p)
			require.NoError(t, store.Update(t.Context(), filepath.Join(dir, "golden"), nil, func(old *store.Store) (*store.Change, error) {
				return &store.Change{Keep: old.Runs(), Paths: []store.Along{p}}, nil
			}))
			s := begin(t, session.Config{Fixtures: []string{dir}, Replay: filepath.Join(filepath.Dir(dir), "cand")})
			r, err := s.Default().Report()
			require.NoError(t, err)
			notes := strings.Join(r.Notes, "\n")
			if !tt.said {
				assert.NotContains(t, notes, "contradicts itself")
				return
			}
			assert.Contains(t, notes, "along path decode:2, case a, its worst row is at relative L2 0.4 from its own one pass, at most 0.0001 is rounding (model.up-output)")
		})
	}
}
