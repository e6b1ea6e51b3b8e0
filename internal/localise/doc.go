// Package localise says where a candidate computes something other than the reference: it turns what
// replay found wrong (Fault) into a place (Verdict), by the trace of the reference's run.
//
// A fault is an entry of the trace whose piece of the reference's program makes something else of
// what the candidate had there; package internal/judge/piece finds them. Of each:
//
//	the recording is wrong, and not the model            → capture
//	an input of the model itself                         → input, in the innermost layer that takes it
//	an input of a layer                                  → between, in the container whose code made it
//	an output of a module that returns what it was given → between, in its container
//	an output of a container with recorded children      → between its last child and its end
//	an output of any other layer                         → local, in that layer
//	local or between, but right on the golden inputs     → interaction
//	judged by the golden, and no order of execution      → unordered
//
// The first fault in the order of execution is the place, all are the frontier, and what else differs
// has it from them (Verdict.Blame). A wrong recording is the place only where nothing else is wrong.
// Where what the piece is made of lies outside of the layer, the place is open: in that layer, or
// between it and the last one that is known to be right.
//
// What the runs say of themselves comes on top (Given): other prompts, weights that were not loaded,
// an execution path that is wrong where one pass is right. Where something fails and there is no
// fault, errors add up (Drift), and no layer is accused.
//
// Which tensor is which comes from bytes: records of one Same number hold equal bytes in the
// reference, so that one's output is the other's input. Where bytes do not tell, the order of
// execution does.
package localise
