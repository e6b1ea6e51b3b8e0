// Package dump opens what one run of an engine wrote: tensors by layer and port, in execution
// order.
//
// The folder has DIR/<step>/<layer>-<port>, in one of the [Formats], and DIR/run.json. Without
// run.json it is read, too: a flat folder is step 0, the order is that of tensor_names.txt or else
// the natural order of the names, and a name without a known port is a tap. One file that holds
// named tensors is a dump as well.
package dump
