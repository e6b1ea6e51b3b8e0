package diagnose

import "strings"

// names are the last parts of module names that mean the same in the families of Hugging Face, diffusers and MAX.
type names string

func (n names) has(name string) bool { return strings.Contains(string(n), " "+name+" ") }

const (
	queryNames     names = " q_proj query to_q wq q q_lin query_proj add_q_proj wq_a q_b_proj linear_q "
	keyNames       names = " k_proj key to_k wk k k_lin key_proj add_k_proj linear_k "
	valueNames     names = " v_proj value to_v wv v v_lin value_proj add_v_proj linear_v "
	queryNormNames names = " q_norm query_norm norm_q q_layernorm norm_added_q "
	keyNormNames   names = " k_norm key_norm norm_k k_layernorm norm_added_k "
	fusedNames     names = " qkv qkv_proj c_attn Wqkv query_key_value in_proj to_qkv attn_qkv W_pack to_added_qkv "
	gateNames      names = " gate_proj w1 gate gate_lin wi_0 linear_fc1_gate "
	upNames        names = " up_proj w3 up up_lin wi_1 "
	fusedGateNames names = " gate_up_proj gate_up w13 dense_h_to_4h_gated "
	tableNames     names = " embed_tokens wte word_embeddings token_embedding tok_embeddings embeddings shared position_embeddings wpe token_type_embeddings embed_positions "
	positionNames  names = " position_embeddings wpe embed_positions "
	typeNames      names = " token_type_embeddings "
	headNames      names = " lm_head output embed_out decoder score "
)

// qkvRole is 'q', 'k' or 'v' for a projection, 0 for other layers.
func qkvRole(name string) byte {
	switch {
	case queryNames.has(name):
		return 'q'
	case keyNames.has(name):
		return 'k'
	case valueNames.has(name):
		return 'v'
	}
	return 0
}

// tableID names what is wrong if a table of this name is read wrongly.
func tableID(name string) string {
	switch {
	case positionNames.has(name):
		return "embedding/position"
	case typeNames.has(name):
		return "embedding/type"
	}
	return "embedding/index"
}

func lastPart(label string) string { return label[strings.LastIndexByte(label, '.')+1:] }

func parentOf(label string) string { return label[:max(strings.LastIndexByte(label, '.'), 0)] }

func sameParent(a, b string) bool { return parentOf(a) == parentOf(b) }

// moduleOf is a weight's key without its last part.
func moduleOf(key string) string { return parentOf(key) }
