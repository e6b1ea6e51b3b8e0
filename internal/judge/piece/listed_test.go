package piece_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// tried is what edits of one kind, cost and name do.
type tried struct {
	key         string
	edits, runs int
	off, work   float64 // all together
	first, last string
}

// table writes what edits are listed of a piece, and by how much they change what it makes.
func table(t *testing.T, s *piece.Search) string {
	base := baseOf(t, s.Piece, s.Load)
	out := base.Value(s.Piece.Out).Floats()
	var rows []*tried
	add := func(e *edit.Edit, kind string, text string) {
		key := fmt.Sprint(kind, " ", e.Cost, " ", edit.Label(s.Piece, *e))
		i := slices.IndexFunc(rows, func(r *tried) bool { return r.key == key })
		if i < 0 {
			i, rows = len(rows), append(rows, &tried{key: key, first: text})
		}
		r := rows[i]
		r.edits, r.last, r.work = r.edits+1, text, r.work+base.Work(e.Patch)
		a, err := base.Run(e.Patch)
		if err != nil || a.Len() != len(out) {
			return
		}
		r.runs++
		for k, v := range a.Floats() {
			if d := math.Abs(v-out[k]) / (1 + math.Abs(out[k])); d > 1e-5 { // less is rounding, another one on other machines
				r.off += min(d, 1) / float64(len(out))
			}
		}
	}
	for _, e := range listed(base, s.Weights, s.Fed) {
		add(&e, e.Kind, e.Text)
	}
	for _, f := range edit.Families(base) {
		if e := f.Edit(slices.Repeat([]float64{0.1}, f.Numbers)); e != nil {
			add(e, "fitted", e.Text)
		}
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s: %d, %d run, %.3g by %.4g: %s", r.key, r.edits, r.runs, r.off, r.work, r.first)
		if r.edits > 1 {
			fmt.Fprintf(&b, " … %s", r.last)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "the piece takes %.4g\n", base.Whole())
	return b.String()
}

// What is listed of pieces that are made here, and of recorded models: no edit, no name and no number is lost, or is
// another one, unseen.
func TestListed(t *testing.T) {
	sites := map[string]*piece.Search{"fed-counted": fedCounted(), "fed": fedSite(t, false), "fed-fused": fedSite(t, true)}
	other := map[string]*program.Piece{"causal": sample("fed-fused"), "angles": sample("angles", "FREQUENCIES", "1,0.1,0.01,0.001"),
		"q.whole": linear("q.whole", "8", "64"), "q.centred": linear("q.centred", "8", "64"), "q.blocks": linear("q.blocks", "4", "512")}
	for _, name := range strings.Fields(`recurrent gated paired sparse block attention window routed chosen-first headed headed-fused partly resized repeated
		sectioned convolved reflected coordinates fourier counted masked masked-fused bounded scanned`) {
		other[name] = sample(name)
	}
	for name, p := range other {
		sites[name] = &piece.Search{Piece: p, Load: load, Weights: weights}
	}
	packed := gptq(t)
	sites["q.gptq"] = &piece.Search{Piece: linear("q.gptq", "8", "64"), Load: load, Weights: []edit.Weight{{Name: "q.gptq", Shape: []int{8, 64}, DType: tensor.F32,
		Open: func() *tensor.Tensor { return packed }}}}
	seen := map[string]bool{}
	for _, model := range []string{"llama", "mixtral", "speech"} {
		r := toy.Open(t, filepath.Join("..", "..", "replay", "testdata", "programs", model))
		var others []edit.Weight
		for _, w := range r.Weights.Tensors {
			others = append(others, edit.Weight{Name: w.Name, Shape: w.Tensor.Shape(), DType: w.Tensor.DType()})
		}
		for i, q := range r.Ports {
			p := r.Piece(i, func(q int) bool { _, ok := r.Record(q); return ok })
			operators := ""
			for _, o := range p.Ops {
				operators += o.Name + " "
			}
			if !seen[operators] && len(p.Ops) > 0 {
				seen[operators] = true
				from := others
				if i > 0 {
					v := r.Values[r.Ports[i-1].Value]
					from = append(slices.Clone(others), edit.Weight{Name: "elsewhere", Shape: v.Shape, DType: v.DType, Record: i})
				}
				sites[strings.Join([]string{model, q.Step, q.Layer, q.Name}, "-")] = &piece.Search{Piece: p, Load: r.Load, Weights: from}
			}
		}
	}
	names := make([]string, 0, len(sites))
	for name := range sites {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "== %s\n%s", name, table(t, sites[name]))
	}
	toy.Kept(t, "listed.txt", b.String())
}

