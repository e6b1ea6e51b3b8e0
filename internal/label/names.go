package label

import (
	"slices"
	"strings"
	"unicode"
)

// Names are the last parts of labels that mean the same, in the families of Hugging Face, diffusers
// and MAX.
type Names []string

func names(s string) Names { return strings.Fields(s) }

// Projections. The i-th names of [QueryNames], [KeyNames] and [ValueNames], and those of [GateNames]
// and [UpNames], belong to one family of models; names after the end of the shortest list have no
// counterpart.
var (
	QueryNames = names("q_proj query to_q wq q q_lin query_proj linear_q add_q_proj wq_a q_b_proj")
	KeyNames   = names("k_proj key   to_k wk k k_lin key_proj   linear_k add_k_proj")
	ValueNames = names("v_proj value to_v wv v v_lin value_proj linear_v add_v_proj")
	GateNames  = names("gate_proj w1 gate gate_lin wi_0 linear_fc1_gate")
	UpNames    = names("up_proj   w3 up   up_lin   wi_1")
)

// Projections that are computed in one matrix product. In the stacked ones the columns of the parts
// follow one another; in others, as query_key_value, they go by head.
var (
	StackedQKV    = names("qkv qkv_proj c_attn Wqkv in_proj to_qkv qkv_linear qkv_lin")
	FusedQKV      = slices.Concat(StackedQKV, names("query_key_value attn_qkv W_pack to_added_qkv"))
	StackedGateUp = names("gate_up_proj gate_up w13 gate_and_up_proj")
	FusedGateUp   = slices.Concat(StackedGateUp, names("dense_h_to_4h_gated"))
)

// The names of other modules.
var (
	PositionTables = names("position_embeddings position_embedding wpe embed_positions")
	TypeTables     = names("token_type_embeddings")
	Tables         = slices.Concat(PositionTables, TypeTables,
		names("embed_tokens wte word_embeddings token_embedding tok_embeddings embeddings shared"))
	TextHeads = names("lm_head embed_out") // of models that generate text
)

// Has reports whether the last part of a label is one of the names.
func (n Names) Has(layer string) bool { return slices.Contains(n, Last(layer)) }

// Folded returns the names in the form of [Fold].
func (n Names) Folded() []string {
	out := make([]string, len(n))
	for i, name := range n {
		out[i] = Fold(name)
	}
	return out
}

// Fold drops case and underscores, in which engines differ; a segment of underscores only stays.
func Fold(segment string) string {
	if f := strings.ReplaceAll(strings.ToLower(segment), "_", ""); f != "" {
		return f
	}
	return segment
}

// QKV returns 'q', 'k' or 'v' for a projection, 0 for other layers.
func QKV(layer string) byte {
	for i, n := range []Names{QueryNames, KeyNames, ValueNames} {
		if n.Has(layer) {
			return "qkv"[i]
		}
	}
	return 0
}

// heads are names of what makes logits, in Hugging Face, MAX, llama.cpp and elsewhere.
var heads = slices.Concat(TextHeads, names("output_layer result_output score classifier"))

// IsLogits reports whether an output is logits by its name.
func IsLogits(layer, port string) bool {
	last := Last(layer)
	return strings.Contains(port, "logits") || strings.Contains(last, "logits") || slices.Contains(heads, last)
}

// LogitsRank says how surely a name is that of logits: 2, or 1 for what a model returns, else 0.
func LogitsRank(layer, port string) int {
	name := Name(layer)
	switch {
	case IsLogits(layer, port) || slices.Contains([]string{"head", "output"}, Last(name)):
		return 2
	case name == "model" || name == "":
		return 1
	}
	return 0
}

// IsNorm reports whether a layer is a norm by its name.
func IsNorm(layer string) bool {
	name := strings.ToLower(Last(layer))
	return strings.Contains(name, "norm") || strings.HasPrefix(name, "ln_") || name == "ln"
}

// InAttention reports whether a label lies in an attention.
func InAttention(layer string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToLower(layer), "."), func(part string) bool {
		return strings.Contains(part, "attn") ||
			strings.Contains(part, "attention") && !strings.Contains(part, "norm")
	})
}

// Routed reports whether a label is that of a router of experts, or lies in experts.
func Routed(layer string) bool {
	return names("gate router").Has(layer) || slices.ContainsFunc(strings.Split(Name(layer), "."), func(part string) bool {
		return part == "experts"
	})
}

// IsTimeEmbedding reports whether a label is that of the embedding of a diffusion model's time.
func IsTimeEmbedding(layer string) bool {
	return slices.ContainsFunc(strings.Split(layer, "."), func(part string) bool {
		return strings.HasPrefix(part, "t_embed") || strings.HasPrefix(part, "time")
	})
}

// maxCompared is the most characters of a name that are compared: of a longer one, the end.
const maxCompared = 200

// Nearest returns the candidate that was most likely meant by name. ok is false if none is near,
// that is, if more than two characters and more than a third of them would have to change, or all
// of them. Changes are insertions, deletions, substitutions and exchanges of neighbours; case,
// dashes and underscores do not count. A dotted candidate may be named by its end:
// "layer.3.atention" is near "model.layer.3.attention". Of equally near candidates the first wins.
func Nearest(name string, candidates []string) (string, bool) {
	want := fold(name)
	return nearest(want, candidates, max(2, len(want)/3))
}

// Slip is Nearest for a name that may be unknown on purpose: it allows a third of the characters to
// change, but at least one.
func Slip(name string, candidates []string) (string, bool) {
	want := fold(name)
	return nearest(want, candidates, max(1, len(want)/3))
}

func nearest(want []rune, candidates []string, limit int) (string, bool) {
	limit = min(limit, len(want)-1)
	best, found := "", false
	for _, c := range candidates {
		if d := near(want, fold(c), limit); d <= limit {
			best, found = c, true
			if d == 0 {
				break
			}
			limit = d - 1
		}
	}
	return best, found
}

// near returns the distance to the candidate, or to its end with as many segments as want has. A
// result above limit is not exact.
func near(want, candidate []rune, limit int) int {
	d := distance(want, candidate, limit)
	dots := strings.Count(string(want), ".")
	for i := len(candidate) - 1; i >= 0; i-- {
		if candidate[i] != '.' {
			continue
		}
		if dots--; dots < 0 {
			return min(d, distance(want, candidate[i+1:], limit))
		}
	}
	return d
}

func fold(s string) []rune {
	var out []rune
	for _, r := range s {
		if r != '_' && r != '-' {
			out = append(out, unicode.ToLower(r))
		}
	}
	return out[max(0, len(out)-maxCompared):]
}

// distance is the optimal string alignment distance. A result above limit is not exact.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
