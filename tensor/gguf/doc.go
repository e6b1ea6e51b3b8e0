// Package gguf reads the .gguf files of ggml and llama.cpp, versions 2 and 3. Quantised weights are
// dequantised when they are read, with the results of gguf-py, bit for bit.
//
// All numbers are little-endian, unless the version is stored the other way round: then the numbers
// of the file are big-endian, and only tensors that are not quantised can be read.
//
//	offset  type      meaning
//	0       4 bytes   magic "GGUF"
//	4       u32       version
//	8       u64       number of tensors
//	16      u64       number of keys
//	24      key…      string, u32 type, value
//	        tensor…   string, u32 rank, rank·u64 sizes (innermost first), u32 type, u64 offset of the blocks
//	        bytes     blocks of the tensors, from the next multiple of general.alignment (32) on
//
// A string is a u64 and so many bytes. A value is a number, a bool of a byte, a string, or a list:
// u32 type, u64 length, values. Blocks begin at multiples of the alignment and do not overlap.
//
// Metadata has the keys: numbers and bools as Go writes them, lists as "string[32000]".
package gguf
