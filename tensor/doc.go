// Package tensor holds one tensor: element type, shape, strides, and a read-only view of the bytes where they lie, usually
// in a mapped file. Nothing is copied or converted before it is compared.
//
// The formats are subpackages: [github.com/goparity/goparity/tensor/torchpt], maxckpt, safetensors and npy. Each has Open for a
// path and Decode for bytes in memory, and both give a [File].
//
// A row is everything at one index of all axes but the last: a token, usually.
package tensor
