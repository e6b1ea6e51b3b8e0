// Package torchpt reads the tensors of files that torch.save wrote (.pt, .pth): the zip archive of
// torch 1.6 and later, and the flat file of earlier versions.
//
// The object in the file may be a tensor, a Parameter, a state dict, or any nesting of dict, list
// and tuple around tensors. The names of nested tensors are their keys and indices, joined by dots:
// "layers.0.weight". A tensor that is the whole file has the name "". Values that are not tensors
// (numbers, strings, None) are left out; a file without a tensor is an error.
//
// Tensors are views of the mapped file, with the strides, offsets and shared storages that were
// saved. Only records that another tool compressed are inflated into memory. The byteorder record
// says whether a file is big-endian. Checksums are verified of these alone, because torch can leave
// them out.
//
// The pickle in the file is read by an interpreter that knows only the constructors of tensors and
// plain containers: no code can run. Modules, classes, and sparse, quantised, nested and complex
// tensors are refused by name with [tensor.ErrUnsupported].
//
// The memory and time that a file can make the reader use are bounded. The limits are:
//
//	pickle             64 MiB, 4 Mi values, nesting of 1000
//	inflated records   1 GiB per file, or 16 times its size
//	names              1 Mi tensors, 64 MiB in all; 16 names for each value of the pickle on average,
//	                   since containers can be shared
//	expanded views     16 GiB of elements in a view larger than its storage
package torchpt
