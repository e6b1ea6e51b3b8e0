package dump_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// ids is an input of a step.
func ids(t *testing.T, step, layer, port string, shape []int, v ...int64) dump.Entry {
	t.Helper()
	x, err := tensor.Of(v, shape...)
	require.NoError(t, err)
	return dump.Entry{Step: step, Layer: layer, Port: port, Tensor: x}
}

func tokens(text string, mask ...[]int) dump.Info {
	return dump.Info{TokenIDs: json.RawMessage(text), PadMask: mask}
}

// What a run was asked is in run.json, or in its inputs.
func TestTokens(t *testing.T) {
	floats, err := tensor.Of([]float32{5}, 1, 1)
	require.NoError(t, err)
	said := tokens(`[[1, 2, 3]]`)
	generated := tokens(`[[1, 2, 3]]`)
	generated.Generation = &dump.Generation{From: 2}
	first := ids(t, "0", "embed", "input_0", []int{2, 2}, 7, 8, 9, 10)
	for _, c := range []struct {
		info                       dump.Info
		entries                    []dump.Entry
		unpadded, prompts, decoded [][]int
		reason                     string
	}{
		{dump.Info{}, nil, nil, nil, nil, "nothing is said"},
		{tokens(`[4, 5]`), nil, [][]int{{4, 5}}, [][]int{{4, 5}}, nil, "a flat list is one sequence"},
		{tokens(`[[0, 1, 2], [3, 4, 5]]`, []int{0, 1, 1}, []int{1, 1, 1}), nil, [][]int{{1, 2}, {3, 4, 5}}, [][]int{{1, 2}, {3, 4, 5}}, nil, "padding is no token"},
		{tokens(`[[1, 2], [3, 4, 5]]`, []int{0, 1, 1}), nil, [][]int{{1, 2}, {3, 4, 5}}, [][]int{{1, 2}, {3, 4, 5}}, nil, "the ids are without it already"},
		{tokens(`[[0, 0], [3, 4]]`, []int{0, 0}, []int{1, 1}), nil, [][]int{{}, {3, 4}}, [][]int{{3, 4}}, nil, "a sequence of padding asks nothing"},
		{generated, nil, [][]int{{1, 2, 3}}, [][]int{{1, 2}}, nil, "the rest was generated"},
		{said, []dump.Entry{first}, [][]int{{1, 2, 3}}, [][]int{{7, 8}, {9, 10}}, nil, "the inputs show it"},
		{tokens(`[[1, 2]]`, []int{1, 1}), []dump.Entry{first}, [][]int{{1, 2}}, [][]int{{1, 2}}, nil, "inputs with padding do not"},
		{said, []dump.Entry{ids(t, "0", "embed_positions", "input_0", []int{1, 2}, 0, 1), ids(t, "0", "token_type_embeddings", "input_0", []int{1, 2}, 0, 0),
			ids(t, "0", "model", "input_position_ids", []int{1, 2}, 0, 1), ids(t, "0", "embed", "output", []int{1, 2}, 0, 1), ids(t, "0", "embed", "input_0", []int{1, 1, 2}, 0, 1),
			{Step: "0", Layer: "embed", Port: "input_0", Tensor: floats}}, [][]int{{1, 2, 3}}, [][]int{{1, 2, 3}}, nil, "none of these is of ids"},
		{said, []dump.Entry{first, ids(t, "1", "model", "input_input_ids", []int{2, 1}, 20, 30), ids(t, "2", "embed", "input_0", []int{2, 1}, 21, 31)},
			[][]int{{1, 2, 3}}, [][]int{{7, 8}, {9, 10}}, [][]int{{20, 21}, {30, 31}}, "decode steps"},
		{said, []dump.Entry{first, ids(t, "1", "model", "input_input_ids", []int{1, 2}, 20, 30)}, [][]int{{1, 2, 3}}, [][]int{{7, 8}, {9, 10}}, nil, "two tokens are no decode step"},
		{said, []dump.Entry{first, ids(t, "1", "model", "input_x", []int{1, 1}, 20)}, [][]int{{1, 2, 3}}, [][]int{{7, 8}, {9, 10}}, nil, "one that shows nothing"},
	} {
		r := dump.New("x", c.info, dump.OrderNatural, c.entries)
		assert.Equal(t, c.unpadded, r.Info.Unpadded(), c.reason)
		assert.Equal(t, c.prompts, r.Prompts(), c.reason)
		assert.Equal(t, c.decoded, r.Decoded(), c.reason)
	}
}

