package piece_test

import (
	"math"
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

var (
	x       = []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	experts = []float64{1, 0, 0, 2, 1, 0}
)

// rowsOf are rows of x times a number.
func rowsOf(by float64, rows ...float64) (out []float64) {
	for _, r := range rows {
		out = append(out, by*x[2*int(r)], by*x[2*int(r)+1])
	}
	return out
}

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
		r, _, wrong := judge(t, grouped, tensor.F32, nil, nameOf,
			by(nameOf, map[string][]float64{"input_experts": experts, "input_x": x, "output_0": tt.order, "output_1": rowsOf(1, tt.rows...)}))
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
	reference, turned := []float64{1, 2, 5, 0, 4, 3}, []float64{5, 2, 1, 4, 0, 3}
	for _, tt := range []struct {
		rows, mlp []float64
		out       []float64
		wrong     []string
		reason    string
	}{
		{reference, reference, []float64{72, 84}, nil, "as recorded"},
		{turned, turned, []float64{72, 84}, nil, "in the order of its rows"},
		{turned, reference, []float64{72, 84}, nil, "in the reference's"},
		{turned, []float64{5, 2, 1, 0, 4, 3}, []float64{72, 84}, nil, "of each expert in any"},
		{turned, []float64{5, 2, 0, 4, 0, 3}, []float64{68, 80}, []string{"mlp"}, "a token of another expert in the place of its own"},
		{turned, turned, []float64{72, 85}, []string{"out"}, "a sum hangs on no order"},
	} {
		_, _, wrong := judge(t, source, tensor.F32, nil, layerOf, by(portOf, map[string][]float64{"model-input_experts": experts, "model-input_x": x,
			"router-output_1": rowsOf(1, tt.rows...), "mlp-output": rowsOf(2, tt.mlp...), "out-output": tt.out}))
		assert.Equal(t, tt.wrong, wrong, tt.reason)
	}
}

