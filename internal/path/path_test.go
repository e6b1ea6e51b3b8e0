package path_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/tensor"
)

// item is a part of a sequence that a forward pass fed.
func item(sequence, from, to int) dump.PassItem {
	return dump.PassItem{Sequence: sequence, From: from, To: to}
}

// run makes a run of tensors by step and name; the values of each are 0, 1, … or those given.
func run(t *testing.T, info dump.Info, tokens [][]int, entries ...dump.Entry) *dump.Run {
	ids, err := json.Marshal(tokens)
	require.NoError(t, err)
	info.Schema, info.TokenIDs = 2, ids
	return dump.New("run", info, dump.OrderRunFile, entries)
}

func entry(t *testing.T, step, layer, port string, shape []int, values ...float32) dump.Entry {
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	for i := len(values); i < n; i++ {
		values = append(values, float32(i))
	}
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return dump.Entry{Step: step, Layer: layer, Port: port, Tensor: x}
}

func values(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Len())
	x.Float64s(out, 0)
	return out
}

// A golden of two tokens in one pass, each with two numbers, beside a run of one token at a time.
func TestFrom(t *testing.T) {
	golden := run(t, dump.Info{}, [][]int{{7, 8, 9}}, entry(t, "0", "a", "output", []int{1, 3, 2}),
		entry(t, "0", "a", "output_1", []int{1, 1, 3, 3}), entry(t, "0", "pooler", "output", []int{1, 2}))
	tests := []struct {
		name   string
		info   dump.Info
		tokens [][]int
		made   []dump.Entry
		want   map[string][]float64 // of the golden's layer a, by step
		laid   map[string][]float64 // of the run's
		reason string
	}{
		{"decode", dump.Info{Path: "decode:1", Passes: [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}}}, [][]int{{7, 8, 9}},
			[]dump.Entry{entry(t, "0", "a", "output", []int{1, 2, 2}), entry(t, "1", "a", "output", []int{1, 1, 2}, 4, 5)},
			map[string][]float64{"0": {0, 1, 2, 3}, "1": {4, 5}}, map[string][]float64{"0": {0, 1, 2, 3}, "1": {4, 5}},
			"the rows that each pass fed"},
		{"ragged batch", dump.Info{Path: "batch", Passes: [][]dump.PassItem{{item(1, 0, 2), item(0, 0, 3)}}}, [][]int{{7, 8, 9}, {7, 8}},
			[]dump.Entry{entry(t, "0", "a", "output", []int{5, 2})},
			map[string][]float64{"0": {0, 1, 2, 3, 0, 1, 2, 3, 4, 5}}, map[string][]float64{"0": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
			"in the order of the items; a beginning takes the longer one's rows"},
		{"padded", dump.Info{Path: "padding:left", PadMask: [][]int{{1, 1, 1}, {0, 1, 1}},
			Passes: [][]dump.PassItem{{item(0, 0, 3), item(1, 0, 2)}}}, [][]int{{7, 8, 9}, {7, 8}},
			[]dump.Entry{entry(t, "0", "a", "output", []int{2, 3, 2})},
			map[string][]float64{"0": {0, 1, 2, 3, 4, 5, 0, 1, 2, 3}}, map[string][]float64{"0": {0, 1, 2, 3, 4, 5, 8, 9, 10, 11}},
			"padding is left out"},
		{"even", dump.Info{Path: "batch", Passes: [][]dump.PassItem{{item(1, 0, 3), item(0, 0, 3)}}}, [][]int{{7, 8, 9}, {7, 8, 9}},
			[]dump.Entry{entry(t, "0", "a", "output", []int{2, 3, 2})},
			map[string][]float64{"0": {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}}, map[string][]float64{"0": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
			"a line for each"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			actual, err := path.New(run(t, tt.info, tt.tokens, tt.made...), nil)
			require.NoError(t, err)
			require.NoError(t, actual.Check())
			one, err := path.New(golden, actual)
			require.NoError(t, err)
			require.NoError(t, one.IsOnePass())
			assert.Equal(t, []string{"a-output_1"}, one.Left, "attention weights have a number for each token")
			found, err := actual.From(one)
			require.NoError(t, err)
			assert.Equal(t, len(tt.tokens) > 1 && len(tt.tokens[1]) < 3, found.Assumed, "a beginning is right if the model is causal")
			for step, want := range tt.want {
				e, ok := found.Run.Find(step, "a", "output")
				require.True(t, ok)
				assert.Equal(t, want, values(e.Tensor), tt.reason)
				e, ok = actual.Run.Find(step, "a", "output")
				require.True(t, ok)
				assert.Equal(t, tt.laid[step], values(e.Tensor), tt.reason)
			}
		})
	}
}

