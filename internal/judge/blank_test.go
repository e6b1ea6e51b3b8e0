package judge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// passes is the program of forward passes of which each was given ids and a mask and makes one number of each id;
// operand says which value the operator of a pass takes.
func passes(t *testing.T, ids, masks [][][]int64, operand func(pass int) int) *program.Program {
	t.Helper()
	var values, ops, list []string
	file := &tensor.File{}
	for k := range ids {
		for _, in := range []struct {
			name string
			rows [][]int64
		}{{"input_ids", ids[k]}, {"attention_mask", masks[k]}} {
			var all []int64
			for _, row := range in.rows {
				all = append(all, row...)
			}
			if all == nil {
				continue
			}
			x, err := tensor.Of(all, len(in.rows), len(in.rows[0]))
			require.NoError(t, err)
			file.Tensors = append(file.Tensors, tensor.Named{Name: fmt.Sprintf("input:%d:%s", k, in.name), Tensor: x})
		}
		shape := "[1,2]"
		if ids[k] != nil {
			shape = fmt.Sprintf("[%d,%d]", len(ids[k]), len(ids[k][0]))
		}
		v := 3 * k
		values = append(values, fmt.Sprintf(`{"id":%d,"shape":%s,"dtype":"int64","from":{"input":"input_ids","step":"%d"}}`, v, shape, k),
			fmt.Sprintf(`{"id":%d,"shape":%s,"dtype":"float32","from":{"op":%d}}`, v+1, shape, 2*k),
			fmt.Sprintf(`{"id":%d,"shape":%s,"dtype":"complex64","from":{"op":%d}}`, v+2, shape, 2*k+1))
		for i, from := range []int{operand(k), 3 * len(ids)} { // the second takes a weight
			ops = append(ops, fmt.Sprintf(`{"op":"aten.some.default","args":{"self":"%%%d"},"out":["%%%d"],"layer":"model","call":1}`, from, v+1+i))
		}
		list = append(list, fmt.Sprintf(`{"step":"%d","ops":[%d,%d],"ports":{"model-input_0":["%%%d",%d,%d],"model-output":["%%%d",%d,%d],"model.freqs-output":["%%%d",%d,%d]}}`,
			k, 2*k, 2*k+2, v, 2*k, 2*k, v+1, 2*k+1, 2*k+1, v+2, 2*k+2, 2*k+2))
	}
	values = append(values, fmt.Sprintf(`{"id":%d,"shape":[2],"dtype":"float32","from":{"weight":"w"}}`, 3*len(ids)))
	text := fmt.Sprintf(`{"schema":1,"engine":"torch 2.9","case":"c","values":[%s],"ops":[%s],"passes":[%s]}`,
		strings.Join(values, ","), strings.Join(ops, ","), strings.Join(list, ","))
	p, err := program.Parse("p", []byte(text), func() (*tensor.File, error) { return file, nil })
	require.NoError(t, err)
	return p
}

