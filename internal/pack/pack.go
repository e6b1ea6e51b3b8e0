// Package pack writes the container of goldens and recorded runs: a .safetensors file in which equal tensors are stored once.
package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Range says where the bytes of a tensor lie in the file. Equal tensors have the same one.
type Range struct {
	Name   string // of the tensor in the file: the first of its equals
	Offset int64  // from the beginning of the file
	Length int64
	SHA256 string // of the bytes
}

// Write writes tensors under their names, which must differ, and gives the range of each. A tensor with dtype, shape and bytes of
// an earlier one is not written again. One tensor at a time is in memory, if at all.
func Write(w io.Writer, tensors []tensor.Named, metadata map[string]string) ([]Range, error) {
	type key struct {
		dtype       tensor.DType
		shape, hash string
	}
	first := map[key]int{} // index of the range
	names := map[string]bool{}
	var stored []tensor.Named
	var size int64
	ranges := make([]Range, len(tensors))
	for i, t := range tensors {
		if names[t.Name] {
			return nil, fmt.Errorf("pack: two tensors are named %q", t.Name)
		}
		names[t.Name] = true
		hash, err := Hash(t.Tensor)
		if err != nil {
			return nil, fmt.Errorf("pack: %q: %w", t.Name, err)
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
	c := &counter{w: w}
	if err := safetensors.Write(c, stored, metadata); err != nil {
		return nil, err
	}
	for i := range ranges {
		ranges[i].Offset += c.n - size
	}
	return ranges, nil
}

// Hash is the sha256 of the elements, little-endian in row-major order.
func Hash(t *tensor.Tensor) (string, error) {
	h := sha256.New()
	if _, err := t.WriteTo(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
