// Package layout finds how two tensors of one meaning lie onto each other: with and without a batch
// axis, sequences padded or one after the other, all rows or the last. It goes by shapes; a [View]
// then looks at the bytes in the shape that both sides have.
package layout
