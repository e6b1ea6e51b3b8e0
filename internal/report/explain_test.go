package report_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// What a failing row says of its two tensors.
func TestExplain(t *testing.T) {
	ints := func(values ...int64) *tensor.Tensor {
		x, err := tensor.Of(values, 2, 2)
		require.NoError(t, err)
		return x
	}
	four := func(values ...float32) *tensor.Tensor { return floats(t, []int{2, 2}, values...) }
	many := func(off float32) *tensor.Tensor {
		values := make([]float32, 600)
		for i := range values {
			values[i] = 1 + off*float32(i%7)
		}
		return floats(t, []int{600, 1}, values...)
	}
	inf := float32(math.Inf(1))
	within := compare.Criteria{compare.Atol: 0.25, compare.Rtol: 0}
	var out bytes.Buffer
	for _, tt := range []struct {
		golden, actual *tensor.Tensor
		c              compare.Criteria
		encoded        *tensor.Tensor
		outside        int
		reason         string
	}{
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), within, nil, 1, "one element"},
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), compare.Criteria{compare.RelL2: 1e-3}, nil, 1, "noise, where no elementwise tolerance is asked for"},
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), compare.Criteria{compare.Cost: 3}, four(1, 2, 3.02, 4), 1, "what the encoding costs"},
		{four(1, 2, 3, 4), four(0, 0, 0, 0), within, nil, 4, "zeros"},
		{four(1, 2, 3, 4), four(1, 2, inf, 4), within, nil, 1, "an infinity alone: no element is the worst"},
		{ints(1, 2, 3, 4), ints(1, 2, 3, 5), compare.Criteria{compare.Atol: 0}, nil, 1, "integers"},
		{four(0, -inf, 0, 0), four(0, 0, 0, 0), within, nil, 1, "a mask"},
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), compare.Criteria{compare.Rtol: 1e-9}, nil, 1, "no float32 can be as near"},
		{many(0), many(1e-3), compare.Criteria{compare.Atol: 1e-4}, nil, 514, "bins of rows"},
	} {
		v, err := tt.c.Judge(tt.golden, tt.actual, compare.References{Encoded: tt.encoded, Encoding: tensor.BF16})
		require.NoError(t, err)
		var l report.Layer
		assert.Equal(t, tt.outside, l.Explain(tt.golden, tt.actual, tt.c, v, tensor.F32, compare.Floor(tensor.F32)), tt.reason)
		fmt.Fprintf(&out, "%s:\n  %s\n  %d rows %.3g\n  %v\n", tt.reason, strings.Join(l.Detail, "\n  "), l.Rows.N, l.Rows.RelL2, l.Histogram)
	}
	toy.Kept(t, "explain.txt", out.String())
}
