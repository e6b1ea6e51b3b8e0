// Package program is what a reference ran between its recorded tensors: a graph of functional tensor
// operators, by the names of torch's schemas, over all forward passes of a case. No weight's bytes are
// in it. [Read] reads the file that the recorder of the torch runner writes, and [Program.Piece] cuts
// the operators between a recorded tensor and those before it. Package replay runs them.
package program