// What pools a sequence has one row for each, that of its last token.
func TestPooled(t *testing.T) {
	golden := run(t, dump.Info{}, [][]int{{7, 8, 9}, {4, 5}}, entry(t, "0", "a", "output", []int{5, 2}), entry(t, "0", "pooler", "output", []int{2, 2}))
	for _, tt := range []struct {
		passes [][]dump.PassItem
		made   []dump.Entry
		want   map[string][]float64 // by step; nil for none
		reason string
	}{
		{[][]dump.PassItem{{item(1, 0, 2), item(0, 0, 3)}}, []dump.Entry{entry(t, "0", "a", "output", []int{5, 2}), entry(t, "0", "pooler", "output", []int{2, 1, 2})},
			map[string][]float64{"0": {2, 3, 0, 1}}, "in the order of the items"},
		{[][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}, {item(1, 0, 2)}},
			[]dump.Entry{entry(t, "0", "a", "output", []int{2, 2}), entry(t, "1", "a", "output", []int{1, 2}), entry(t, "2", "a", "output", []int{2, 2}), entry(t, "0", "pooler", "output", []int{1, 2})},
			map[string][]float64{"0": nil, "1": {0, 1}, "2": {2, 3}}, "the golden has that of the last token alone"},
	} {
		actual, err := path.New(run(t, dump.Info{Path: "batch", Passes: tt.passes}, [][]int{{7, 8, 9}, {4, 5}}, tt.made...), nil)
		require.NoError(t, err)
		one, err := path.New(golden, actual)
		require.NoError(t, err)
		found, err := actual.From(one)
		require.NoError(t, err)
		for step, want := range tt.want {
			e, ok := found.Run.Find(step, "pooler", "output")
			require.Equal(t, want != nil, ok, "%s, step %s", tt.reason, step)
			if ok {
				assert.Equal(t, want, values(e.Tensor), tt.reason)
			}
		}
	}
}

// Heads stand before the tokens: rows are those of all heads, and padding is that of each.
func TestHeads(t *testing.T) {
	actual, err := path.New(run(t, dump.Info{Path: "padding:left", PadMask: [][]int{{1, 1, 1}, {0, 1, 1}},
		Passes: [][]dump.PassItem{{item(0, 0, 3), item(1, 0, 2)}}}, [][]int{{7, 8, 9}, {7, 8}}, entry(t, "0", "a", "output", []int{2, 2, 3, 2})), nil)
	require.NoError(t, err)
	one, err := path.New(run(t, dump.Info{}, [][]int{{7, 8, 9}}, entry(t, "0", "a", "output", []int{1, 2, 3, 2})), actual)
	require.NoError(t, err)
	found, err := actual.From(one)
	require.NoError(t, err)
	for _, tt := range []struct {
		run  *dump.Run
		want []float64
	}{
		{found.Run, []float64{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 6, 7, 8, 9}},
		{actual.Run, []float64{0, 1, 2, 3, 4, 5, 14, 15, 16, 17, 6, 7, 8, 9, 10, 11, 20, 21, 22, 23}},
	} {
		e, ok := tt.run.Find("0", "a", "output")
		require.True(t, ok)
		assert.Equal(t, []int{1, 2, 5, 2}, e.Tensor.Shape())
		assert.Equal(t, tt.want, values(e.Tensor))
	}
	assert.Equal(t, 2, actual.Axis("a", "output"))
	pad, left := actual.Padding(actual.Passes[0], 1, "a", "output")
	assert.True(t, left)
	assert.Equal(t, []float64{12, 13, 18, 19}, values(pad))
	pad, _ = actual.Padding(actual.Passes[0], 0, "a", "output")
	assert.Nil(t, pad, "the longest has none")
	parts, err := actual.Rows("a", "output", 1, 1, 2)
	require.NoError(t, err)
	require.Len(t, parts, 1)
	assert.Equal(t, []float64{16, 17, 22, 23}, values(parts[0]))
}

