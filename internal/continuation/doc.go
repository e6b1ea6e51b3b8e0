// Package continuation judges runs of a generation: an engine that was forced along the reference's
// greedy text, token by token or in one pass, beside the reference.
//
// A [Side] is one of the two, whatever wrote it: a dump, a golden that keeps the largest logits alone,
// or the JSON of another tool. [Compare] puts their rows of logits to the tokens that they decide,
// package generation judges these, and where a token or its logits are wrong package judge says which
// layer is the first, in which forward pass.
package continuation
