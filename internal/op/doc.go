// Package op is the arithmetic of models on slices of float64: activations, norms, linear layers,
// rotary embeddings, masks, attention, modulation, quantised weights, narrow types.
//
// It knows no layers, no labels and no causes. A tensor is its elements in row-major order and the
// width of its rows. An operation is a value whose fields say how it is done, so that a mistake is
// a copy with another field:
//
//	wrong := norm
//	wrong.Eps = 1e-5
//	y := wrong.Of(x)
//
// Operations return nil for an input of nil, and where shapes do not go together.
package op
