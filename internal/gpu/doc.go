// Package gpu finds the device that a candidate can run on: it asks the drivers of NVIDIA and AMD,
// and knows the encodings that Modular MAX has on each device. What only a machine with a GPU can
// say is behind the type [Tools].
package gpu
