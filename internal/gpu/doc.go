// Package gpu knows what device a candidate can run on: the drivers of NVIDIA and AMD, and which
// encodings of Modular MAX a device has. What only a GPU can show is behind Driver.
package gpu
