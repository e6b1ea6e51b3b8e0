package safetensors

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/goparity/goparity/tensor"
)

// Range says where a tensor is in a file. Equal tensors share one.
type Range struct {
	Name   string // name in the file: that of the first of the equal tensors
	Offset int64  // of the first byte, from the beginning of the file
	Length int64  // in bytes
	SHA256 string // of the bytes, as [Hash] returns it
}

// WriteUnique writes tensors as [Write] does, but equal ones only once, and returns where each is:
// the i-th range is that of tensors[i]. Tensors are equal if their dtypes, shapes and bytes are
// equal. Of equal tensors the file has the first name; a reader finds the others by their ranges.
//
// The format has no aliases, and no two tensors may overlap. So WriteUnique writes an ordinary file
// without the names of the repeated tensors.
//
// Each tensor is read twice, to hash it and to write it, and is not kept in memory. All names must
// differ, also those of equal tensors. The other errors are those of Write.
func WriteUnique(w io.Writer, tensors []tensor.Named, metadata map[string]string) ([]Range, error) {
	type key struct {
		dtype       tensor.DType
		shape, hash string
	}
	first := map[key]int{} // index in tensors
	names := map[string]bool{}
	var stored []tensor.Named
	var size int64
	ranges := make([]Range, len(tensors))
	for i, t := range tensors {
		if names[t.Name] {
			return nil, fmt.Errorf("safetensors: write: two tensors are named %q", t.Name)
		}
		names[t.Name] = true
		hash, err := Hash(t.Tensor)
		if err != nil {
			return nil, fmt.Errorf("safetensors: write %q: %w", t.Name, err)
		}
		k := key{t.DType(), tensor.FormatShape(t.Shape()), hash}
		if j, ok := first[k]; ok {
			ranges[i] = ranges[j]
			continue
		}
		first[k] = i
		n := int64(t.Len()) * int64(t.DType().Size())
		ranges[i] = Range{Name: t.Name, Offset: size, Length: n, SHA256: hash}
		size += n
		stored = append(stored, t)
	}
	header, err := write(w, stored, metadata)
	if err != nil {
		return nil, err
	}
	for i := range ranges {
		ranges[i].Offset += header
	}
	return ranges, nil
}

// Hash returns the SHA-256, in hexadecimal, of a tensor's elements as the format stores them:
// little-endian and in row-major order, whatever the strides.
func Hash(t *tensor.Tensor) (string, error) {
	h := sha256.New()
	if _, err := t.WriteTo(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
