// Package names proposes rules that join two runs whose layers have names of their own.
//
// # By value
//
// Two outputs that hold the same numbers, up to the noise of their type, are the same tensor,
// whatever they are called and in whichever order they were recorded. Values are compared by samples
// ([maxSample] elements), found by random projections and confirmed element by element. Where
// several layers hold one value (a projection, the dropout behind it and the module around both),
// their inputs, what lies inside them and their names tell which is which.
//
// # By pattern
//
// What was found is generalised over numbers: h.0.attn = L0_attention and h.1.attn = L1_attention
// are one pattern, which each pair of blocks votes for. A pattern that holds in one block is taken
// for all, also behind an error of the candidate, where no value agrees. Blocks may be counted from
// another number.
//
// # By order
//
// What is left is aligned in the order of execution, between what is known, by shape: for an error
// in the first block. A pair is proposed only if no other alignment is nearly as good, if neither
// side's value is elsewhere in the other run, and if both were given the outputs of layers that are
// a pair. Layers that were given the same, as q, k and v, are not told apart by the order alone.
// Without an order, names and shapes must do.
//
// Nothing is proposed for runs of two models: some values must agree, or be alike, that hold
// something of the model itself and no table of positions.
package names
