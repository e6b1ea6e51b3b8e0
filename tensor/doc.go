// Package tensor describes one tensor: element type, shape, strides, and a read-only view of its
// bytes where they are, usually in a mapped file. Nothing is copied or converted before it is
// compared, but for packed weights, which are computed when they are read.
//
// Each file format is a subpackage: torchpt, maxckpt, safetensors, gguf, npy and raw. Open maps a
// file, Decode reads bytes in memory, and both return a [File].
//
// A row is everything at one index of all axes but the last, usually a token. Elements are numbered
// in row-major order, from 0.
package tensor