// Which passes show a path, and what they lack.
func TestCheck(t *testing.T) {
	tests := []struct {
		path   string
		tokens [][]int
		passes [][]dump.PassItem
		mask   [][]int
		want   string // of the error; "" for none
	}{
		{"decode", [][]int{{1, 2}}, [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}}, nil, ""},
		{"decode", [][]int{{1, 2}}, [][]dump.PassItem{{item(0, 0, 2)}}, nil, "single token"},
		{"chunked:2", [][]int{{1, 2, 3}}, [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}}, nil, "a chunk of two tokens"},
		{"chunked:2", [][]int{{1, 2, 3, 4}}, [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 4)}}, nil, ""},
		{"turns", [][]int{{1, 2, 3, 4}}, [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 4)}}, nil, "two tokens or more after 1 of a single one"},
		{"turns", [][]int{{1, 2, 3, 4}}, [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 3)}, {item(0, 3, 4)}}, nil, "after 1 of a single one"},
		{"turns", [][]int{{1, 2, 3, 4}}, [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}, {item(0, 2, 4)}}, nil, ""},
		{"turns:2", [][]int{{1, 2, 3, 4}}, [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}, {item(0, 2, 4)}}, nil, "after 2 of a single one"},
		{"batch", [][]int{{1}, {2}}, [][]dump.PassItem{{item(0, 0, 1)}, {item(1, 0, 1)}}, nil, "two sequences"},
		{"batch:1", [][]int{{1, 2}, {3, 4}}, [][]dump.PassItem{{item(0, 0, 1), item(1, 0, 1)}, {item(0, 1, 2)}, {item(1, 1, 2)}}, nil, "single token of two sequences"},
		{"batch:1", [][]int{{1, 2}, {3, 4}}, [][]dump.PassItem{{item(0, 0, 1), item(1, 0, 1)}, {item(0, 1, 2), item(1, 1, 2)}}, nil, ""},
		{"padding:left", [][]int{{1, 2}, {3}}, [][]dump.PassItem{{item(0, 0, 2), item(1, 0, 1)}}, [][]int{{1, 1}, {1, 0}}, "padding on the left"},
		{"padding:right", [][]int{{1, 2}, {3}}, [][]dump.PassItem{{item(0, 0, 2), item(1, 0, 1)}}, [][]int{{1, 1}, {1, 0}}, ""},
		{"prefix", [][]int{{1, 2}}, [][]dump.PassItem{{item(0, 0, 2)}}, nil, "no hit"},
		{"prefix", [][]int{{1, 2}}, [][]dump.PassItem{{{From: 1, To: 2, CachedTokens: 1}}}, nil, "a pass that fed the 1 tokens which step 0 took from the cache"},
		{"prefix", [][]int{{1, 3}, {1, 2}}, [][]dump.PassItem{{item(0, 0, 2)}, {{Sequence: 1, From: 1, To: 2, CachedTokens: 1}}}, nil, ""},
		{"prefix", [][]int{{4, 3}, {1, 2}}, [][]dump.PassItem{{item(0, 0, 2)}, {{Sequence: 1, From: 1, To: 2, CachedTokens: 1}}}, nil, "a pass that fed the 1 tokens which step 1"},
		{"decode:2", [][]int{{1, 2, 3}}, [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}, {item(0, 2, 3)}}, nil, ""},
		{"decode:3", [][]int{{1, 2}}, [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}}, nil, "3 forward passes of a single token"},
		{"chunked:4", [][]int{{1, 2, 3, 4}}, [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 4)}}, nil, "chunks of 4 tokens"},
		{"chunked:2", [][]int{{1, 2, 3, 4, 5}}, [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 5)}}, nil, "chunks of 2 tokens"},
		{"chunked:3", [][]int{{1, 2, 3, 4, 5, 6}}, [][]dump.PassItem{{item(0, 0, 3)}, {item(0, 3, 5)}, {item(0, 5, 6)}}, nil, ""},
		{"repeat:2", [][]int{{1, 2}}, [][]dump.PassItem{{item(0, 0, 2)}}, nil, "2 runs of one sequence"},
		{"repeat:2", [][]int{{1, 2}}, [][]dump.PassItem{{item(0, 0, 2)}, {{To: 2, Fresh: true}}}, nil, ""},
		{"lengths:1,2", [][]int{{1, 2, 3}}, [][]dump.PassItem{{item(0, 0, 1)}, {{To: 2, Fresh: true}}}, nil, ""},
		{"lengths:1,2", [][]int{{1, 2, 3}}, [][]dump.PassItem{{item(0, 0, 1)}}, nil, "the first 2 tokens"},
		{"chunked:2", [][]int{{1, 2, 3, 4, 5}}, [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 4)}}, nil, "no forward pass fed token 4 of sequence 0"},
	}
	for _, tt := range tests {
		var entries []dump.Entry
		for k, p := range tt.passes {
			n := 0
			for _, i := range p {
				n += i.To - i.From
			}
			if tt.mask != nil {
				n = len(tt.mask) * len(tt.mask[0])
			}
			shape := []int{n, 1}
			if tt.mask != nil {
				shape = []int{len(tt.mask), len(tt.mask[0]), 1}
			}
			entries = append(entries, entry(t, string(rune('0'+k)), "a", "output", shape))
		}
		s, err := path.New(run(t, dump.Info{Path: tt.path, Passes: tt.passes, PadMask: tt.mask}, tt.tokens, entries...), nil)
		require.NoError(t, err, tt.path)
		if err := s.Check(); tt.want == "" {
			assert.NoError(t, err, tt.path)
		} else {
			assert.ErrorContains(t, err, tt.want, tt.path)
		}
	}
}

