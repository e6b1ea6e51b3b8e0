package report_test

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

func n(v int) *int { return &v }

func nan() report.Float { return report.Float(math.NaN()) }

// metrics are the metrics of 7×64 elements with a worst row's relative L2 of rel.
func metrics(rel float64, mismatches int) *report.Metrics {
	return &report.Metrics{
		N: 448, Finite: 448, Mismatches: mismatches,
		MaxAbs: report.Float(2 * rel), MaxAbsIndex: []int{0, 3, 17}, MaxAbsGolden: 1.25,
		MaxAbsActual: report.Float(1.25 + 2*rel),
		MaxRel:       report.Float(3 * rel), MaxRelIndex: []int{0, 0, 5}, MaxRelGolden: -0.5,
		MaxRelActual: report.Float(-0.5 - rel),
		MSE:          report.Float(rel * rel), RelL2: report.Float(rel * 0.75), Cosine: report.Float(1 - rel*rel/2),
		CosineDistance: report.Float(rel * rel / 2),
		SNR:            report.Float(-20 * math.Log10(rel*0.75)), RowRelL2: report.Float(rel), RowIndex: n(3),
		RowMaxAbs: report.Float(2 * rel), MaxAbsRow: n(3),
	}
}

func row(layer string, order int, status report.Status, m *report.Metrics) report.Layer {
	return report.Layer{
		Layer: layer, Port: "output", Kind: "output", Case: "hello", Step: "0", Order: order, Status: status,
		Golden:   &report.Side{Name: layer + "-output", DType: "float32", Shape: []int{1, 7, 64}},
		Actual:   &report.Side{Name: "m." + layer + "-output", DType: "float32", Shape: []int{7, 64}},
		Standard: m, Tolerance: &report.Tolerance{Criteria: compare.Criteria{compare.RelL2: 1e-4,
			compare.RowRelL2: 1e-4}, Source: "default for float32"},
	}
}

func source() report.Source {
	return report.Source{
		Golden: report.Engine{Name: "torch", Versions: map[string]string{"torch": "2.15.0", "transformers": "5.12.1"},
			Device: "cpu", Encoding: "float32"},
		Actual: report.Engine{Name: "max", Versions: map[string]string{"max": "26.7.0"}, Device: "cpu",
			Encoding: "float32"},
		Date: "2026-11-21T09:30:00Z",
	}
}

// passing is a run in which all is well.
func passing() *report.Report {
	dropout := func(i int) report.Lone {
		return report.Lone{Name: fmt.Sprintf("model.encoder.layer.%d.attention.self.dropout output", i), Shape: []int{1, 13, 384},
			Reason: "dropout is not called as a layer by MAX"}
	}
	r := &report.Report{Schema: 1, Fixture: "minilm", Verdict: report.Pass, Source: source(), Frontier: []string{},
		Causes:   []report.Cause{},
		Order:    &report.Order{Same: true, Differences: []string{}},
		Coverage: &report.Coverage{Compared: 13, Outputs: 15},
		Notes:    []string{"batch axis of 1 dropped on the candidate's side: 90 ports"},
		Unmatched: report.Unmatched{
			Golden: []report.Lone{
				{Name: "model.pooler output", Shape: []int{1, 384}, Nearest: "model.embeddings"},
				dropout(0), dropout(1), dropout(2), dropout(3),
				{Name: "model.embeddings position", Reason: "held constant", Ignored: true},
			},
			Actual: []report.Lone{},
		}}
	for i := range 12 {
		r.Layers = append(r.Layers,
			row(fmt.Sprintf("model.encoder.layer.%d", i), i, report.StatusPass, metrics(float64(i+1)*1.2e-7, 0)))
	}
	r.Layers[4].Case, r.Layers[4].Step = "hello", "1"
	ids := row("model.embeddings.word_embeddings", 0, report.StatusPass,
		&report.Metrics{N: 13, Finite: 13, Cosine: 1, SNR: report.Float(math.Inf(1))})
	ids.Port, ids.Kind, ids.Tolerance = "input_0", label.RoleInput.String(),
		&report.Tolerance{Criteria: compare.Criteria{compare.Atol: 0, compare.Rtol: 0}}
	ignored := report.Layer{Layer: "model.encoder.layer.5.attention", Port: "output", Kind: "output", Case: "hello",
		Step: "0", Order: 40,
		Status: report.StatusIgnored, Note: "fixture.yaml:31: the fused kernel never writes it"}
	r.Layers = append(r.Layers, ids, ignored)
	return r
}

