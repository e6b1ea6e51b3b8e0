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

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const (
	name      = "gguf"
	magic     = "GGUF"
	alignKey  = "general.alignment"
	alignment = 32
)

// plain are ggml's types whose elements are stored one by one.
var plain = map[uint32]tensor.DType{
	0: tensor.F32, 1: tensor.F16, 24: tensor.I8, 25: tensor.I16, 26: tensor.I32, 27: tensor.I64, 28: tensor.F64,
	30: tensor.BF16,
}

// Open maps a .gguf file. Its tensors come in the order of the file, with the outermost axis first.
// A quantised one is float32, and has a [tensor.Tensor.Packing]. Every error is a
// [*tensor.FormatError].
func Open(path string) (*tensor.File, error) { return format.Open(name, path, decode) }

// Decode is Open for content in memory, which errors call file. The tensors are views of data.
func Decode(file string, data []byte) (*tensor.File, error) {
	return format.Decode(name, file, data, decode)
}

// info is what the header says of a tensor.
type info struct {
	name   string
	at     int64 // of the entry in the file
	shape  []int // outermost axis first
	code   uint32
	dtype  tensor.DType
	block  *block // nil if the elements are stored one by one
	size   int    // of the blocks or elements, in bytes
	offset uint64 // from the start of all blocks
}

func decode(f *tensor.File, data []byte) {
	r := &reader{data: data}
	tensors, keys := r.preamble()
	f.Metadata = r.metadata(keys)
	infos := r.infos(tensors)
	start := (uint64(r.at) + r.alignment - 1) / r.alignment * r.alignment
	checkLayout(infos, start, r.alignment, uint64(len(data)))
	for _, t := range infos {
		from := min(start+t.offset, uint64(len(data))) // an empty tensor may lie after the end
		spec := tensor.Spec{DType: t.dtype, Shape: t.shape, Data: data[from : from+uint64(t.size)],
			BigEndian: r.big, Place: tensor.Place{File: f.Path, Offset: int64(from)}}
		if t.block != nil {
			spec.Packing = t.block.packing()
		}
		f.Tensors = append(f.Tensors, tensor.Named{Name: t.name, Tensor: format.Tensor(spec, t.at, t.name)})
	}
}

// resolve sets type and size of a tensor by its code.
func (t *info) resolve(big bool) {
	fail := func(class error, msg string, args ...any) { format.Fail(class, t.at, t.name, msg, args...) }
	if d, ok := plain[t.code]; ok {
		t.dtype, t.size = d, format.NumBytes(d, t.shape, t.at, t.name)
		return
	}
	block, ok := blocks[t.code]
	switch {
	case !ok:
		fail(tensor.ErrUnsupported, "ggml type %d is unknown, or not dequantised by gguf-py either: write the file with another type", t.code)
	case big:
		fail(tensor.ErrUnsupported, "%s in a big-endian file: only types that are not quantised are read there", block.name)
	}
	width := 1
	if len(t.shape) > 0 {
		width = t.shape[len(t.shape)-1]
	}
	n := format.NumBytes(tensor.U8, t.shape, t.at, t.name)
	switch {
	case width%block.len != 0:
		fail(tensor.ErrCorrupt, "rows of %d elements, want a multiple of %d: the block of %s", width, block.len, block.name)
	case n/block.len > math.MaxInt/block.size:
		fail(tensor.ErrCorrupt, "shape %s has more bytes than can be addressed", tensor.FormatShape(t.shape))
	}
	t.dtype, t.block, t.size = tensor.F32, block, n/block.len*block.size
}

// checkLayout requires that all tensors lie in the file, aligned and apart.
func checkLayout(infos []info, start, align, size uint64) {
	sorted := slices.Clone(infos)
	slices.SortStableFunc(sorted, func(a, b info) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.size, b.size))
	})
	end, last := uint64(0), ""
	for _, t := range sorted {
		fail := func(class error, msg string, args ...any) { format.Fail(class, t.at, t.name, msg, args...) }
		switch {
		case t.offset%align != 0:
			fail(tensor.ErrCorrupt, "begins at %d, want a multiple of %d", t.offset, align)
		case t.size == 0:
			continue
		case t.offset < end:
			fail(tensor.ErrCorrupt, "begins at %d and overlaps %q, which ends at %d", t.offset, last, end)
		case start > size || t.offset > size-start || uint64(t.size) > size-start-t.offset:
			fail(tensor.ErrTruncated, "%d bytes from byte %d on, the file has %d", t.size, start+t.offset, size)
		}
		end, last = t.offset+uint64(t.size), t.name
	}
}
