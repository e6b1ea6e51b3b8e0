// Package maxckpt reads and writes the .max files of Modular MAX, which its print ops write in the
// style BINARY_MAX_CHECKPOINT, with one tensor in each file.
//
// All numbers are little-endian.
//
//	offset    type      meaning
//	0         8 bytes   magic 93 F0 9F 94 A5 2B 2B 93
//	8         u32       major version, 0
//	12        u32       minor version, 1 in MAX 26.7
//	16        u64       size of the metadata, which begins at 24: 4 + k + 2 + 4·rank + 8
//	24        u32       k, the size of the name
//	28        k bytes   name of the tensor, UTF-8
//	28+k      u8        dtype, a value of max.dtype.DType
//	29+k      u8        rank
//	30+k      rank·u32  shape
//	30+k+4r   u64       offset of the elements from the start of the file
//
// The elements are in row-major order, at any offset after the metadata, and fill the rest of the
// file. Nothing is aligned.
package maxckpt
