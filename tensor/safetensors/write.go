package safetensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/goparity/goparity/tensor"
)

// Write writes tensors in the given order, without gaps. The header is padded so that the buffer
// begins at a multiple of 64 bytes; tensors are not aligned otherwise. Equal input gives equal
// bytes. Names must differ and be UTF-8. [WriteUnique] stores equal tensors once.
func Write(w io.Writer, tensors []tensor.Named, metadata map[string]string) error {
	_, err := write(w, tensors, metadata)
	return err
}

// write returns how many bytes are before the buffer.
func write(w io.Writer, tensors []tensor.Named, metadata map[string]string) (before int64, err error) {
	header, err := marshalHeader(tensors, metadata)
	if err != nil {
		return 0, fmt.Errorf("safetensors: write: %w", err)
	}
	if _, err := w.Write(header); err != nil {
		return 0, fmt.Errorf("safetensors: write: %w", err)
	}
	for _, t := range tensors {
		if _, err := t.WriteTo(w); err != nil {
			return 0, fmt.Errorf("safetensors: write %q: %w", t.Name, err)
		}
	}
	return int64(len(header)), nil
}

// entryJSON is an entry of a header; its keys are written in this order.
type entryJSON struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// marshalHeader returns everything before the buffer.
func marshalHeader(tensors []tensor.Named, metadata map[string]string) ([]byte, error) {
	var entries [][]byte
	put := func(key string, value any) {
		k, _ := json.Marshal(key) // neither fails, of texts and numbers
		v, _ := json.Marshal(value)
		entries = append(entries, slices.Concat(k, []byte(":"), v))
	}
	for k, v := range metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("metadata %q: %.80q is not UTF-8", k, v)
		}
	}
	if len(metadata) > 0 {
		put(metaKey, metadata)
	}
	seen := map[string]bool{metaKey: true}
	var at int64
	for _, t := range tensors {
		if seen[t.Name] || !utf8.ValidString(t.Name) {
			return nil, fmt.Errorf("%q cannot be a name: want UTF-8, each name once, and not %s", t.Name, metaKey)
		}
		seen[t.Name] = true
		end := at + int64(t.Len())*int64(t.DType().Size())
		put(t.Name, entryJSON{dtypeName(t.DType()), t.Shape(), [2]int64{at, end}})
		at = end
	}
	h := slices.Concat(make([]byte, 8), []byte("{"), bytes.Join(entries, []byte(",")), []byte("}"))
	h = append(h, bytes.Repeat([]byte(" "), -len(h)&63)...)
	if len(h)-8 > maxHeader {
		return nil, fmt.Errorf("the header of %d tensors has %d bytes, at most %d are allowed", len(tensors), len(h)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(h, uint64(len(h)-8))
	return h, nil
}

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