// What an edit makes is compared in the order of the candidate, where equal numbers do not tell it.
func TestSiteOfAnyOrder(t *testing.T) {
	twice := func(rows ...float64) *replay.Array { return array(t, tensor.F32, []int{6, 2}, rowsOf(2, rows...)) }
	load := func(*program.Value) (*replay.Array, error) { return nil, nil }
	r, run, _ := judge(t, grouped, tensor.F32, load, nameOf,
		by(nameOf, map[string][]float64{"input_experts": experts, "input_x": x, "output_1": rowsOf(2, 5, 1, 2, 4, 0, 3)}),
		func(at program.Port, r *piece.Record) {
			if at.Name == "output_1" {
				r.Rows = &piece.Rows{Axis: 0, Batch: 1, Length: 6, Own: []bool{true, true, true, true, true, true}}
			}
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
		_, _, faults := judge(t, coded, tt.encoding, nil, nameOf,
			by(nameOf, map[string][]float64{"input_0": {2.5, 3.1, 6.2, 6.9, 1.1, 0.9, 2.2, 3.3}, "output": tt.made}))
		assert.Equal(t, tt.wrong, len(faults) > 0, tt.reason)
	}
}

// sparse is the two best of four scores → the sum of what stands there in x, times w.
const sparse = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2,4],"dtype":"float32","from":{"input":"scores","step":"0"}},{"id":1,"shape":[2,4],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":2,"shape":[2,2],"dtype":"float32","from":{"input":"w","step":"0"}},{"id":3,"shape":[2,2],"dtype":"float32","from":{"op":0}},{"id":4,"shape":[2,2],"dtype":"int64","from":{"op":0}},
{"id":5,"shape":[2,2],"dtype":"int32","from":{"op":1}},{"id":6,"shape":[2,2],"dtype":"int64","from":{"op":2}},{"id":7,"shape":[2,2],"dtype":"float32","from":{"op":3}},
{"id":8,"shape":[2,2],"dtype":"float32","from":{"op":4}},{"id":9,"shape":[2],"dtype":"float32","from":{"op":5}}],
"ops":[{"op":"aten.topk.default","args":{"self":"%0","k":2,"dim":-1,"largest":true,"sorted":true},"out":["%3","%4"],"layer":"router","call":1},
{"op":"aten._to_copy.default","args":{"self":"%4","dtype":"int32"},"out":["%5"],"layer":"router","call":1},
{"op":"aten._to_copy.default","args":{"self":"%5","dtype":"int64"},"out":["%6"],"layer":"moe","call":1},
{"op":"aten.gather.default","args":{"self":"%1","dim":-1,"index":"%6","sparse_grad":false},"out":["%7"],"layer":"moe","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%7","other":"%2"},"out":["%8"],"layer":"moe","call":1},
{"op":"aten.sum.dim_IntList","args":{"self":"%8","dim":[-1],"keepdim":false,"dtype":null},"out":["%9"],"layer":"moe","call":1}],
"passes":[{"step":"0","ops":[0,6],"ports":{"model-input_scores":["%0",0,6],"model-input_x":["%1",0,6],"model-input_w":["%2",0,6],"router-output":["%5",2,2],"moe-output_0":["%9",6,6],"moe-output_1":["%5",6,6]}}]}`

// A choice is a set: its order, and which of equal scores it took, is the candidate's own affair, and no excuse for what
// is made of it.
func TestBestChoice(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, tt := range []struct {
		first, second []float64 // the choices of the rows; nil where they were not recorded
		taken         []float64 // what stands at them, in the order of w
		wrong         []string
		reason        string
	}{
		{[]float64{0, 1}, []float64{1, 2}, []float64{1, 2, 6, 7}, nil, "as recorded"},
		{[]float64{1, 0}, []float64{2, 1}, []float64{1, 2, 6, 7}, nil, "in another order, which the sum does not hang on"},
		{[]float64{0, 2}, []float64{2, 1}, []float64{1, 3, 6, 7}, nil, "the other one of two equal scores"},
		{[]float64{0, 1}, []float64{2, 1}, []float64{1, 2, 7, 6}, []string{"router-output"}, "in another order, and not what it is weighed by"},
		{[]float64{0, 1}, []float64{1, 3}, []float64{1, 2, 6, 8}, []string{"router-output"}, "the third best"},
		{[]float64{0, 3}, []float64{1, 2}, []float64{1, 4, 6, 7}, []string{"router-output"}, "below the equal ones"},
		{[]float64{0, 1}, []float64{1, 1}, []float64{1, 2, 6, 6}, []string{"router-output"}, "one of them twice"},
		{[]float64{0, 1}, []float64{1, 4}, []float64{1, 2, 6, 8}, []string{"router-output"}, "out of range"},
		{nil, nil, []float64{1, 2, 6, 7}, nil, "what was chosen was not recorded"},
		{nil, nil, []float64{1, 3, 6, 7}, nil, "not recorded, the other one of two equal scores"},
		{nil, nil, []float64{1, 2, 6, 8}, []string{"moe-output_0"}, "not recorded, the third best"},
		{nil, nil, []float64{1, 3, 6, 8}, []string{"moe-output_0"}, "not recorded, both"},
		{nil, nil, []float64{1, 8, 6, 7}, []string{"moe-output_0"}, "not recorded, further off than equal scores make"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := []float64{3, 2, 4, 1}
			have := map[string][]float64{"model-input_scores": {0.5, 0, 0, -1, 0.1, 0.9, 0.3, 0.2}, "model-input_x": x, "model-input_w": w,
				"router-output": append(tt.first, tt.second...), "moe-output_1": append(tt.first, tt.second...), "moe-output_0": {w[0]*tt.taken[0] + w[1]*tt.taken[1], w[2]*tt.taken[2] + w[3]*tt.taken[3]}}
			r, _, wrong := judge(t, sparse, tensor.F32, nil, portOf, by(portOf, have))
			assert.Equal(t, tt.wrong, wrong)
			assert.Empty(t, r.Stretches, "nor is it another way to write the same")
			_, _, wrong = judge(t, strings.Replace(sparse, `"largest":true`, `"largest":false`, 1), tensor.F32, nil, portOf, by(portOf, have))
			assert.NotEmpty(t, wrong, "it is not the choice of the least")
		})
	}
}

// strayed is x, times as many numbers as hang on the mask, in the order of equal ids, times w.
const strayed = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[3],"dtype":"float32","from":{"input":"mask","step":"0"}},{"id":1,"shape":[4,2],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":2,"shape":[4],"dtype":"int64","from":{"input":"ids","step":"0"}},{"id":3,"shape":[4,1],"dtype":"float32","from":{"input":"w","step":"0"}},
{"id":4,"shape":[2,1],"dtype":"int64","from":{"op":0}},{"id":5,"shape":[],"dtype":"int64","from":{"op":1}},{"id":6,"shape":[4,2],"dtype":"float32","from":{"op":2}},
{"id":7,"shape":[4],"dtype":"int64","from":{"op":3}},{"id":8,"shape":[4],"dtype":"int64","from":{"op":3}},{"id":9,"shape":[4,2],"dtype":"float32","from":{"op":4}},
{"id":10,"shape":[4,2],"dtype":"float32","from":{"op":5}}],
"ops":[{"op":"aten.nonzero.default","args":{"self":"%0"},"out":["%4"],"layer":"fc","call":1},
{"op":"aten.sum.default","args":{"self":"%4","dtype":null},"out":["%5"],"layer":"fc","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%1","other":"%5"},"out":["%6"],"layer":"fc","call":1},
{"op":"aten.sort.default","args":{"self":"%2","dim":-1,"descending":false},"out":["%7","%8"],"layer":"moe","call":1},
{"op":"aten.index.Tensor","args":{"self":"%6","indices":["%8"]},"out":["%9"],"layer":"moe","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%9","other":"%3"},"out":["%10"],"layer":"moe","call":1}],
"passes":[{"step":"0","ops":[0,6],"ports":{"model-input_mask":["%0",0,6],"model-input_x":["%1",0,6],"model-input_ids":["%2",0,6],"model-input_w":["%3",0,6],
"fc-output":["%6",3,3],"moe-output":["%10",6,6]}}]}`

