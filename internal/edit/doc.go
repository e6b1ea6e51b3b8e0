// Package edit lists the small changes of a piece of the reference's program that may be what a candidate
// does: an operator left out, another one of its family, another number, axis, operand, order of elements.
// Each kind of change is one small rule in a file of its own, and none knows a model.
//
// An edit is a program, too: a few operators in the place of one. So replay needs to know nothing of edits.
package edit
