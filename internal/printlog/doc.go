// Package printlog reads the tensors that an engine printed into a log.
//
// Modular MAX has two styles, set with InferenceSession.set_debug_print_options:
//
//	label = tensor([[0.5000, 1.5000, 2.5000, ..., 5.5000, 6.5000, 7.5000],
//	[8.5000, 9.5000, 10.5000, ..., 13.5000, 14.5000, 15.5000]], dtype=f32, shape=[2,8])     COMPACT
//	label = tensor<2x3xf32> [5.000000e-01, 1.500000e+00, 2.500000e+00, …]                   FULL
//
// COMPACT prints four decimals whatever the magnitude, and of more than six columns, rows or
// matrices the first and last three; all axes but the last two count as one list of matrices. MAX
// cuts every number after 31 characters: what COMPACT prints of 3e38 is 31 digits, and how many are
// missing is lost. Such a value is left out of the record.
//
// The output of torch (print(f"{label} = {tensor}")) is read where torch printed every element.
// Where it printed a summary the shape is unknown, which is an error that says how to get the rest.
//
// Lines that do not begin like a tensor are skipped.
package printlog
