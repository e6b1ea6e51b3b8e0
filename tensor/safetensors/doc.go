// Package safetensors reads and writes .safetensors files: a JSON header and one buffer of raw
// little-endian tensors.
//
//	offset  type     meaning
//	0       u64      N, the size of the header, little-endian, at most 100,000,000
//	8       N bytes  {"__metadata__":{"key":"value",…},
//	                 "name":{"dtype":"F32","shape":[2,3],"data_offsets":[from,to]},…}, spaces at the end
//	8+N     bytes    the buffer; data_offsets count from here
//
// Read is what the format allows and nothing else: no key twice, no hole, no overlap, no byte of
// the buffer without a tensor. The types F4, F6_E2M3, F6_E3M2 and C64 exist, but cannot be
// compared; a file that holds one is refused as a whole, with its name.
package safetensors
