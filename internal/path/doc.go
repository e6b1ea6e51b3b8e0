// Package path knows which token each row of a run is. An execution path is a list of forward
// passes (run.json: passes), and a forward pass feeds some tokens of some sequences.
//
// A [Sheet] is a run whose tensors have been laid out in one way: the rows of a forward pass one
// after the other, in the order of its items, without padding. [Sheet.From] puts the rows of other
// sheets, those of a golden of one pass, in the order in which a run fed them: a golden run with a
// step for each of its forward passes, beside which it can be judged like any other.
//
// Which axis of a tensor counts tokens is told by its shapes in all forward passes. Ports of which
// no axis does (attention weights, caches, masks) are left out by name.
package path
