// Package match lays the names and layouts of one run onto the other: which port of the candidate is which port of the golden run, and
// how its bytes must be viewed so that the two can be compared. It reads no tensor bytes: only labels, ports, dtypes, shapes, order.
//
// Names are joined in rounds, the surest first:
//
//	rules             what the fixture says
//	equal labels      model.lm_head = model.lm_head
//	normal form       case and underscores folded, LayerList doubling undone: model.layers.layers.0.layer_norm = model.layers.0.LayerNorm
//	roots             labels of wrapper words only (model, model.model, model.language_model), outermost first, if their outputs fit
//	wrappers dropped  model.model.layers.0 = model.layers.0, as few words as needed
//	learned wrappers  an unknown word that stands before all of one side's layers, if the shapes agree
//	fused             qkv_proj against q_proj, k_proj, v_proj; gate_up_proj against gate_proj, up_proj
//
// Then the ports of each joined layer are paired: outputs by their name, the first one whatever it is called; inputs by name, then by
// dtype and shape in order. What fits no port is listed with a reason where one is known, and never paired by guess.
package match