// gptq is a weight as GPTQ packs it, whose inputs are in groups by turns.
func gptq(t *testing.T) *tensor.Tensor {
	words := func(n int, seed uint32) (x []int32) {
		for range n {
			seed = seed*1664525 + 1013904223
			x = append(x, int32(seed^seed>>13))
		}
		return x
	}
	scales, groups := make([]float32, 32), make([]int32, 64)
	for i := range scales {
		scales[i] = float32(1+i*7%5) / 32
	}
	for i := range groups {
		groups[i] = int32(i % 4)
	}
	dir := t.TempDir()
	config := `{"quantization_config": {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
	w, _, err := checkpoint.Dequantise(dir, "", []tensor.Named{{Name: "qweight", Tensor: toy.Of(t, words(64, 1), 8, 8)},
		{Name: "qzeros", Tensor: toy.Of(t, words(4, 2), 4, 1)}, {Name: "scales", Tensor: toy.Of(t, scales, 4, 8)},
		{Name: "g_idx", Tensor: toy.Of(t, groups, 64)}})
	require.NoError(t, err)
	return w[0].Tensor
}

// said writes what a search found.
func said(b *strings.Builder, reason string, r *piece.Found) {
	fmt.Fprintf(b, "== %s: off %.1g; listed %d, tried %d, %d pairs; proven %t, twin %t; also at %v\n", reason, r.Off, r.Listed, r.Tried, r.Pairs, r.Proven, r.Twin,
		r.AlsoAt())
	for i, list := range [][]piece.Fit{r.Fits, r.Also} {
		for _, f := range list {
			fmt.Fprintf(b, "%s %s: cost %d, off %.1f, overflows %t, compared %d\n", []string{"fits", "also"}[i], f.Text, f.Cost, f.Off, f.Overflows, f.Compared())
		}
	}
	if r.Near != nil {
		fmt.Fprintf(b, "near %s: %.2g\n", r.Near.Text, r.Near.Relative)
	}
}

// An edit that is written by hand: any number, any weight of the shape, or one of those that are listed.
func TestWritten(t *testing.T) {
	p := sample("block")
	base := baseOf(t, p, load)
	for _, tt := range []struct {
		op                int
		kind, what        string
		text, err, reason string
	}{
		{2, "scalar", "0.25", "other of add: 1e-06 → 0.25", "", "the first number"},
		{2, "scalar", "alpha=3", "alpha of add: 1 → 3", "", "a whole one, by its name, though no list changes it"},
		{2, "scalar", "alpha=0.5", "alpha of add: 1 → 0.5", "", "a fraction in its place"},
		{2, "scalar", "gamma=3", "", `operator 3 of layer, aten.add, has no edit "scalar gamma=3": it has "scalar other of add`, "no such argument"},
		{2, "scalar", "1e-06 → 1e-05", "other of add: 1e-06 → 1e-05", "", "a part of the text of one that is listed"},
		{5, "weight", "1.norm.weight", "0.norm.weight → 1.norm.weight", "", "another weight"},
		{5, "weight", "1.up.weight", "", "has no edit", "one of another shape"},
		{8, "sibling", "gelu (tanh)", "silu → gelu (tanh)", "", "another function"},
		{8, "drop", "", "silu left out", "", "without a word"},
		{8, "dropped", "x", "", `operator 9 of layer, aten.silu, has no edit "dropped x"`, "no such kind"},
	} {
		w := edit.Written{Layer: "layer", Op: tt.op + 1, Kind: tt.kind, What: tt.what}
		e, err := w.Find(base, weights, nil, tt.op)
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.text, e.Text, tt.reason)
		a, err := base.Run(e.Patch)
		require.NoError(t, err, tt.reason)
		assert.NotEqual(t, base.Value(p.Out).Floats(), a.Floats(), tt.reason)
	}
}