// A golden that decodes past its prompt holds the rows of the tokens that it decoded, too.
func TestDecodedGolden(t *testing.T) {
	ids := func(step string, tokens ...int64) dump.Entry {
		x, err := tensor.Of(tokens, 1, len(tokens))
		require.NoError(t, err)
		return dump.Entry{Step: step, Layer: "model", Port: "input_input_ids", Tensor: x}
	}
	golden, err := path.New(run(t, dump.Info{}, [][]int{{7, 8}}, ids("0", 7, 8), entry(t, "0", "a", "output", []int{1, 2, 2}),
		ids("1", 9), entry(t, "1", "a", "output", []int{1, 1, 2}, 4, 5)), nil)
	require.NoError(t, err)
	require.NoError(t, golden.IsOnePass())
	assert.Equal(t, [][]int{{7, 8, 9}}, golden.Tokens)
	actual, err := path.New(run(t, dump.Info{Path: "chunked:1", Passes: [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 3)}}},
		[][]int{{7, 8, 9}}, entry(t, "0", "a", "output", []int{1, 2}), entry(t, "1", "a", "output", []int{2, 2})), nil)
	require.NoError(t, err)
	found, err := actual.From(golden)
	require.NoError(t, err)
	assert.False(t, found.Assumed, "it is the whole sequence")
	e, ok := found.Run.Find("1", "a", "output")
	require.True(t, ok)
	assert.Equal(t, []float64{2, 3, 4, 5}, values(e.Tensor), "one row of each step")
}

// A run that was forced along a text feeds the prompt, and then a token in each step; the last token of the text decides no
// other, and need not be fed.
func TestGeneration(t *testing.T) {
	text := [][]int{{7, 8, 9, 10}}
	out := func(step string, n int) dump.Entry { return entry(t, step, "a", "output", []int{1, n, 2}) }
	for _, tt := range []struct {
		made   []dump.Entry
		items  map[string]dump.PassItem
		tokens []int
		err    string
		reason string
	}{
		{[]dump.Entry{out("0", 4)}, map[string]dump.PassItem{"0": item(0, 0, 4)}, []int{7, 8, 9, 10}, "", "in one pass"},
		{[]dump.Entry{out("0", 3)}, map[string]dump.PassItem{"0": item(0, 0, 3)}, []int{7, 8, 9}, "", "in one pass, without the last"},
		{[]dump.Entry{out("0", 3), entry(t, "0", "b", "output", []int{4, 2}), entry(t, "0", "c", "output", []int{4, 2})},
			map[string]dump.PassItem{"0": item(0, 0, 4)}, []int{7, 8, 9, 10}, "", "most have the last"},
		{[]dump.Entry{out("0", 2), out("1", 1), out("2", 1)}, map[string]dump.PassItem{"0": item(0, 0, 2), "1": item(0, 2, 3), "2": item(0, 3, 4)}, []int{7, 8, 9, 10}, "", "in steps"},
		{[]dump.Entry{out("0", 2), out("1", 1)}, map[string]dump.PassItem{"0": item(0, 0, 2), "1": item(0, 2, 3)}, []int{7, 8, 9}, "", "without the last"},
		{[]dump.Entry{out("0", 2), out("2", 1)}, map[string]dump.PassItem{"0": item(0, 0, 2), "2": item(0, 3, 4)}, []int{7, 8, 9, 10}, "", "a step that is missing moves no other"},
		{[]dump.Entry{out("prefill", 2), out("then", 1)}, map[string]dump.PassItem{"prefill": item(0, 0, 2), "then": item(0, 2, 3)}, []int{7, 8, 9}, "", "names that are no numbers"},
		{[]dump.Entry{out("0", 2), out("3", 1)}, nil, nil, "step 3 of run feeds token 4, token_ids of run.json has 4", "beyond the text"},
	} {
		s, err := path.New(run(t, dump.Info{Generation: &dump.Generation{From: 2, Tokens: []int{9, 10}}}, text, tt.made...), nil)
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		items := map[string]dump.PassItem{}
		for _, p := range s.Passes {
			require.Len(t, p.Items, 1, tt.reason)
			items[p.Step] = p.Items[0]
		}
		assert.Equal(t, tt.items, items, tt.reason)
		assert.Equal(t, [][]int{tt.tokens}, s.Tokens, tt.reason)
		assert.NoError(t, s.IsOnePass(), "so goldens are made")
	}
}

