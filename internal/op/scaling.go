package op

import (
	"cmp"
	"math"
)

// RopeScaling is the rope_scaling of a config.json.
type RopeScaling struct {
	Kind      string  // "linear", "llama3", "yarn", "longrope" or "dynamic"
	Factor    float64 // by which a context is longer than the original one
	Low, High float64 // low_freq_factor, high_freq_factor
	Original  float64 // original_max_position_embeddings
	Context   float64 // max_position_embeddings
	Length    float64 // tokens of the run: longrope and dynamic depend on it

	Fast, Slow     float64 // beta_fast, beta_slow of YaRN; 0 for 32 and 1
	Untruncated    bool    // truncate is false
	Attention      float64 // attention_factor; 0 if it follows from the others
	Mscale, AllDim float64 // mscale, mscale_all_dim; 0 for none
	Short, Long    []float64
}

// Frequencies returns scaled frequencies; nil for another kind than
//
//	linear    f / factor
//	llama3    f / factor for wavelengths (2π/f) over original/low, f for those under original/high,
//	          between them (1−s)·f/factor + s·f with s = (original/wavelength − low) / (high − low)
//	yarn      f / factor for pairs that turn less than slow times in the original context, f for those
//	          that turn more than fast times, a linear mixture between them (arXiv 2309.00071)
//	longrope  f / short, or f / long for runs longer than the original context (arXiv 2402.13753)
//	dynamic   those of a theta that grows with the length of the run
//
// as transformers calculates them (modeling_rope_utils.py).
func (s RopeScaling) Frequencies(theta float64, dim int) []float64 {
	f := Frequencies(theta, dim)
	if s.Kind == "longrope" || s.Kind == "su" {
		by := s.Short
		if s.Length > s.Original {
			by = s.Long
		}
		if len(by) != len(f) {
			return nil
		}
		for i := range f {
			f[i] /= by[i]
		}
		return f
	}
	if !(s.Factor > 0) {
		return nil
	}
	switch {
	case s.Kind == "linear":
		return Map(f, func(f float64) float64 { return f / s.Factor })
	case s.Kind == "llama3" && s.Original > 0 && s.Low > 0 && s.High > s.Low:
		return Map(f, func(f float64) float64 {
			share := (s.Original*f/(2*math.Pi) - s.Low) / (s.High - s.Low)
			share = min(max(share, 0), 1)
			return (1-share)*f/s.Factor + share*f
		})
	case s.Kind == "yarn":
		return s.yarn(theta, dim, f)
	case s.Kind == "dynamic" && s.Context > 0 && dim > 2:
		n := max(s.Length, s.Context)
		return Frequencies(theta*math.Pow(s.Factor*n/s.Context-(s.Factor-1), float64(dim)/float64(dim-2)), dim)
	}
	return nil
}

func (s RopeScaling) yarn(theta float64, dim int, f []float64) []float64 {
	original := cmp.Or(s.Original, s.Context)
	if original <= 0 {
		return nil
	}
	pair := func(turns float64) float64 {
		return float64(dim) * math.Log(original/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high := pair(cmp.Or(s.Fast, 32)), pair(cmp.Or(s.Slow, 1))
	if !s.Untruncated {
		low, high = math.Floor(low), math.Ceil(high)
	}
	if low, high = max(low, 0), min(high, float64(dim-1)); low == high {
		high += 0.001
	}
	for i := range f {
		scaled := min(max((float64(i)-low)/(high-low), 0), 1)
		f[i] *= 1 - scaled + scaled/s.Factor
	}
	return f
}

// Mscale is by how much YaRN scales, 0.1·mscale·ln factor + 1.
func Mscale(factor, mscale float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*mscale*math.Log(factor) + 1
}

// Size is the factor of cosine and sine.
func (s RopeScaling) Size() float64 {
	switch {
	case s.Attention > 0:
		return s.Attention
	case s.Kind == "yarn" && s.Mscale > 0 && s.AllDim > 0:
		return Mscale(s.Factor, s.Mscale) / Mscale(s.Factor, s.AllDim)
	case s.Kind == "yarn":
		return Mscale(s.Factor, 1)
	case s.Kind == "longrope" || s.Kind == "su":
		factor := s.Factor
		if s.Original > 0 && s.Context > 0 {
			factor = s.Context / s.Original
		}
		if factor > 1 && s.Original > 1 {
			return math.Sqrt(1 + math.Log(factor)/math.Log(s.Original))
		}
	}
	return 1
}
