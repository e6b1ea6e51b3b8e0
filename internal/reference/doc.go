// Package reference finds the program that the reference ran (package program) beside a golden, and
// refuses one that is damaged or of another run. Without a golden it makes one of the program and the
// candidate's own tensors.
package reference
