// Package module knows what layers are by their names: which last segments of labels mean the same
// in the model families of Hugging Face, diffusers and MAX.
package module

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Names are the last segments of labels that mean the same.
type Names []string

func names(s string) Names { return strings.Fields(s) }

// Has reports whether a layer is called by one of the names, as it is written.
func (n Names) Has(layer string) bool { return slices.Contains(n, label.Last(layer)) }

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

// Projections. The i-th names of [Query], [Key] and [Value], and those of [Gate] and [Up], belong
// to one family.
var (
	Query = names("q_proj query to_q q_lin q wq query_proj linear_q")
	Key   = names("k_proj key   to_k k_lin k wk key_proj   linear_k")
	Value = names("v_proj value to_v v_lin v wv value_proj linear_v")
	Gate  = names("gate_proj gate w1")
	Up    = names("up_proj   up   w3")
)

// Projections that are computed in one matrix product, the columns of the parts one after the
// other. Those whose columns go by head, as query_key_value's, are not among them.
var (
	StackedQKV    = names("qkv_proj qkv wqkv c_attn in_proj to_qkv qkv_linear qkv_lin")
	StackedGateUp = names("gate_up_proj gate_up w13 gate_and_up_proj")
)

// TextHead are the heads of models that generate text.
var TextHead = names("lm_head embed_out")
