// Package trace is the dataflow of a reference's run, as its recorded tensors tell it: which value
// existed when, which layer ran inside which, and which output became which input.
//
// An [Event] is one recorded tensor at the time when its value existed. A layer is recorded after
// it ran, its inputs together with its outputs; but it had its inputs before anything inside it
// ran, so that is where they stand. Which tensor is which is told by bytes (see [Identity]): an
// input that holds the bytes of an earlier output is that output.
//
// A trace is made once for a comparison; package localise walks along it, package diagnose
// calculates on it.
package trace
