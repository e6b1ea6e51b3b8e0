// Package dump opens what one run of an engine wrote: its tensors by layer and port, in execution
// order.
//
// A dump is a folder of files DIR/<step>/<layer>-<port>, in one of the [Formats], with
// DIR/run.json. A folder without run.json is also read: files directly in it are step 0, the order
// is that of tensor_names.txt or else the natural order of the names, and a name without a known
// port is a tap. A single file of named tensors is a dump as well.
package dump