// What cannot be put beside a golden is an error that says why.
func TestErrors(t *testing.T) {
	chunks := [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}}
	two := []dump.Entry{entry(t, "0", "a", "output", []int{1, 2}), entry(t, "1", "a", "output", []int{1, 2})}
	padded := dump.Info{Path: "padding:left", PadMask: [][]int{{1, 1}, {1, 1}}, Passes: [][]dump.PassItem{{item(0, 0, 2), item(1, 0, 1)}}}
	for _, tt := range []struct {
		info   dump.Info
		tokens [][]int
		made   []dump.Entry
		want   string
	}{
		{dump.Info{Path: "chunked:1", Passes: chunks}, [][]int{{1, 2}}, two[:1], `passes[1] has no tensors in run: want a step "1"`},
		{padded, [][]int{{1, 2}, {3}}, two[:1], "row 1 of the padding mask of step 0 has 2 tokens, passes[0][1] feeds 1"},
		{dump.Info{PadMask: [][]int{{1, 1}, {1, 1}}, Passes: [][]dump.PassItem{{item(0, 0, 2)}}}, [][]int{{1, 2}}, two[:1],
			"the padding mask of step 0 has 2 sequences, the forward pass feeds 1"},
		{dump.Info{}, [][]int{}, two[:1], "run has no token_ids in run.json"},
		{dump.Info{}, [][]int{{1, 2, 3}}, []dump.Entry{entry(t, "0", "a", "output", []int{4, 2})},
			"run has no tensor with a row for each token that passes fed: its first is a-output [4 2]"},
	} {
		_, err := path.New(run(t, tt.info, tt.tokens, tt.made...), nil)
		assert.ErrorContains(t, err, tt.want)
	}
	chunked, err := path.New(run(t, dump.Info{Path: "chunked:1", Passes: chunks}, [][]int{{1, 2}}, two...), nil)
	require.NoError(t, err)
	assert.ErrorContains(t, chunked.IsOnePass(), "was run along chunked:1: want a run of one pass")
	other, err := path.New(run(t, dump.Info{}, [][]int{{1, 3}}, entry(t, "0", "a", "output", []int{2, 2})), nil)
	require.NoError(t, err)
	_, err = chunked.From(other)
	assert.ErrorContains(t, err, "token 1 of sequence 0 is 2 in the candidate and 3 in the golden that is most like it")
	exact := *other
	exact.Tokens, exact.Exact = [][]int{{1, 2, 3}}, true
	_, err = chunked.From(&exact)
	assert.ErrorContains(t, err, "sequence 0 of the candidate has the first 2 tokens of a golden alone, and its rows may depend on later ones")
	parts, err := path.New(run(t, dump.Info{Passes: chunks}, [][]int{{1, 2}}, two...), nil)
	require.NoError(t, err)
	assert.ErrorContains(t, parts.IsOnePass(), "forward pass 0 fed sequence 0 tokens 0–0 of 2: want a run of one pass")
	shorter, err := path.New(run(t, dump.Info{}, [][]int{{1}}, entry(t, "0", "a", "output", []int{1, 1, 2})), nil)
	require.NoError(t, err)
	_, err = chunked.From(shorter)
	assert.ErrorContains(t, err, "sequence 0 of the candidate has 2 tokens, and the golden ends after 1 of them")
}
