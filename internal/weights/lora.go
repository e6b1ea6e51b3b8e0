package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor/safetensors"
)

// The files of an adapter, as the package peft writes them.
const (
	adapterFile   = "adapter_model.safetensors"
	adapterConfig = "adapter_config.json"
)

// Adapter is a LoRA: to some weights W of a model it adds s·B·A, of low rank.
type Adapter struct {
	Path  string
	pairs map[string]*lowRank // by the name of the weight
}

// lowRank is s·B·A, with A [r, in] and B [out, r].
type lowRank struct {
	a, b     []float64
	rank, in int
	scale    float64
}

// OpenAdapter reads the folder of an adapter. The error is for one without its files, or that is not
// LoRA.
func OpenAdapter(dir string) (a *Adapter, err error) {
	path, file := filepath.Join(dir, adapterConfig), filepath.Join(dir, adapterFile)
	data, err := mapfile.Read(path, mapfile.MaxConfig)
	if err != nil {
		return nil, err
	}
	var config struct {
		Alpha  *float64       `json:"lora_alpha"`
		Type   string         `json:"peft_type"`
		Rank   bool           `json:"use_rslora"`
		Alphas map[string]any `json:"alpha_pattern"`
		Turned bool           `json:"fan_in_fan_out"`
		DoRA   bool           `json:"use_dora"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: want a JSON object, as peft writes it: %w", path, err)
	}
	switch {
	case config.Type != "" && config.Type != "LORA" || config.DoRA || config.Turned || len(config.Alphas) > 0:
		return nil, fmt.Errorf("%s: only LoRA is read, without use_dora, fan_in_fan_out and alpha_pattern", path)
	case config.Alpha == nil:
		return nil, fmt.Errorf("%s: it has no lora_alpha", path)
	}
	f, err := safetensors.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	a = &Adapter{Path: dir, pairs: map[string]*lowRank{}}
	for _, t := range f.Tensors {
		base, ok := strings.CutSuffix(t.Name, ".lora_A.weight")
		if !ok {
			continue
		}
		b, ok := f.Lookup(base + ".lora_B.weight")
		if !ok || len(t.Tensor.Shape()) != 2 || len(b.Shape()) != 2 || b.RowLen() != t.Tensor.Shape()[0] {
			return nil, fmt.Errorf("%s: %s: want lora_A [r, in] and lora_B [out, r]", file, base)
		}
		scale := *config.Alpha / float64(b.RowLen())
		if config.Rank {
			scale = *config.Alpha / math.Sqrt(float64(b.RowLen()))
		}
		l := &lowRank{numbers(t.Tensor, t.Tensor.Len()), numbers(b, b.Len()), b.RowLen(), t.Tensor.RowLen(), scale}
		a.pairs[strings.TrimPrefix(base, "base_model.model.")+".weight"] = l
	}
	if len(a.pairs) == 0 {
		return nil, fmt.Errorf("%s: no lora_A and lora_B", file)
	}
	return a, nil
}

// FindAdapter opens the adapter in the folder of a model; nil if there is none.
func FindAdapter(paths ...string) (*Adapter, error) {
	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(path, adapterConfig)); err == nil {
			return OpenAdapter(path)
		}
	}
	return nil, nil
}

// of returns what is added to a weight; nil for nothing. Names may lack the first modules.
func (a *Adapter) of(name string) *lowRank {
	if a == nil {
		return nil
	}
	return a.pairs[checkpoint.KeyOf(a.pairs, name)]
}

// adapted judges a pair by the adapter: the candidate must have it. It reports whether it has said
// what there is to say.
func (c *comparison) adapted(p *pair) bool {
	name, _, _ := strings.Cut(p.ref.name, "[") // without the part of it that is meant
	l := c.Adapter.of(name)
	if l == nil || p.packed() || len(p.trials) == 0 || p.trials[0].steps != nil ||
		p.ref.t.RowLen() != l.in || p.ref.t.Len() != l.in*len(l.b)/l.rank {
		return false
	}
	switch r := &p.result; {
	case l.matches(p, 1):
		r.Status, r.Steps = Step, append(slices.Clone(p.by), "LoRA merged")
	case l.matches(p, 0):
		r.Status, r.Cause = Differs, causeLoRA
		r.Detail = fmt.Sprintf("it is without the adapter: %.4g·B·A of rank %d was not added", l.scale, l.rank)
	default:
		return false
	}
	return true
}

// matches reports whether the candidate is the reference plus by times s·B·A, rounded to its type:
// of each row as near as the rounding of its largest element.
func (l *lowRank) matches(p *pair, by float64) bool {
	eps := mergeUlps * math.Max(p.ref.t.DType().Epsilon(), p.cand.t.DType().Epsilon())
	w, c := make([]float64, l.in), make([]float64, l.in)
	for i := range len(l.b) / l.rank {
		p.ref.t.Float64s(w, i*l.in)
		p.cand.t.Float64s(c, i*l.in)
		for k := range l.rank {
			floats.AddScaled(w, by*l.scale*l.b[i*l.rank+k], l.a[k*l.in:(k+1)*l.in])
		}
		if metricsOf(vector(w), vector(c), compare.Tolerance{Atol: eps * floats.Norm(w, math.Inf(1))}).Mismatches > 0 {
			return false
		}
	}
	return true
}

// rankOf is the rank of the difference of a pair in which nearly all elements differ, if it is low; 0
// if it is not. A few random products with the difference D tell: D·Ω has the rank of D.
func rankOf(p *pair, f *metrics) int {
	t := p.cand.t
	if p.packed() || len(t.Shape()) != 2 || p.best.calc != nil ||
		2*f.Mismatches < f.N || f.N > mostSketched || f.seen.BadNonFinite > 0 {
		return 0
	}
	rows, in := t.Shape()[0], t.RowLen()
	k := min(sketch, min(rows, in)/2)
	if k < 4 {
		return 0
	}
	laid := shaped(p.best.ref, t.Shape())
	rng := rand.New(rand.NewPCG(1, 2))
	omega := mat.NewDense(in, k, vec.Map(make([]float64, in*k), func(float64) float64 { return rng.NormFloat64() }))
	gram, y := mat.NewSymDense(k, nil), mat.NewVecDense(k, nil)
	a, b := make([]float64, in), make([]float64, in)
	for i := range rows {
		laid.Float64s(a, i*in)
		t.Float64s(b, i*in)
		y.MulVec(omega.T(), mat.NewVecDense(in, vec.Minus(b, a)))
		gram.SymRankOne(gram, 1, y)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(gram, false) {
		return 0
	}
	values := eigen.Values(nil) // ascending: squares of the singular values
	slices.Reverse(values)
	best, at := 0.0, 0
	for i := range values[:k-2] {
		if gap := values[i] / math.Max(values[i+1], 1e-18*values[0]); gap > best {
			best, at = gap, i+1
		}
	}
	all := floats.Sum(vec.Map(values, func(v float64) float64 { return math.Max(v, 0) }))
	if best < leastGap || floats.Sum(values[:at]) < 0.9*all || 2*at > k {
		return 0
	}
	return at
}
