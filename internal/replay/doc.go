// Package replay runs pieces of a recorded program on tensors in memory. Operators have the names of
// torch's schemas. Elements are calculated in float64 and rounded to float32 and then to the recorded
// type, products in float32, as the reference's kernels do; [Mode] says how else.
package replay
