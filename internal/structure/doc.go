// Package structure says what shape an error has: rows from k on, every n-th row, one token,
// columns from k on, one head, one block. It names facts of two tensors, not causes, and is silent
// where the parts that are wrong and those that are right are not clearly apart.
//
// A row or column is wrong if its relative L2 (see [compare.Row]) is above the floor, or a NaN or
// infinity of it has no match. A place is named only if something is right, and the least wrong
// line is at least four times as far off as the worst right one.
package structure
