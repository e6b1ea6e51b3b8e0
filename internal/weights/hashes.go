package weights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
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

// CompareHashes judges weights whose numbers were not kept. One is equal, or equal after a cast, if
// the reference's weight of this place has its hash in its type. It differs if it has that of zeros
// and the reference's is not zero, or that of another weight of the reference. Anything else may be
// a step or a fault, which a hash does not tell: it is ignored and says so.
func CompareHashes(ctx context.Context, ref *Side, cand []Hash) ([]Result, error) {
	// Codes of an engine's own packing say nothing without it.
	cand = slices.DeleteFunc(slices.Clone(cand), func(h Hash) bool { return !h.DType.IsFloat() })
	places, asked := &Side{}, map[int][]tensor.DType{} // by the number of elements
	for _, h := range cand {
		places.Tensors = append(places.Tensors, tensor.Named{Name: h.Name})
		if n := elements(h.Shape); !slices.Contains(asked[n], h.DType) {
			asked[n] = append(asked[n], h.DType)
		}
	}
	byPlace := placed(ref, places)
	refs := byPlace.all()
	sums := make([][]string, len(refs))
	err := vec.Each(ctx, len(refs), func(i int) error {
		for _, d := range asked[refs[i].t.Len()] {
			sums[i] = append(sums[i], hashAs(refs[i].t, d))
		}
		return nil
	})
	known := map[string][]*weight{} // by their hashes
	for i, w := range refs {
		for _, sum := range sums[i] {
			known[sum] = append(known[sum], w)
		}
	}
	var out []Result
	for _, w := range placed(places, ref).all() {
		h := cand[w.number]
		out = append(out, judgeHash(h, byPlace.at[w.at], known[h.SHA256]))
	}
	return out, err
}

// judgeHash judges one weight. r is the reference's of its place, or nil; same are those that have its hash.
func judgeHash(h Hash, r *weight, same []*weight) Result {
	isZero := func() bool { return h.SHA256 == zeroHash(h) }
	switch {
	case r == nil && len(same) > 0 && !isZero(): // so are many
		return Result{Status: Step, Reference: same[0].name, Candidate: h.Name, Steps: []string{"renamed"}}
	case r == nil:
		return Result{Status: Ignored, Candidate: h.Name, Detail: "no weight of the reference is called so"}
	}
	out := Result{Status: Ignored, Reference: r.name, Candidate: h.Name, Detail: "its bytes are not the checkpoint's: " +
		"keep the weights themselves to see whether that is a step or a fault (parity run --set weights=bytes)"}
	switch {
	case r.t.Len() != elements(h.Shape):
	case slices.Contains(same, r) && r.t.DType() == h.DType:
		out.Status, out.Detail = Equal, ""
	case slices.Contains(same, r):
		out.Status, out.Steps, out.Detail = Step, []string{"cast"}, ""
	case isZero():
		out.Status, out.Cause, out.Detail = Differs, causeZero, "all zeros, the reference's is not"
	case len(same) > 0:
		out.Status, out.Cause, out.Detail = Differs, causeOther, "it is "+same[0].name
	}
	return out
}

func elements(shape []int) int {
	n, _ := tensor.NumElems(shape)
	return n
}

// hashAs is the hash of a tensor's numbers rounded to a type; "" for a type that is none that engines cast to.
func hashAs(t *tensor.Tensor, d tensor.DType) string {
	if t.DType() != d {
		if !t.DType().IsFloat() || d != tensor.F32 && d != tensor.F16 && d != tensor.BF16 {
			return ""
		}
		round := rounding(d)
		t = checkpoint.Map(t, d, t.Shape(), func(values []float32, _ int) { round(values) })
	}
	sum, err := safetensors.Hash(t)
	if err != nil {
		return ""
	}
	return sum
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