// Weights come from the checkpoint; a small buffer, which it may lack, from what the reference had.
func TestOutside(t *testing.T) {
	folder := t.TempDir()
	f, err := os.Create(filepath.Join(folder, "program.safetensors"))
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, []tensor.Named{{Name: "buffer:m.bias", Tensor: tensorOf(t, 1, 2)}, {Name: "input:x", Tensor: tensorOf(t, 7)}}, nil))
	require.NoError(t, f.Close())
	file := filepath.Join(folder, "program.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"schema":1,"engine":"torch","case":"c","values":[
		{"id":0,"shape":[2],"dtype":"float32","from":{"weight":"m.bias","buffer":"buffer:m.bias"}},
		{"id":1,"shape":[2],"dtype":"float32","from":{"weight":"m.weight"}},
		{"id":2,"shape":[2],"dtype":"float32","from":{"op":0}},
		{"id":3,"shape":[2],"dtype":"float32","from":{"weight":"m.gone","buffer":"buffer:m.gone"}}],
		"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":"%1"},"out":["%2"],"layer":"m","call":1}],
		"passes":[{"step":"0","ops":[0,1],"ports":{"m-output":["%2",1,1]}}]}`), 0o600))
	p, err := program.Read(file)
	require.NoError(t, err)
	defer p.Close()
	none := func() (checkpoint.Weights, checkpoint.Config, error) { return nil, nil, nil }
	has := func() (checkpoint.Weights, checkpoint.Config, error) {
		return checkpoint.Weights{"m.bias": tensorOf(t, 5, 6), "m.weight": tensorOf(t, 3, 4)}, nil, nil
	}
	opened := 0
	once := piece.Evidence(func() (checkpoint.Weights, checkpoint.Config, error) { opened++; return nil, nil, assert.AnError }).Once()
	assert.Nil(t, piece.Evidence(nil).Once())
	values := append(p.Values, program.Value{Constant: "buffer:m.bias"}, program.Value{Input: "x"},
		program.Value{DType: tensor.F32, Shape: []int{1}, Data: []byte{0, 0, 128, 63}})
	for _, tt := range []struct {
		evidence piece.Evidence
		value    int
		want     []float64
		errs     []string
		reason   string
	}{
		{has, 0, []float64{5, 6}, nil, "the checkpoint has it"},
		{has, 1, []float64{3, 4}, nil, "a parameter"},
		{none, 0, []float64{1, 2}, nil, "what was kept of a buffer"},
		{none, 1, nil, []string{"its weights are not at hand"}, "of a parameter nothing is kept"},
		{has, 3, nil, []string{"m.gone", "nor is it a buffer of the program", "buffer:m.gone"}, "neither has it"},
		{has, 4, []float64{1, 2}, nil, "a constant"},
		{has, 5, []float64{7}, nil, "what the model was given"},
		{has, 6, []float64{1}, nil, "a number of the program"},
		{nil, 1, nil, []string{"its weights are not at hand"}, "no checkpoint"},
		{once, 1, nil, []string{assert.AnError.Error()}, "one that cannot be read"},
		{once, 0, []float64{1, 2}, nil, "and what was kept beside it"},
	} {
		load, done := tt.evidence.Outside(p)
		a, err := load(&values[tt.value])
		if done(); tt.want == nil {
			for _, text := range tt.errs {
				assert.ErrorContains(t, err, text, tt.reason)
			}
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, a.Floats(), tt.reason)
	}
	assert.Equal(t, 1, opened, "it is opened once")
}

func tensorOf(t *testing.T, x ...float64) *tensor.Tensor {
	t.Helper()
	of, err := tensor.Of(x, len(x))
	require.NoError(t, err)
	return of
}