// Where a choice went another way, and equal numbers put its rows in order, no one knows what that order is.
func TestRowsOfAnotherChoice(t *testing.T) {
	for _, tt := range []struct {
		mask, ids []float64
		wrong     []string
		reason    string
	}{
		{[]float64{1, 1, 0}, []float64{5, 5, 5, 5}, []string{"moe-output"}, "the reference's choice: what it makes is known"},
		{[]float64{1, 1, 1}, []float64{5, 5, 5, 5}, nil, "of another choice"},
		{[]float64{1, 1, 1}, []float64{5, 6, 7, 8}, []string{"moe-output"}, "one order alone"},
	} {
		have := map[string][]float64{"model-input_mask": tt.mask, "model-input_x": {1, 2, 3, 4, 5, 6, 7, 8}, "model-input_ids": tt.ids, "model-input_w": {1, 2, 3, 4},
			"fc-output": {1, 2, 3, 4, 5, 6, 7, 8}, "moe-output": {3, 4, 2, 4, 21, 24, 20, 24}}
		_, _, wrong := judge(t, strayed, tensor.F32, nil, portOf, by(portOf, have))
		assert.Equal(t, tt.wrong, wrong, tt.reason)
	}
}

// indexed is the two best of five scores, the positive part of x.
const indexed = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[3,5],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[3,5],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[3,2],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[3,2],"dtype":"int64","from":{"op":1}}],
"ops":[{"op":"aten.relu.default","args":{"self":"%0"},"out":["%1"],"layer":"indexer","call":1},
{"op":"aten.topk.default","args":{"self":"%1","k":2,"dim":-1,"largest":true,"sorted":true},"out":["%2","%3"],"layer":"indexer","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"indexer-input_0":["%0",0,2],"indexer-output":["%3",2,2]}}]}`

// Of a choice that is wrong the scores are looked for of which it is the best, in whatever order.
func TestOfScores(t *testing.T) {
	x := []float64{5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 3, 1, 5, 2, 4}
	load := func(*program.Value) (*replay.Array, error) { return nil, nil }
	r, run, _ := judge(t, indexed, tensor.F32, load, nameOf, by(nameOf, map[string][]float64{"input_0": x, "output": {3, 4, 1, 0, 1, 3}}),
		func(at program.Port, r *piece.Record) {
			if at.Name == "output" {
				r.Rows = &piece.Rows{Axis: 0, Batch: 1, Length: 3, Own: []bool{true, true, true}}
			}
		})
	require.Equal(t, []int{1}, r.Faults, "the two least are chosen")
	assert.Nil(t, r.Site(1, run.Load, nil, false).OfScores().Want, "what the scores should be is not known")
	negative := func(by ...float64) *replay.Array {
		for i, v := range x[len(by):] {
			by = append(by, -v-float64(i)/100)
		}
		return array(t, tensor.F32, []int{3, 5}, by)
	}
	inf, nan := math.Inf(-1), math.NaN()
	for _, tt := range []struct {
		scores *replay.Array
		rows   []bool
		right  bool
		reason string
	}{
		{negative(), nil, true, "the least first"},
		{negative(inf, inf, inf, -2, -1), nil, true, "all others are hidden"},
		{negative(inf, inf, inf, inf, -1), nil, true, "there are no two to choose from"},
		{negative(-2, -3, -4, -5, -1), nil, false, "one was left that is better"},
		{negative(-2, -3, -4, -5, -1), []bool{false, true, true}, true, "in a row that is not asked for"},
		{negative(-2, inf, inf, inf, -1), nil, false, "one that is hidden was chosen"},
		{negative(0, 0, 0, 0, nan), nil, false, "no number"},
		{array(t, tensor.F32, []int{3, 5}, make([]float64, 15)), nil, false, "of equal scores all are the best"},
		{array(t, tensor.F32, []int{2, 5}, x[:10]), nil, false, "another shape"},
	} {
		off, relative := r.Site(1, run.Load, tt.rows, false).OfScores().Off(tt.scores)
		assert.Equal(t, tt.right, off <= 1, "%s: %g", tt.reason, relative)
	}
}
