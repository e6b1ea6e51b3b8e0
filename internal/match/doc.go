// Package match finds out which layer and port of one run is which of the other, and how the two lie
// onto each other. It reads no tensor bytes: only labels, ports, dtypes, shapes and order.
//
// # Layers
//
// Layers are joined by their labels in rounds, the surest first. Each round compares the layers that
// have no partner yet in one form of their labels:
//
//   - rules: what the fixture says under names.
//   - equal labels: model.lm_head = model.lm_head.
//   - normal form: case and underscores are folded, and lists that an engine doubles are undone:
//     model.layers.layers.0.layer_norm = model.layers.0.LayerNorm; then a list may have any name.
//   - roots: labels of wrapper words only (model, model.model, model.language_model). Equal labels go
//     first, then the outermost, and those whose outputs fit before those whose do not.
//   - wrappers dropped: model.model.layers.0 = model.layers.0, as few words as needed.
//   - learned prefixes: an unknown word in front of one side's layers, which most layers agree on
//     and no shape contradicts: model.mymodel.encoder.layer.0 = model.encoder.layer.0.
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
// at the end of a generating model: behind the last joined layer that has all rows.
//
// What has no partner is listed with a reason where one is known, and the layers without partner and
// reason as gaps. Package names proposes rules for them.
package match
