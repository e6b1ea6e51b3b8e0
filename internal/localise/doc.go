// Package localise says where a candidate computes something other than the reference: it turns what
// replay found wrong (Fault) into a place (Verdict), by the dataflow of the reference's run (Flow).
//
// An [Event] is one recorded tensor at the time when its value existed. A layer is recorded after
// it ran, its inputs together with its outputs; but it had its inputs before anything inside it
// ran, so that is where they stand. Which tensor is which is told by bytes: an input that holds the
// bytes of an earlier output is that output. Where bytes do not tell, the order of execution does.
//
// A fault is an entry of the flow whose piece of the reference's program makes something else of
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
// between it and the last one that is known to be right. Where something fails and there is no
// fault, errors add up (Drift), and no layer is accused.
package localise
