package piece_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// grouped is experts → the tokens in the order of their experts, and in which rows of x they are.
const grouped = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[6],"dtype":"int64","from":{"input":"experts","step":"0"}},{"id":1,"shape":[6,2],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":2,"shape":[6],"dtype":"int64","from":{"op":0}},{"id":3,"shape":[6],"dtype":"int64","from":{"op":0}},
{"id":4,"shape":[6,2],"dtype":"float32","from":{"op":1}}],
"ops":[{"op":"aten.sort.default","args":{"self":"%0","dim":0,"descending":false},"out":["%2","%3"],"layer":"router","call":1},
{"op":"aten.index_select.default","args":{"self":"%1","dim":0,"index":"%3"},"out":["%4"],"layer":"router","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"model-input_experts":["%0",0,2],"model-input_x":["%1",0,2],"router-output_0":["%3",2,2],"router-output_1":["%4",2,2]}}]}`

// Tokens of the same expert come in any order, and those of another expert never come among them.
func TestAnyOrder(t *testing.T) {
	for _, tt := range []struct {
		order  []float64
		rows   []float64 // the tokens whose rows stand in output_1
		wrong  []string
		reason string
	}{
		{[]float64{1, 2, 5, 0, 4, 3}, []float64{1, 2, 5, 0, 4, 3}, nil, "as recorded"},
		{[]float64{5, 2, 1, 4, 0, 3}, []float64{5, 2, 1, 4, 0, 3}, nil, "each group in reverse"},
		{[]float64{2, 5, 1, 0, 4, 3}, []float64{2, 5, 1, 0, 4, 3}, nil, "one group turned"},
		{[]float64{3, 0, 4, 1, 2, 5}, []float64{3, 0, 4, 1, 2, 5}, []string{"output_0", "output_1"}, "experts in descending order"},
		{[]float64{1, 2, 0, 5, 4, 3}, []float64{1, 2, 0, 5, 4, 3}, []string{"output_0", "output_1"}, "two tokens at each other's expert"},
		{[]float64{1, 2, 5, 0, 4, 3}, []float64{1, 2, 0, 5, 4, 3}, []string{"output_1"}, "the rows of two tokens are exchanged"},
	} {
		x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		var chosen []float64
		for _, r := range tt.rows {
			chosen = append(chosen, x[2*int(r)], x[2*int(r)+1])
		}
		r, _, wrong := judge(t, grouped, tensor.F32, nil, nameOf, func(at program.Port, v *program.Value) piece.Record {
			of := map[string][]float64{"input_experts": {1, 0, 0, 2, 1, 0}, "input_x": x, "output_0": tt.order, "output_1": chosen}
			return piece.Record{Tensor: array(t, v.DType, v.Shape, of[at.Name])}
		})
		assert.Equal(t, tt.wrong, wrong, tt.reason)
		tied := tt.wrong == nil && tt.reason != "as recorded"
		assert.Equal(t, [3]bool{tied, tied, tied}, [3]bool{r.Local[3].Tied, r.Local[3].AnyOrder, r.Local[3].Unjudged}, tt.reason)
	}
}

// What is made of rows in any order is right in that order, or in the reference's, and else wrong.
func TestBehindAnyOrder(t *testing.T) {
	source := strings.NewReplacer(`"from":{"op":1}}],`, `"from":{"op":1}},{"id":5,"shape":[6,2],"dtype":"float32","from":{"op":2}},{"id":6,"shape":[2],"dtype":"float32","from":{"op":3}}],`,
		`"layer":"router","call":1}],`, `"layer":"router","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%4","other":2},"out":["%5"],"layer":"mlp","call":1},
{"op":"aten.sum.dim_IntList","args":{"self":"%5","dim":[0],"keepdim":false,"dtype":null},"out":["%6"],"layer":"out","call":1}],`,
		`"ops":[0,2]`, `"ops":[0,4]`, `["%4",2,2]}`, `["%4",2,2],"mlp-output":["%5",3,3],"out-output":["%6",4,4]}`).Replace(grouped)
	reference, turned := []int{1, 2, 5, 0, 4, 3}, []int{5, 2, 1, 4, 0, 3}
	for _, tt := range []struct {
		rows, mlp []int
		out       []float64
		wrong     []string
		reason    string
	}{
		{reference, reference, []float64{72, 84}, nil, "as recorded"},
		{turned, turned, []float64{72, 84}, nil, "in the order of its rows"},
		{turned, reference, []float64{72, 84}, nil, "in the reference's"},
		{turned, []int{5, 2, 1, 0, 4, 3}, []float64{72, 84}, nil, "of each expert in any"},
		{turned, []int{5, 2, 0, 4, 0, 3}, []float64{68, 80}, []string{"mlp"}, "a token of another expert in the place of its own"},
		{turned, turned, []float64{72, 85}, []string{"out"}, "a sum hangs on no order"},
	} {
		x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		of := func(by float64, rows []int) (out []float64) {
			for _, r := range rows {
				out = append(out, by*x[2*r], by*x[2*r+1])
			}
			return out
		}
		_, _, wrong := judge(t, source, tensor.F32, nil, layerOf, func(at program.Port, v *program.Value) (r piece.Record) {
			have := map[string][]float64{"model input_experts": {1, 0, 0, 2, 1, 0}, "model input_x": x, "router output_1": of(1, tt.rows), "mlp output": of(2, tt.mlp), "out output": tt.out}
			if x := have[at.Layer+" "+at.Name]; x != nil {
				r.Tensor = array(t, v.DType, v.Shape, x)
			}
			return r
		})
		assert.Equal(t, tt.wrong, wrong, tt.reason)
	}
}

// What an edit makes is compared in the order of the candidate, where equal numbers do not tell it.
func TestSiteOfAnyOrder(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	twice := func(rows ...int) *replay.Array {
		var of []float64
		for _, r := range rows {
			of = append(of, 2*x[2*r], 2*x[2*r+1])
		}
		return array(t, tensor.F32, []int{6, 2}, of)
	}
	r, run, _ := judge(t, grouped, tensor.F32, func(*program.Value) (*replay.Array, error) { return nil, nil }, nameOf, func(at program.Port, v *program.Value) (r piece.Record) {
		switch at.Name {
		case "input_experts":
			r.Tensor = array(t, v.DType, v.Shape, []float64{1, 0, 0, 2, 1, 0})
		case "input_x":
			r.Tensor = array(t, v.DType, v.Shape, x)
		case "output_1":
			r.Tensor, r.Rows = twice(5, 1, 2, 4, 0, 3), &piece.Rows{Axis: 0, Batch: 1, Length: 6, Own: []bool{true, true, true, true, true, true}}
		}
		return r
	})
	require.Equal(t, []int{3}, r.Faults, "all are twice too large")
	site := r.Site(3, run.Load, nil, false)
	for _, tt := range []struct {
		made   *replay.Array
		right  bool
		reason string
	}{
		{twice(1, 2, 5, 0, 4, 3), true, "the tokens of an expert in another order"},
		{twice(5, 1, 2, 4, 0, 3), true, "in the candidate's"},
		{twice(1, 2, 0, 5, 4, 3), false, "two tokens at each other's expert"},
	} {
		off, _ := site.Off(tt.made)
		assert.Equal(t, tt.right, off <= 1, tt.reason)
		if tt.right {
			assert.Equal(t, run.Records[3].Tensor.Floats(), site.Numbers(tt.made), tt.reason)
		}
	}
	off, _ := r.Site(3, run.Load, []bool{true, true, true, true, true, false}, false).Off(twice(1, 2, 5, 0, 4, 1))
	assert.LessOrEqual(t, off, 1.0, "all but the last row")
}

// coded rounds two rows to whole numbers.
const coded = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2,4],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2,4],"dtype":"float32","from":{"op":0}}],
"ops":[{"op":"aten.round.default","args":{"self":"%0"},"out":["%1"],"layer":"cache","call":1}],
"passes":[{"step":"0","ops":[0,1],"ports":{"cache-input_0":["%0",0,1],"cache-output":["%1",1,1]}}]}`

// A number between two whole ones may become either. That excuses no more of its row, and no other row.
func TestBetweenWholeNumbers(t *testing.T) {
	for _, tt := range []struct {
		made     []float64
		encoding tensor.DType
		wrong    bool
		reason   string
	}{
		{[]float64{2, 3, 6, 7, 1, 1, 2, 3}, tensor.F32, false, "as recorded"},
		{[]float64{3, 3, 6, 7, 1, 1, 2, 3}, tensor.F32, false, "the other whole number"},
		{[]float64{3, 9, 6, 7, 1, 1, 2, 3}, tensor.F32, true, "and another one that is wrong"},
		{[]float64{3, 3, 6, 7, 1, 1, 2, 4}, tensor.F32, true, "another row"},
		{[]float64{3, 9, 6, 7, 1, 1, 2, 3}, tensor.BF16, true, "in 16 bits, too"},
	} {
		_, _, faults := judge(t, coded, tt.encoding, nil, nameOf, func(at program.Port, v *program.Value) piece.Record {
			x := []float64{2.5, 3.1, 6.2, 6.9, 1.1, 0.9, 2.2, 3.3}
			if at.Name == "output" {
				x = tt.made
			}
			return piece.Record{Tensor: array(t, v.DType, v.Shape, x)}
		})
		assert.Equal(t, tt.wrong, len(faults) > 0, tt.reason)
	}
}
