// Package localise finds the first place at which a candidate computes something other than the
// reference, from the results of all matched ports of the standard run and, where there is one, of
// the run on golden inputs.
//
// A port agrees if its worst row is within the noise floor (compare.Floor), which is not the
// tolerance that decides pass or fail. The ports are visited in the order in which the reference
// had them: the inputs of a layer before everything inside it, its outputs after. The first one
// that disagrees tells the place:
//
//	an input of the whole model                              → input
//	an output that agrees wherever it is used afterwards     → capture, and the next one is looked at
//	no more error than came in, or every block rounds alike  → drift
//	one of several, and no order of execution is known       → unordered
//	an output of a layer without matched children            → local, in that layer
//	an output of a container, children agreeing              → between the last child and the container's end
//	an input of any other layer                              → between the last agreeing output before it and this layer
//	local or between, but right on the golden inputs         → interaction
//
// What came in is the largest error of the inputs, relative to their rows. Where large terms cancel
// that is too little: a layer with one input is then asked for its excess, row by row (Run.Excess),
// and one that makes no more of its input's error than its gain and rounding do is not accused.
//
// Which tensor is which comes from bytes: records of one Same number hold equal bytes in the
// reference, so that one's output is the other's input. Where bytes do not tell, the order of
// execution does.
package localise
