package serving_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
	"github.com/goparity/goparity/tensor"
)

// near returns a reference whose token k has a rival that trails it by gap.
func near(k int, gap float64, d tensor.DType) (ref *serving.Reference, rival int) {
	ref = servingtest.Cases(tokensOfCases)[0]
	seen := append([]int{}, ref.Prompt...)
	for i, id := range ref.Tokens {
		row := servingtest.Logits(seen)
		if i == k {
			rival = servingtest.Ranked(row)[1]
			row[rival] = row[id] - gap
		}
		ref.Rows[i] = serving.NewRow(generation.NewRow(row), d)
		seen = append(seen, id)
	}
	return ref, rival
}

// A near tie may come either way; what follows is another text, and is not judged. The text is, by
// the tokens that it is made of. A confident token may not.
func TestTies(t *testing.T) {
	for _, c := range []struct {
		k       int
		gap     float64
		dtype   tensor.DType
		noIDs   bool
		verdict report.Verdict
		reason  string
	}{
		{0, 1e-5, tensor.F32, false, report.Pass, "within the noise of float32"},
		{2, 1e-5, tensor.F32, true, report.Pass, "the same, no ids"},
		{2, 0.1, tensor.F32, false, report.Fail, "beyond it"},
		{2, 0.1, tensor.F32, true, report.Fail, "beyond it, no ids"},
		{2, 0.1, tensor.BF16, false, report.Pass, "within the noise of bfloat16"},
		{2, 3, tensor.BF16, false, report.Fail, "beyond that of bfloat16"},
	} {
		ref, rival := near(c.k, c.gap, c.dtype)
		flipped := func(seen []int) []float64 {
			row := servingtest.Logits(seen)
			if len(seen) == len(ref.Prompt)+c.k {
				row[rival] = row[ref.Tokens[c.k]] + c.gap/10
			}
			return row
		}
		out := judge(t, &servingtest.Stub{Model: flipped, NoIDs: c.noIDs, NoLogProbs: false}, []*serving.Reference{ref},
			serving.Options{Model: serving.Model{Vocab: known(t).Vocab}})
		assert.Equal(t, c.verdict, out.Verdict, "%s: %v", c.reason, out.Requests[0].Text)
		if c.verdict == report.Pass {
			if assert.NotNil(t, out.Requests[0].Tie, c.reason) {
				assert.Equal(t, c.k, *out.Requests[0].Tie, c.reason)
			}
		}
	}
}

// A server may choose between two tokens that are tied each time anew: no way of asking takes that for a fault.
func TestTiesEachTimeAnew(t *testing.T) {
	const k = 2
	ref, rival := near(k, 1e-5, tensor.F32)
	for turn := range 3 {
		n := turn
		flipping := func(seen []int) []float64 {
			row := servingtest.Logits(seen)
			if len(seen) == len(ref.Prompt)+k {
				n++
				row[rival] = row[ref.Tokens[k]] + []float64{1e-6, -1e-6, 1e-6}[n%3]
			}
			return row
		}
		out := judge(t, &servingtest.Stub{Model: flipping}, []*serving.Reference{ref}, serving.Options{Model: serving.Model{Vocab: known(t).Vocab}, Draws: 50})
		assert.Equal(t, report.Pass, out.Verdict, "%v", failing(out))
	}
}