// A padded pass of sequences that the golden has is run along the path padding.
func TestAlongPadding(t *testing.T) {
	golden := &dump.Run{Info: tokens(`[[1, 2], [3, 4, 5]]`)}
	one := []dump.Entry{ids(t, "0", "m", "output", []int{1}, 1)}
	named := tokens(`[[0, 1, 2]]`, []int{0, 1, 1})
	named.Path = "batch"
	for _, c := range []struct {
		info    dump.Info
		entries []dump.Entry
		path    string // "" for none
		other   bool
		reason  string
	}{
		{tokens(`[[0, 1, 2], [3, 4, 5]]`, []int{0, 1, 1}, []int{1, 1, 1}), one, "padding:left", true, "in front"},
		{tokens(`[[1, 2, 0], [3, 4, 5]]`, []int{1, 1, 0}, []int{1, 1, 1}), one, "padding:right", true, "after"},
		{tokens(`[[0, 1, 9], [3, 4, 5]]`, []int{0, 1, 1}, []int{1, 1, 1}), one, "", true, "another sequence"},
		{tokens(`[[1, 2], [3, 4]]`, []int{1, 1}, []int{1, 1}), one, "", false, "nothing is padded"},
		{tokens(`[[0, 1, 2], [3, 4, 5]]`, []int{0, 1, 1}), one, "", true, "a mask of one sequence"},
		{named, one, "", true, "it has a path"},
		{tokens(`[[0, 1, 2]]`, []int{0, 1, 1}), append(one, ids(t, "1", "m", "output", []int{1}, 1)), "", true, "two passes"},
		{tokens(`[[0, 1, 2]]`, []int{0, 1, 1}), []dump.Entry{ids(t, "1", "m", "output", []int{1}, 1)}, "", true, "a later pass"},
	} {
		r := dump.New("x", c.info, dump.OrderNatural, c.entries)
		assert.Equal(t, c.other, r.OtherPadding(golden), c.reason)
		assert.False(t, r.OtherPadding(r), "%s: padded alike", c.reason)
		was := r.Info.Path
		require.Equal(t, c.path != "", r.AlongPadding(&dump.Run{}, golden), c.reason)
		if c.path == "" {
			assert.Equal(t, was, r.Info.Path, c.reason)
			continue
		}
		assert.Equal(t, c.path, r.Info.Path, c.reason)
		assert.Equal(t, [][]int{{1, 2}, {3, 4, 5}}, r.Info.Tokens(), c.reason)
		assert.Equal(t, [][]dump.PassItem{{{Sequence: 0, To: 2}, {Sequence: 1, To: 3}}}, r.Info.Passes, c.reason)
	}
}

func TestRun(t *testing.T) {
	x := ids(t, "0", "m", "output", []int{1}, 1)
	y := ids(t, "1", "m", "output", []int{1}, 1)
	r := dump.New("x", dump.Info{}, dump.OrderNatural, []dump.Entry{x, y})
	e, ok := r.Find("1", "m", "output")
	assert.Equal(t, []any{true, 1}, []any{ok, e.Seq})
	_, ok = r.Find("1", "m", "input_0")
	assert.False(t, ok)
	require.NoError(t, r.Changed())
	changed, closing := errors.New("changed"), errors.New("closing")
	r.Watch(func() error { return changed })
	r.OnClose(func() error { return closing })
	require.ErrorIs(t, r.Changed(), changed)
	require.ErrorIs(t, r.Close(), closing)
	require.NoError(t, r.Close(), "once")

	for text, e := range map[string]dump.Encoding{"bfloat16": {Compute: "bfloat16", KVCache: "bfloat16"}, "q4_k": {Compute: "q4_k"},
		"q4_k with a KV cache in float16": {Compute: "q4_k", KVCache: "float16"}} {
		assert.Equal(t, text, e.String())
	}
	for rule, a := range map[string]*dump.Activations{"": nil, "int8/32": {Block: 32}, "float8_e4m3fn": {Type: "float8_e4m3fn"}} {
		assert.Equal(t, rule, a.Rule())
		assert.NoError(t, a.Check())
	}
	for _, a := range []dump.Activations{{Block: 64}, {Type: "float8_e4m3fn", Block: 32}, {Type: "int8", Block: 32}} {
		assert.ErrorContains(t, a.Check(), "want float8_e4m3fn without blocks")
	}
	name := dump.PathCase("short", "lengths:3,5")
	assert.Equal(t, "short@lengths-3-5", name)
	of, isPath := dump.CutPathCase(name)
	assert.Equal(t, []any{"short", true}, []any{of, isPath})
	_, isPath = dump.CutPathCase("short")
	assert.False(t, isPath)
}

// Which tokens are real is told by what their queries may see, whichever way round a mask says it.
func TestRealTokens(t *testing.T) {
	mask := func(dtype tensor.DType, shape []int, x ...byte) dump.Entry {
		w, err := tensor.New(dtype, shape, x)
		require.NoError(t, err)
		return dump.Entry{Step: "0", Layer: "model.h.0", Port: "input_attention_mask", Tensor: w}
	}
	square := []int{1, 1, 3, 3}
	for _, tt := range []struct {
		entry  dump.Entry
		want   [][]bool
		reason string
	}{
		{mask(tensor.Bool, square, 1, 0, 0, 1, 1, 0, 1, 1, 1), nil, "causal, true for what may be seen: no padding"},
		{mask(tensor.Bool, square, 0, 1, 1, 0, 0, 1, 0, 0, 0), nil, "causal, true for what may not: no padding, either"},
		{mask(tensor.Bool, square, 0, 0, 0, 0, 1, 0, 0, 1, 1), [][]bool{{false, true, true}}, "padded on the left"},
		{mask(tensor.Bool, square, 1, 1, 1, 1, 0, 1, 1, 0, 0), [][]bool{{false, true, true}}, "the same, true for what may not be seen"},
		{mask(tensor.Bool, square, 0, 1, 1, 0, 0, 1, 0, 0, 1), [][]bool{{true, true, false}}, "padded on the right"},
		{mask(tensor.Bool, []int{1, 1, 2, 3}, 1, 1, 0, 1, 1, 1), nil, "two queries after one key of a cache"},
		{mask(tensor.Bool, []int{1, 1, 2, 3}, 0, 0, 1, 0, 0, 0), nil, "the same, true for what may not be seen"},
		{mask(tensor.Bool, []int{1, 1, 2, 3}, 1, 0, 1, 1, 1, 0), [][]bool{{false, true, true}}, "each sees itself alone"},
		{mask(tensor.Bool, []int{1, 1, 1, 3}, 0, 1, 1), [][]bool{{false, true, true}}, "one query: true is for what may be seen"},
		{mask(tensor.U8, []int{1, 3}, 0, 1, 1), [][]bool{{false, true, true}}, "of tokens"},
	} {
		run := &dump.Run{Entries: []dump.Entry{tt.entry}}
		assert.Equal(t, tt.want, run.RealTokens(), tt.reason)
	}
}
