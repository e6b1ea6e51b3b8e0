// Package dump opens what one run of an engine wrote: its tensors by layer and port, in execution
// order.
//
// A dump is a folder of files DIR/<step>/<layer>-<port>, in one of the [Formats], with
// DIR/run.json. A folder without run.json is also read: files directly in it are step 0, the order
// is that of tensor_names.txt or else the natural order of the names, and a name without a known
// port is a tap. A single file of named tensors is a dump as well.
//
// # Printed tensors
//
// Modular MAX has two styles, set with InferenceSession.set_debug_print_options:
//
//	label = tensor([[0.5000, 1.5000, 2.5000, ..., 5.5000, 6.5000, 7.5000],
//	[8.5000, 9.5000, 10.5000, ..., 13.5000, 14.5000, 15.5000]], dtype=f32, shape=[2,8])     COMPACT
//	label = tensor<2x3xf32> [5.000000e-01, 1.500000e+00, 2.500000e+00, …]                   FULL
//
// COMPACT prints four decimals whatever the magnitude. Of more than six columns, rows or matrices
// it prints the first and the last three; all axes but the last two count as one list of matrices.
// MAX cuts every number after 31 characters: COMPACT prints 3e38 as 31 digits, and it is unknown
// how many are missing. Such a value is not known.
//
// The output of torch, print(f"{label} = {tensor}"), is read if torch printed every element. If it
// printed a summary, the shape is unknown: the error says how to print the rest.
//
// Lines that do not begin like a tensor are skipped.
package dump
