// Package label owns the grammar of labels, the names under which an engine recorded its tensors:
//
//	label   = layer "-" port | layer          a label without a port is a tap, saved by hand
//	layer   = name [call]
//	name    = segment { "." segment }         model.layers.3.mlp
//	call    = "(" n ")"                       n ≥ 2: the layer's n-th call in one forward pass; the first has none
//	port    = role [ "_" word | "." word ]    input_0, input_hidden_states, output, output_1, output.0, computed_2, tap
//
// So "model.norm(2)-output.0" is element 0 of what model.norm returned when it was called a second
// time. The parent of a layer is the layer around it, of the same call. All functions are pure.
package label
