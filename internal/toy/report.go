package toy

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

// parts are the layers of a block, in the order in which they end.
var parts = []string{".input_layernorm", ".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj",
	".self_attn.o_proj", ".self_attn", ".post_attention_layernorm",
	".mlp.gate_proj", ".mlp.act_fn", ".mlp.up_proj", ".mlp.down_proj", ".mlp", ""}

const limit = 1e-4

// DeepReport is the report of a model of so many blocks, 13 layers each, in both modes. The attention of
// block number wrong is wrong, and so is everything after it; a negative number is none.
func DeepReport(blocks, wrong int) *report.Report {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := &report.Report{Schema: report.Schema, Fixture: "deep", Verdict: report.Pass, Frontier: []string{}, Causes: []report.Cause{},
		Order: &report.Order{Same: true, Differences: []string{}}, Source: report.Source{Date: "2026-11-21T09:30:00Z",
			Golden: report.Engine{Name: "torch", Versions: map[string]string{"torch": "2.15.0"}, Device: "cpu", Encoding: "float32"},
			Actual: report.Engine{Name: "max", Versions: map[string]string{"max": "26.7.0"}, Device: "gpu", Encoding: "float32"}}}
	noise := func(depth int) float64 { return 1e-7 * math.Sqrt(float64(depth+1)) * math.Exp(rnd.NormFloat64()/2) }
	r.Layers = append(r.Layers, row(r, "model.embed_tokens", "output", 0, 0))
	for b := range blocks {
		for i, part := range parts {
			layer := fmt.Sprintf("model.layers.%d%s", b, part)
			rel, injected, first := noise(b*len(parts)+i), noise(0), b == wrong && i == 5
			if wrong >= 0 && (b > wrong || b == wrong && i >= 5) {
				rel = 0.02 * math.Exp(rnd.NormFloat64()/3)
			}
			if first {
				injected = 0.03
			}
			l := row(r, layer, "output", rel, injected)
			if first {
				fail(r, "local", "rope/layout", "The rotary embedding pairs neighbours, not halves.", report.Divergence{Layer: layer, Step: "0",
					Text: layer + " gets the right inputs and computes something else"})
			}
			if l.Status != report.StatusPass && (first || b == wrong+1 || b == wrong+2) {
				explain(&l, rnd)
			}
			r.Layers = append(r.Layers, l)
			if part == "" {
				in := row(r, layer, "input_0", noise(b*len(parts)), 0)
				in.Injected = nil
				r.Layers = append(r.Layers, in)
			}
		}
	}
	end := noise(blocks * len(parts))
	if wrong >= 0 {
		end = 0.02
	}
	r.Layers = append(r.Layers, row(r, "model.norm", "output", end, noise(0)), row(r, "lm_head", "output", end, noise(0)))
	return r
}

// row is a row whose worst row is off by rel: the first that is too far fails, later ones inherit that.
func row(r *report.Report, layer, port string, rel, injected float64) report.Layer {
	side := report.Side{Name: layer + "-" + port, DType: "float32", Shape: report.Shape{1, 48, 512}}
	l := report.Layer{Layer: layer, Port: port, Kind: label.RoleOf(port).String(), Case: "hello", Step: "0", Golden: &side, Actual: &side,
		Status: report.StatusPass, Standard: metrics(rel), Injected: metrics(injected),
		Tolerance: &report.Tolerance{Criteria: compare.Criteria{compare.RelL2: limit, compare.RowRelL2: limit}, Source: "default for float32"}}
	if d := r.FirstDivergence; rel > limit && d != nil {
		l.Status, l.Blame = report.StatusInherited, d.Layer
	} else if rel > limit {
		l.Status = report.StatusFail
	}
	return l
}

// fail makes a layer the first that is wrong.
func fail(r *report.Report, kind, id, why string, d report.Divergence) {
	d.Port, d.Case, d.Proven = "output", "hello", true
	r.Verdict, r.Kind, r.Frontier, r.FirstDivergence = report.Fail, kind, []string{d.Layer}, &d
	r.Causes = []report.Cause{{ID: id, Layer: d.Layer, Proven: true, Fit: 2.1e-7, FitGolden: 0.021, Text: why}}
}

// ReportAlong is DeepReport without a wrong block, with runs along execution paths: decode:8 and chunked:4 are
// wrong from the attention of a block on, batch is right.
func ReportAlong(blocks, wrong int) *report.Report {
	r := DeepReport(blocks, -1)
	place := fmt.Sprintf("model.layers.%d.self_attn", wrong)
	right := &report.Agreement{Holds: true, Outputs: len(r.Layers), Layer: "lm_head", Port: "output", Step: "0", RowRelL2: 2e-6}
	off := &report.Agreement{Outputs: len(r.Layers), Layer: "lm_head", Port: "output", Step: "1", RowRelL2: 0.02}
	r.PathDepth = &report.PathDepth{}
	r.PathDepth.Add(report.OnePass, "", r.Layers)
	rows := DeepReport(blocks, wrong).Layers
	for i := range rows {
		rows[i].Step, rows[i].Stage = "1", report.StagePaths
	}
	for i, name := range []string{"decode:8", "chunked:4"} {
		row := report.Row{Path: name, Pass: 1, Position: 8 >> i}
		r.Paths = append(r.Paths, report.Path{Case: "hello", Path: name, Passes: 41, Rows: 48, Matches: off, OnePass: right, Consistent: off,
			First: &report.Place{Layer: place, Port: "output", Step: "1", Row: row}, Cause: "state/position"})
		r.PathDepth.Add(name, "hello", rows)
	}
	r.Paths = append(r.Paths, report.Path{Case: "hello", Path: "batch", Passes: 2, Rows: 96, Matches: right, OnePass: right, Consistent: right})
	r.PathDepth.Add("batch", "hello", r.Layers)
	r.Layers = rows
	fail(r, report.KindPath, "state/position", "the positions of the forward pass are off by -1", report.Divergence{Layer: place, Step: "1",
		Row: &r.Paths[0].First.Row, Text: "the candidate's own one pass agrees with the golden"})
	return r
}

func metrics(rel float64) *report.Metrics {
	m := &report.Metrics{N: 48 * 512, Finite: 48 * 512, MaxAbs: report.Float(4 * rel), MSE: report.Float(rel * rel), RelL2: report.Float(rel * 0.8),
		Cosine: report.Float(1 - rel*rel/2), CosineDistance: report.Float(rel * rel / 2), SNR: report.Float(-20 * math.Log10(rel*0.8)), RowRelL2: report.Float(rel)}
	if rel > 0 {
		m.Mismatches = m.N
	}
	return m
}

func explain(l *report.Layer, rnd *rand.Rand) {
	l.Violations = []string{"relative L2 of the worst row (row 17) is above the limit of 0.0001"}
	l.Detail = []string{"worst element [0, 17, 5]", "wrong: all rows from 1 on, of 48"}
	l.Rows = &report.Rows{N: 48}
	for i := range 48 {
		rel := 1e-7
		if i > 0 {
			rel = 0.001 * float64(i) * math.Exp(rnd.NormFloat64()/4)
		}
		l.Rows.RelL2 = append(l.Rows.RelL2, report.Float(rel))
	}
	l.Histogram = &report.Histogram{Equal: 512, Exponent: -9,
		Counts: []int{30, 80, 210, 700, 2400, 7100, 9800, 3500, 244}}
}
