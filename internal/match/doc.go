// Package match finds out which layer and port of one run is which of the other, and how the two lie
// onto each other. [Runs] pairs, by labels, ports, dtypes, shapes and order: it reads no tensor bytes.
// [Propose] searches by the values, too, and in the order of execution, and writes what Runs would not
// join as rules. Both pair the layers of which each is the other's best choice by a margin.
//
// # Layers
//
// Layers are joined by their labels in rounds, the surest first, as far as they have no partner yet:
//
//   - rules: what the fixture says under names.
//   - equal labels: model.lm_head = model.lm_head.
//   - prefixes: case, underscores and the word layers before a number do not count, and wrapper words
//     are dropped, as few as needed: model.model.layers.layers.0.layer_norm = model.layers.0.LayerNorm;
//     then an unknown word in front of one side's layers, which most layers agree on and no shape
//     contradicts: model.mymodel.encoder.layer.0 = model.encoder.layer.0.
//   - roots: labels of wrapper words only (model, model.model, model.language_model). Equal labels go
//     first, then the outermost, and those whose outputs fit before those whose do not.
//   - fused: q_proj, k_proj and v_proj are a group, which has the place of a qkv_proj in the rounds
//     above; so are gate_proj and up_proj.
//
// In a round two layers are joined if each is the only choice of the other. Where there are several,
// those count whose outputs fit. If that does not leave one, the names are ambiguous, which is an
// error: no pairing is guessed.
//
// # Ports
//
// The ports of two joined layers are paired in each forward pass and call that both sides made:
//
//   - outputs by their name, the first one whatever it is called.
//   - inputs by their name, then by dtype and shape in the order of their positions, then masks.
//   - what a candidate had computed for an input before it was replaced, as that input.
//
// Package layout says how the shapes of a pair lie onto each other. The last row alone is accepted
// at the end of a generating model: after the last joined layer that has all rows.
//
// What has no partner is listed with a reason where one is known, and the layers without partner and
// reason as gaps.
//
// # Proposals
//
// By value: two outputs that hold the same numbers, up to the noise of their type, are the same tensor,
// whatever they are called and in whichever order they were recorded. Values are compared by samples
// ([maxSample] elements), found by random projections and confirmed element by element. Where
// several layers hold one value (a projection, the dropout after it and the module around both),
// their inputs, what lies inside them and their names tell which is which.
//
// By pattern: what was found is generalised over numbers: h.0.attn = L0_attention and h.1.attn =
// L1_attention are one pattern, which each pair of blocks votes for. A pattern that holds in one block
// is taken for all, also after an error of the candidate, where no value agrees. Blocks may be
// counted from another number.
//
// By order: what is left is aligned in the order of execution, between what is known, by shape: for
// an error in the first block. A pair is proposed only if no other alignment is nearly as good and if
// neither side's value is elsewhere in the other run. Layers that were given the same, as q, k and v,
// are not told apart by the order alone. Without an order, names and shapes must do.
//
// Nothing is proposed for runs of two models: some values must agree, or be alike, that hold
// something of the model itself and no table of positions.
package match
