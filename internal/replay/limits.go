package replay

// maxElements is the largest number of elements of a result: 2 GiB of float32. The logits of 4,000
// tokens over 130,000 words are as many.
const maxElements = 1 << 29

// parallelWork is the number of multiply-adds from which on a product is worth several goroutines:
// some 50 µs of one processor.
const parallelWork = 1 << 20

// windowElements is how many numbers of windows a convolution lays out at a time: 16 MiB of float32. All
// those of a picture of 512 channels are a gigabyte.
const windowElements = 1 << 22

// fewFilters is how many filters of a group a convolution adds line by line: a product of panels of six rows takes six
// times as long for one, November 2026.
const fewFilters = 2

// widest is the largest stride, padding or dilation of a window, in elements: vocoders and positional
// convolutions have some hundred.
const widest = 1 << 20

// equalFloats is how far a float may be off, relative, that Python was given: what it was used for is
// then as good as the same. By reason: half the least floor of float32.
const equalFloats = 1e-6

// elementWork and callWork are what an element of a result that is no sum and a call of an operator cost, in
// multiply-adds: so that edits of small pieces take 1 ns for each, November 2026. One of a Fourier transform costs as many
// elements.
const elementWork, callWork, fourierWork = 8.0, 5000.0, 8.0