// What stands for the golden of a program: its ports, what the model was given, and the tokens of each pass.
func TestBlank(t *testing.T) {
	own := func(pass int) int { return 3 * pass }
	first, second := [][]int64{{0, 1, 2}, {3, 4, 5}}, [][]int64{{6, 7}}
	part := func(sequence, to int) dump.PassItem { return dump.PassItem{Sequence: sequence, To: to, Fresh: true} }
	for _, tt := range []struct {
		ids, masks [][][]int64
		operand    func(pass int) int
		tokens     string
		padded     [2][][]int // the padding of the two passes
		passes     [][]dump.PassItem
		reason     string
	}{
		{[][][]int64{first, second}, [][][]int64{{{1, 1, 1}, {1, 1, 1}}, nil}, own, "[[0,1,2],[3,4,5],[6,7]]", [2][][]int{},
			[][]dump.PassItem{{part(0, 3), part(1, 3)}, {part(2, 2)}}, "passes of their own"},
		{[][][]int64{first, second}, [][][]int64{{{0, 1, 1}, {1, 1, 1}}, {{1, 0}}}, own, "[[1,2],[3,4,5],[6]]", [2][][]int{{{0, 1, 1}, {1, 1, 1}}, {{1, 0}}},
			[][]dump.PassItem{{part(0, 2), part(1, 3)}, {part(2, 1)}}, "with padding"},
		{[][][]int64{first, second}, [][][]int64{{{0, 1, 1}, {1, 1, 1}}, nil}, func(int) int { return 0 }, "[[0,1,2],[3,4,5]]", [2][][]int{{{0, 1, 1}, {1, 1, 1}}},
			nil, "the second goes on with what the first was given"},
		{[][][]int64{first, second}, [][][]int64{nil, nil}, func(pass int) int { return pass }, "[[0,1,2],[3,4,5]]", [2][][]int{}, nil,
			"the second goes on with what the first made"},
		{[][][]int64{first}, [][][]int64{{{1, 1, 0}, {1, 1, 1}}}, own, "[[0,1,2],[3,4,5]]", [2][][]int{{{1, 1, 0}, {1, 1, 1}}}, nil, "one pass"},
		{[][][]int64{first, nil}, [][][]int64{nil, nil}, own, "[[0,1,2],[3,4,5]]", [2][][]int{}, nil, "nobody knows what the second was given"},
	} {
		runs, err := judge.Blanks([]*program.Program{passes(t, tt.ids, tt.masks, tt.operand)})
		require.NoError(t, err, tt.reason)
		info := runs[0].Info
		assert.JSONEq(t, tt.tokens, string(info.TokenIDs), tt.reason)
		assert.Equal(t, tt.padded, [2][][]int{info.PadMask, info.PadMasks["1"]}, tt.reason)
		assert.Equal(t, tt.passes, info.Passes, tt.reason)
		assert.Equal(t, []string{"torch", "2.9"}, []string{info.Engine, info.Versions["torch"]}, tt.reason)
		require.Len(t, runs[0].Entries, 2*len(tt.ids), "%s: no complex numbers", tt.reason)
		in, out := runs[0].Entries[0], runs[0].Entries[1]
		assert.Equal(t, []float64{0, 5}, []float64{in.Tensor.At(0), in.Tensor.At(5)}, "%s: what it was given", tt.reason)
		assert.Equal(t, []string{"model", "output", "0"}, []string{out.Layer, out.Port, out.Step}, tt.reason)
		assert.Equal(t, tensor.F32, out.Tensor.DType(), tt.reason)
		assert.Equal(t, []int{2, 3}, out.Tensor.Shape(), tt.reason)
		if len(tt.ids) > 1 {
			assert.NotEqual(t, out.Tensor.At(0), runs[0].Entries[3].Tensor.At(0), "%s: another number for each value", tt.reason)
		}
	}
}

// What is replayed is the same in memory and in the file, which goes in the end.
func TestSpill(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var opt judge.AloneOptions
	undo, err := opt.Spill()
	require.NoError(t, err)
	large, err := tensor.Of([]float32{7}, 1)
	require.NoError(t, err)
	large, err = large.Broadcast(judge.InMemory/4 - 2) // all but 8 bytes
	require.NoError(t, err)
	_, err = opt.Keep(large)
	require.NoError(t, err)
	files := func() []string {
		names, err := filepath.Glob(filepath.Join(os.TempDir(), "goparity-replayed-*", "tensors"))
		require.NoError(t, err)
		return names
	}
	var kept []*tensor.Tensor
	for k := range 4 {
		x, err := tensor.Of([]float32{float32(k), 1}, 2)
		require.NoError(t, err)
		x, err = opt.Keep(x)
		require.NoError(t, err)
		kept = append(kept, x)
		assert.Equal(t, k > 0, len(files()) == 1, "what is more than the limit is written")
	}
	for k, x := range kept {
		assert.Equal(t, []float64{float64(k), 1}, []float64{x.At(0), x.At(1)})
	}
	require.NoError(t, undo())
	assert.Empty(t, files())
	undo, err = opt.Spill()
	require.NoError(t, err)
	assert.NoError(t, undo(), "nothing was kept")
}
