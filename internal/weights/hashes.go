package weights

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// Hash is what is kept of a weight without its numbers: the SHA-256 of its bytes, little-endian and in
// row-major order.
type Hash struct {
	Name   string       `json:"name"`
	DType  tensor.DType `json:"dtype"`
	Shape  []int        `json:"shape"`
	SHA256 string       `json:"sha256"` // in hex
}

// ReadHashes reads a file {"weights": [HASH, …]}, which an engine's runner writes.
func ReadHashes(path string) ([]Hash, error) {
	data, err := mapfile.Read(path, mapfile.MaxConfig)
	if err != nil {
		return nil, err
	}
	var list struct {
		Weights []Hash `json:"weights"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(list.Weights) == 0 {
		return nil, fmt.Errorf("%s: no weights", path)
	}
	for i, h := range list.Weights {
		sum, err := hex.DecodeString(h.SHA256)
		if _, of := tensor.NumBytes(h.DType, h.Shape); h.Name == "" || err != nil || len(sum) != sha256.Size || of != nil {
			return nil, fmt.Errorf("%s: weights[%d] %q: want a name, a dtype, a shape and a SHA-256 in hex", path, i, h.Name)
		}
	}
	return list.Weights, nil
}

// CompareHashes judges weights whose numbers were not kept. One is equal, or equal after a cast, if the
// reference's weight of this place has its hash in its type. It differs if it has that of zeros and the
// reference's is not zero, or that of another weight of the reference. Anything else may be a step or a
// fault, which a hash does not tell: it is ignored and says so.
func CompareHashes(ctx context.Context, ref *Side, cand []Hash) ([]Result, error) {
	places := &Side{}
	byName := map[string]Hash{}
	for _, h := range cand {
		if !h.DType.IsFloat() {
			continue // codes of an engine's own packing say nothing without it
		}
		places.Tensors = append(places.Tensors, tensor.Named{Name: h.Name})
		byName[h.Name] = h
	}
	refs, list := placed(ref), placed(places)
	keys := slices.Sorted(maps.Keys(list))
	known := &hashed{refs: refs, sums: map[hashKey]func() string{}}
	out := make([]Result, len(keys))
	err := each.Do(ctx, len(keys), func(i int) error {
		w := list[keys[i]]
		out[i] = known.judge(refs[keys[i]], byName[w.name])
		return nil
	})
	return out, err
}

// hashed are the hashes of a reference's weights, each calculated once. It is safe for concurrent use.
type hashed struct {
	refs map[string]*weight
	mu   sync.Mutex
	sums map[hashKey]func() string
}

type hashKey struct {
	of *weight
	as tensor.DType
}

// sum is the hash of a weight's numbers rounded to a type; "" for a type that is not known.
func (s *hashed) sum(w *weight, d tensor.DType) string {
	s.mu.Lock()
	sum := s.sums[hashKey{w, d}]
	if sum == nil {
		sum = sync.OnceValue(func() string { return hashAs(w.t, d) })
		s.sums[hashKey{w, d}] = sum
	}
	s.mu.Unlock()
	return sum()
}

// judge judges one weight. r is the reference's of its place, or nil.
func (s *hashed) judge(r *weight, h Hash) Result {
	out := Result{Status: Ignored, Candidate: h.Name, Detail: "no weight of the reference is called so"}
	if r != nil {
		out.Reference = r.name
		out.Detail = "its bytes are not the checkpoint's: keep the weights themselves to see whether that is a step or a fault (parity run --weights)"
		if r.t.Len() != elements(h.Shape) {
			return out
		}
		switch own := s.sum(r, h.DType); {
		case own == h.SHA256 && r.t.DType() == h.DType:
			out.Status, out.Detail = Equal, ""
			return out
		case own == h.SHA256:
			out.Status, out.Steps, out.Detail = Step, []string{"cast"}, ""
			return out
		case h.SHA256 == zeroHash(h):
			out.Status, out.Cause, out.Detail = Differs, causeZero, "all zeros, the reference's is not"
			return out
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.refs)) {
		o := s.refs[key]
		if o == r || o.t.Len() != elements(h.Shape) || s.sum(o, h.DType) != h.SHA256 {
			continue
		}
		switch {
		case r != nil:
			out.Status, out.Cause, out.Detail = Differs, causeOther, "it is "+o.name
		case h.SHA256 != zeroHash(h): // so are many
			out.Status, out.Reference, out.Steps, out.Detail = Step, o.name, []string{"renamed"}, ""
		}
		break
	}
	return out
}

func elements(shape []int) int {
	n, _ := tensor.NumElems(shape)
	return n
}

// hashAs is the hash of a tensor's numbers rounded to a type; "" for a type that is not known.
func hashAs(t *tensor.Tensor, d tensor.DType) string {
	sum := sha256.New()
	if t.DType() == d && t.Packing() == "" {
		if _, err := t.WriteTo(sum); err != nil {
			return ""
		}
		return hex.EncodeToString(sum.Sum(nil))
	}
	put := putter(d)
	if put == nil || !t.DType().IsFloat() {
		return ""
	}
	values, data := make([]float64, 1<<14), make([]byte, 0, 1<<16)
	for at := 0; at < t.Len(); {
		n := t.Float64s(values[:min(len(values), t.Len()-at)], at)
		data = data[:0]
		for _, v := range values[:n] {
			data = put(data, float32(v))
		}
		sum.Write(data)
		at += n
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// putter appends a number rounded to a type, to nearest; nil if it is none that engines cast to.
func putter(d tensor.DType) func(data []byte, v float32) []byte {
	switch d {
	case tensor.F32:
		return func(data []byte, v float32) []byte {
			return binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	case tensor.F16:
		return func(data []byte, v float32) []byte {
			return binary.LittleEndian.AppendUint16(data, smallfloat.PutF16(smallfloat.RoundF16(v)))
		}
	case tensor.BF16:
		return func(data []byte, v float32) []byte {
			return binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(smallfloat.RoundBF16(v))>>16))
		}
	}
	return nil
}

// zeroHash is the hash of as many zeros.
func zeroHash(h Hash) string {
	n, _ := tensor.NumBytes(h.DType, h.Shape)
	sum, zeros := sha256.New(), make([]byte, 1<<16)
	for ; n > 0; n -= len(zeros) {
		sum.Write(zeros[:min(n, len(zeros))])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