// failing is a wrong activation, what follows from it, and one of each other status.
func failing() *report.Report {
	r := &report.Report{Schema: 1, Fixture: "layer_comparison", Verdict: report.Fail, Kind: "between", Source: source(),
		FirstDivergence: &report.Divergence{Layer: "layers.1", Port: "output", Case: "hello", Step: "0",
			After: "layers.1.up", Before: "layers.1.down",
			Uncaptured: []string{"attention_mask"},
			Text:       "layers.1.up agrees to 3.1e-7 and what layers.1.down was given is off by 2.0e-2."},
		Frontier: []string{"layers.1", "layers.2.norm"},
		Order: &report.Order{Same: false, N: 2,
			Differences: []string{"golden k_proj, v_proj; candidate v_proj, k_proj"}},
		Causes: []report.Cause{
			{ID: "activation/gelu-tanh", Layer: "layers.1", Proven: true, Fit: 2.3e-7, FitGolden: 0.0201,
				Text: "The tanh approximation of GELU in place of the exact one explains the output."},
			{ID: "norm/eps", Layer: "layers.1.norm", Fit: 0.017, FitGolden: 0.0201},
		},
		Coverage: &report.Coverage{Compared: 27, Outputs: 30, Open: []string{"the final output lm_head output was not compared"}},
		Notes:    []string{"fused qkv_proj split into q, k, v"},
		Unmatched: report.Unmatched{Actual: []report.Lone{{Name: "rotary_tables output", Shape: []int{7, 32},
			Nearest: "rotary_emb",
			Hint:    "names:\n  - {golden: rotary_emb, candidate: rotary_tables}\n"}}}}
	r.Layers = append(r.Layers, row("layers.0", 0, report.StatusPass, metrics(3e-7, 0)))
	first := row("layers.1", 1, report.StatusFail, metrics(0.02, 420))
	first.Tolerance = &report.Tolerance{Criteria: compare.Criteria{compare.Atol: 1e-5, compare.Rtol: 1e-4},
		Source: "layers_test.go:18"}
	first.Violations = []string{"420 of 448 elements outside atol 1e-5 + rtol 1e-4·|g|, first at [0 0 0]: golden " +
		"0.125, actual 0.1254"}
	first.Detail = []string{"all rows, all columns", "would pass with rtol 1e-4 and atol 0.041"}
	r.Layers = append(r.Layers, first)
	for i := range 24 {
		l := row(fmt.Sprintf("layers.%d.a_block_with_a_very_long_name.attention.output.dense", i+2), i+2,
			report.StatusInherited, metrics(0.02+float64(i)/1000, 448))
		l.Blame = "layers.1"
		r.Layers = append(r.Layers, l)
	}
	nan := row("layers.3.norm", 30, report.StatusFail, metrics(math.NaN(), 448))
	nan.Standard.NaNActual, nan.Standard.InfGolden, nan.Standard.BadNonFinite, nan.Standard.Finite = 12, 1, 13, 435
	nan.Standard.MaxAbsIndex, nan.Standard.MaxRelIndex, nan.Standard.RowIndex, nan.Standard.MaxAbsRow = nil, nil, nil,
		nil
	missing := row("lm_head", 31, report.StatusMissing, nil)
	missing.Actual = nil
	missing.Note = "the fixture says that it is recorded; record the run again or ignore it with a reason"
	shape := row("layers.3.mlp", 32, report.StatusError, nil)
	shape.Note = "shapes differ: golden 1×7×64, candidate 7×32"
	shape.Golden.Shape = nil
	extra := row("sampler", 33, report.StatusUnexpected, nil)
	r.Layers = append([]report.Layer{nan, missing, shape, extra}, r.Layers...)
	return r
}

// broken is a run that could not be judged.
func broken() *report.Report {
	return &report.Report{Schema: 1, Fixture: "minilm", Verdict: report.Error,
		Source: report.Source{Actual: report.Engine{Path: "runs/max-cpu"}},
		Error: "runs/max-cpu/standard/hello.0.safetensors: corrupt at byte 8: the header is 9000 bytes long, the " +
			"file 120"}
}

// hostile is a failing run of many rows whose names are meant to break a page.
func hostile(rows int) *report.Report {
	r := failing()
	evil := "a|b`c`\x1b[31m\n::error::x<script>]]>%\u202e[x](y)*" + string(make([]byte, 2000))
	for i := range rows {
		l := row(fmt.Sprint(evil, i), i, report.StatusFail, metrics(1, 1))
		l.Note, l.Blame, l.Case, l.Violations = evil, evil, evil, []string{evil}
		r.Layers = append(r.Layers, l)
	}
	r.FirstDivergence.Layer, r.Causes[0].Text, r.Source.Date = evil, evil, evil
	return r
}
