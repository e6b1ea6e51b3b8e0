// Package torchpt reads the tensors of files that torch.save wrote (.pt, .pth): the zip archive of
// torch 1.6 and later, and the flat file before it.
//
// The object in the file may be a tensor, a Parameter, a state dict, or any nesting of dict, list
// and tuple around tensors. The names of nested tensors are their keys and indices, joined by dots:
// "layers.0.weight". A tensor that is the whole file has the name "". Values that are not tensors
// (numbers, strings, None) are left out; a file without a tensor is an error.
//
// Tensors are views of the mapped file: strides, offsets and shared storages stay as they were
// saved. Only records that another tool compressed are inflated into memory. Big-endian files are
// read as their byteorder record says. Checksums of the archive are not verified: torch can switch
// them off.
//
// The pickle in the file is read by an interpreter of its own that knows the tensor constructors
// and plain containers and nothing else: no code can run. Modules, classes, sparse, quantised,
// nested and complex tensors are refused by name with [tensor.ErrUnsupported].
//
// A file cannot make the reader use memory or time without bound. The limits:
//
//	pickle             64 MiB, 4 Mi values, nesting of 1000
//	inflated records   1 GiB per file
//	names              1 Mi tensors, 64 MiB in all, 16 for each value of the pickle (containers can be shared)
//	expanded views     16 GiB of elements in a view larger than its storage
package torchpt
