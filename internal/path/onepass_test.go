package path_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/tensor"
)

func fresh(sequence, from, to int) dump.PassItem {
	return dump.PassItem{Sequence: sequence, From: from, To: to, Fresh: true}
}

// passes makes forward passes as run.json says them; masks are by pass.
func passes(t *testing.T, tokens [][]int, items [][]dump.PassItem, masks map[int][][]int) []*path.Pass {
	ids, err := json.Marshal(tokens)
	require.NoError(t, err)
	info := dump.Info{Schema: 2, TokenIDs: ids, Passes: items, PadMask: masks[0], PadMasks: map[string][][]int{}}
	var entries []dump.Entry
	for k := range items {
		step := fmt.Sprint(k)
		if m := masks[k]; m != nil && k > 0 {
			info.PadMasks[step] = m
		}
		x := must(tensor.Of([]float32{0}))
		entries = append(entries, dump.Entry{Step: step, Layer: "x", Port: "output", Tensor: x})
	}
	list, _, err := path.Passes(dump.New("run", info, dump.OrderRunFile, entries))
	require.NoError(t, err)
	return list
}

// one is the pass of the reference over a whole sequence.
func one(t *testing.T, n int) *path.Pass {
	return passes(t, [][]int{ids(n)}, [][]dump.PassItem{{item(0, 0, n)}}, nil)[0]
}

func ids(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// array is a tensor whose values may be set.
type array struct {
	shape  []int
	values []float32
}

func random(r *rand.Rand, shape ...int) array {
	a := zeros(shape...)
	for i := range a.values {
		a.values[i] = 1 + r.Float32()
	}
	return a
}

func zeros(shape ...int) array {
	n, err := tensor.NumElems(shape)
	if err != nil {
		panic(err)
	}
	return array{shape, make([]float32, n)}
}

func (a array) tensor() *tensor.Tensor { return must(tensor.Of(a.values, a.shape...)) }

func of(x *tensor.Tensor) array { return array{x.Shape(), numbers(x)} }

func must(x *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return x
}

// cut returns the rows of axis from ≤ i < to.
func (a array) cut(axis, from, to int) array { return of(must(a.tensor().Slice(axis, from, to))) }

// join puts arrays side by side along an axis.
func join(axis int, parts ...array) array {
	var list []*tensor.Tensor
	for _, p := range parts {
		list = append(list, p.tensor())
	}
	return of(must(tensor.Concat(axis, list...)))
}

func (a array) as(shape ...int) array { return array{shape, a.values} }

// input is of a run: its tokens, forward passes and masks, and what each pass recorded.
func input(t *testing.T, tokens [][]int, items [][]dump.PassItem, masks map[int][][]int, parts ...array) *path.Recorded {
	return path.NewRecorded(tokens, passes(t, tokens, items, masks), recorded(parts...))
}

// laid lays one port out on the reference's pass over run, and returns it with the layout.
func laid(t *testing.T, in *path.Recorded, run int, p path.Port, n int) (*path.Laid, *path.Layout) {
	p.Layer, p.Name = "a", "output"
	l := in.Lay([]path.Port{p}, path.NewGrid(one(t, n), []*path.Run{in.Runs[run]}))
	return l.Ports[0], l
}

func recorded(parts ...array) path.Record {
	var list []*tensor.Tensor
	for _, p := range parts {
		if p.shape == nil {
			list = append(list, nil)
			continue
		}
		list = append(list, p.tensor())
	}
	return func(pass int, _, _ string) *tensor.Tensor { return list[pass] }
}

func numbers(x *tensor.Tensor) []float32 {
	out := make([]float32, x.Len())
	x.Float32s(out, 0)
	return out
}

// The forms in which the rows of a pass may lie besides those of the whole (TestRandomChunks), each of a
// random tensor of one pass of 7 tokens: the parts, laid out, are the whole again.
func TestForms(t *testing.T) {
	const n, w, h = 7, 3, 2
	r := rand.New(rand.NewPCG(1, 2))
	decode := [][]dump.PassItem{{item(0, 0, 5)}, {item(0, 5, 6)}, {item(0, 6, 7)}}
	cuts := func(a array, axis int) []array {
		return []array{a.cut(axis, 0, 5), a.cut(axis, 5, 6), a.cut(axis, 6, 7)}
	}
	rows, channels, weights, square := random(r, 1, n, w), random(r, 1, w, n), random(r, 1, h, n, n), random(r, 1, n, n, w)
	after := random(r, 1, n, h, n)
	flat := cuts(rows, 1)
	for i, p := range flat {
		flat[i] = p.as(p.shape[1:]...)
	}
	single := cuts(channels, 2)
	single[1], single[2] = single[1].as(1, w), single[2].as(1, w)
	positions, keys := rows.cut(2, 0, 1), weights.cut(1, 0, 1).as(n, n)
	for _, tt := range []struct {
		name   string
		shape  []int
		whole  array
		parts  []array
		reason string
	}{
		{"no batch", rows.shape, rows, flat, "[q w] for [1 n w], as MAX has it"},
		{"batch", []int{n, w}, rows.as(n, w), cuts(rows, 1), "[1 q w] for [n w]"},
		{"single row", channels.shape, channels, single, "[1 C] for [1 C 1]: a step of a state space"},
		{"positions", []int{1, n}, positions.as(1, n), cuts(positions.as(n), 0), "[q] for [1 n]"},
		{"as many heads as tokens", square.shape, square, cuts(square, 2), "one pass alone would be ambiguous"},
		{"keys", weights.shape, weights, []array{weights.cut(2, 0, 5).cut(3, 0, 5), weights.cut(2, 5, 6).cut(3, 0, 6), weights.cut(2, 6, 7)}, "[1 h q kv]"},
		{"heads after the rows", after.shape, after, []array{after.cut(1, 0, 5).cut(3, 0, 5), after.cut(1, 5, 6).cut(3, 0, 6), after.cut(1, 6, 7)}, "[1 q h kv]"},
		{"keys alone", keys.shape, keys, []array{keys.cut(0, 0, 5).cut(1, 0, 5), keys.cut(0, 5, 6).cut(1, 0, 6), keys.cut(0, 6, 7)}, "[q kv]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, [][]int{ids(n)}, decode, nil, tt.parts...)
			got, l := laid(t, in, 0, path.Port{Shape: tt.shape, Fed: true}, n)
			require.NotNil(t, got, "%v %v", l.Unlaid, tt.reason)
			assert.Equal(t, slices.Repeat([]bool{true}, n), got.Have, tt.reason)
			assert.Equal(t, got.Have, got.Own)
			assert.Equal(t, []int{0, 0, 0, 0, 0, 1, 2}, got.Pass)
			assert.Empty(t, l.Notes)
			for i, v := range numbers(got.Tensor) {
				if got.Keys == nil || got.Keys[i] {
					assert.Equal(t, tt.whole.values[i], v, tt.reason)
				} else {
					assert.Zero(t, v, "a key that came later")
				}
			}
			if got.Keys != nil {
				for i, has := range got.Keys {
					q, k := i/n%n, i%n
					if len(tt.shape) == 4 && tt.shape[1] == n {
						q = i / n / h
					}
					assert.Equal(t, k < 5 || k <= q, has, "row %d has key %d", q, k)
				}
			}
		})
	}
}

// A convolution over tokens has elements after those of its rows; they are nobody's.
func TestTail(t *testing.T) {
	const n, w = 7, 3
	whole := random(rand.New(rand.NewPCG(1, 2)), 1, w, n+3)
	in := input(t, [][]int{ids(n)}, [][]dump.PassItem{{item(0, 0, 4)}, {item(0, 4, 7)}}, nil, whole.cut(2, 0, 7), whole.cut(2, 4, 10))
	got, l := laid(t, in, 0, path.Port{Shape: whole.shape, Fed: true}, n)
	require.NotNil(t, got, "%v", l.Unlaid)
	assert.False(t, got.Whole())
	cells := got.Cells()
	for i, v := range numbers(got.Tensor) {
		if c := cells[i]; c >= 0 {
			assert.Equal(t, whole.values[i], v)
		} else {
			assert.Zero(t, v)
			assert.GreaterOrEqual(t, i%(n+3), n)
		}
	}
}

// Several sequences in one pass, ragged and padded, and only the last row of each.
func TestBatch(t *testing.T) {
	const w = 2
	r := rand.New(rand.NewPCG(3, 4))
	a, b := random(r, 1, 5, w), random(r, 1, 3, w)
	tokens := [][]int{ids(5), ids(3)}
	first, second := [][]dump.PassItem{{item(0, 0, 4), item(1, 0, 2)}}, []dump.PassItem{item(0, 4, 5), item(1, 2, 3)}
	items := append(first, second)
	pad := func(x array, left bool) array { // to 4 rows
		p := zeros(1, 4-x.shape[1], w)
		for i := range p.values {
			p.values[i] = 99
		}
		if left {
			return join(1, p, x)
		}
		return join(1, x, p)
	}
	steps := join(0, a.cut(1, 4, 5), b.cut(1, 2, 3))
	tests := []struct {
		name   string
		masks  map[int][][]int
		parts  []array
		last   bool
		reason string
	}{
		{"ragged", nil, []array{join(1, a.cut(1, 0, 4), b.cut(1, 0, 2)), steps.as(1, 2, w)}, false, "[1 Σq w]"},
		{"no batch", nil, []array{join(1, a.cut(1, 0, 4), b.cut(1, 0, 2)).as(6, w), steps.as(2, w)}, false, "[Σq w]"},
		{"even", nil, []array{join(1, a.cut(1, 0, 4), b.cut(1, 0, 2)), steps}, false, "decode steps in lines, [2 1 w]"},
		{"right", map[int][][]int{0: {{1, 1, 1, 1}, {1, 1, 0, 0}}}, []array{join(0, a.cut(1, 0, 4), pad(b.cut(1, 0, 2), false)), steps}, false, "padded on the right"},
		{"left", map[int][][]int{0: {{1, 1, 1, 1}, {0, 0, 1, 1}}}, []array{join(0, a.cut(1, 0, 4), pad(b.cut(1, 0, 2), true)), steps}, false, "padded on the left"},
		{"flat", map[int][][]int{0: {{1, 1, 1, 1}, {0, 0, 1, 1}}}, []array{join(0, a.cut(1, 0, 4), pad(b.cut(1, 0, 2), true)).as(8, w), steps.as(2, w)}, false, "[B·L w]"},
		{"last", nil, []array{join(0, a.cut(1, 3, 4), b.cut(1, 1, 2)).as(2, w), steps.as(2, w)}, true, "[B w], the last row of each"},
		{"last of one row", nil, []array{join(0, a.cut(1, 3, 4), b.cut(1, 1, 2)), steps}, true, "[B 1 w]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tokens, items, tt.masks, tt.parts...)
			for s, whole := range []array{a, b} {
				n := whole.shape[1]
				got, l := laid(t, in, s, path.Port{Shape: whole.shape, Fed: true}, n)
				require.NotNil(t, got, "%v", l.Unlaid)
				x := numbers(got.Tensor)
				for i := range n {
					has := !tt.last || i >= n-2
					assert.Equal(t, has, got.Own[i], "%s: row %d", tt.reason, i)
					want := whole.values[i*w : (i+1)*w]
					if !has {
						want = make([]float32, w)
					}
					assert.Equal(t, want, x[i*w:(i+1)*w], tt.reason)
				}
				assert.Equal(t, tt.last, !got.Whole())
			}
		})
	}
}

// A padded pass of the reference takes the runs of several sequences.
func TestPaddedReference(t *testing.T) {
	const w = 2
	r := rand.New(rand.NewPCG(5, 6))
	whole := random(r, 2, 4, w)
	tokens := [][]int{ids(4), ids(3)}
	golden := passes(t, tokens, [][]dump.PassItem{{item(0, 0, 4), item(1, 0, 3)}}, map[int][][]int{0: {{1, 1, 1, 1}, {0, 1, 1, 1}}})[0]
	a, b := whole.cut(0, 0, 1), whole.cut(0, 1, 2).cut(1, 1, 4)
	in := input(t, tokens, [][]dump.PassItem{{item(0, 0, 2)}, {item(1, 0, 3)}, {item(0, 2, 4)}}, nil, a.cut(1, 0, 2), b, a.cut(1, 2, 4))
	l := in.Lay([]path.Port{{Layer: "a", Name: "output", Shape: whole.shape, Fed: true}}, path.NewGrid(golden, in.Runs))
	got := l.Ports[0]
	require.NotNil(t, got)
	assert.Equal(t, []bool{true, true, true, true, false, true, true, true}, got.Own)
	assert.Equal(t, []int{0, 0, 2, 2, -1, 1, 1, 1}, got.Pass)
	x := numbers(got.Tensor)
	assert.Equal(t, whole.values[:4*w], x[:4*w])
	assert.Equal(t, whole.values[5*w:], x[5*w:])
}

// Keys of padding are dropped; weight on one is a finding.
func TestPaddedKeys(t *testing.T) {
	tokens := [][]int{ids(4), ids(2)}
	items := [][]dump.PassItem{{item(0, 0, 3), item(1, 0, 1)}, {item(0, 3, 4), item(1, 1, 2)}}
	second := zeros(2, 1, 1, 4)
	for i := range second.values {
		second.values[i] = 0.25
	}
	copy(second.values[4:], []float32{0, 0, 0.4, 0.6})
	masks := map[int][][]int{0: {{1, 1, 1}, {0, 0, 1}}}
	in := input(t, tokens, items, masks, zeros(2, 1, 3, 3), second)
	got, l := laid(t, in, 1, path.Port{Shape: []int{1, 1, 2, 2}, Fed: true}, 2)
	require.NotNil(t, got, "%v", l.Unlaid)
	assert.Equal(t, []float32{0, 0, 0.4, 0.6}, numbers(got.Tensor), "the last row has both keys")
	assert.Equal(t, []bool{true, false, true, true}, got.Keys, "the first has its own alone")
	assert.Empty(t, l.Changes)

	second.values[4] = 0.1
	in = path.NewRecorded(tokens, in.Passes, recorded(zeros(2, 1, 3, 3), second))
	_, l = laid(t, in, 1, path.Port{Shape: []int{1, 1, 2, 2}, Fed: true}, 2)
	require.Len(t, l.Changes, 1)
	assert.Equal(t, "has weight on a key of padding", l.Changes[0].Text)
	assert.Equal(t, [3]int{1, 1, 1}, [3]int{l.Changes[0].Pass, l.Changes[0].Sequence, l.Changes[0].Position})
}

// Where the keys of a batch padded on the right may lie in two ways, they are not told.
func TestAmbiguousKeys(t *testing.T) {
	tokens := [][]int{ids(4), ids(3)}
	items := [][]dump.PassItem{{item(0, 0, 2), item(1, 0, 1)}, {item(0, 2, 3), item(1, 1, 2)}, {item(0, 3, 4), item(1, 2, 3)}}
	in := input(t, tokens, items, map[int][][]int{0: {{1, 1}, {1, 0}}}, zeros(2, 1, 2, 2), zeros(2, 1, 1, 3), zeros(2, 1, 1, 4))
	got, l := laid(t, in, 1, path.Port{Shape: []int{1, 1, 3, 3}, Fed: true}, 3)
	assert.Nil(t, got, "the third key is padding, or the second token")
	assert.Len(t, l.Unlaid, 1)
}

// A cache holds all rows so far. What was written first is the row, and a row that changes is found.
func TestCache(t *testing.T) {
	const n, h, w = 6, 2, 3
	r := rand.New(rand.NewPCG(7, 8))
	whole := random(r, 1, h, n, w)
	items := [][]dump.PassItem{{item(0, 0, 4)}, {item(0, 4, 5)}, {item(0, 5, 6)}}
	tests := []struct {
		name   string
		parts  []array
		change func(parts []array)
		want   []int // pass and position of the change
		reason string
	}{
		{"all", []array{whole.cut(2, 0, 4), whole.cut(2, 0, 5), whole}, nil, nil, "all keys so far"},
		{"window", []array{whole.cut(2, 0, 4), whole.cut(2, 1, 5), whole.cut(2, 2, 6)}, nil, nil, "the last four"},
		{"overwritten", []array{whole.cut(2, 0, 4), whole.cut(2, 0, 5), whole}, func(p []array) { p[2].values[(n+1)*w+2]++ }, []int{2, 1}, "other bits in the third pass"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := slices.Clone(whole.values)
			for i, p := range tt.parts {
				tt.parts[i].values = slices.Clone(p.values)
			}
			if tt.change != nil {
				tt.change(tt.parts)
			}
			in := input(t, [][]int{ids(n)}, items, nil, tt.parts...)
			got, l := laid(t, in, 0, path.Port{Shape: whole.shape, Fed: true}, n)
			require.NotNil(t, got, "%v", l.Unlaid)
			assert.Equal(t, want, numbers(got.Tensor), tt.reason)
			assert.Equal(t, []int{0, 0, 0, 0, 1, 2}, got.Pass)
			if tt.want == nil {
				assert.Empty(t, l.Changes, tt.reason)
				return
			}
			require.Len(t, l.Changes, 1, tt.reason)
			assert.Equal(t, tt.want, []int{l.Changes[0].Pass, l.Changes[0].Position}, tt.reason)
			var row []float64 // position 1 of both heads
			for _, v := range whole.cut(2, 1, 2).values {
				row = append(row, float64(v))
			}
			assert.InDelta(t, 1/floats.Norm(row, 2), l.Changes[0].RelL2, 1e-6)
		})
	}
}

// Ports without rows are states, or constants.
func TestStates(t *testing.T) {
	items := [][]dump.PassItem{{item(0, 0, 4)}, {item(0, 4, 5)}}
	one, two := zeros(1, 9, 2), zeros(1, 9, 2)
	two.values[3] = 1
	short := [][]dump.PassItem{{item(0, 0, 3)}, {item(0, 3, 4)}}
	tests := []struct {
		name    string
		items   [][]dump.PassItem
		fed     bool
		parts   []array
		want    []float32 // nil: not laid out
		pass    int
		changes int
		reason  string
	}{
		{"state", items, true, []array{one, two}, two.values, 1, 0, "that of the end"},
		{"too short", short, true, []array{one, two}, nil, 0, 0, "the reference went on"},
		{"constant", items, false, []array{one, one}, one.values, 0, 0, "the same in every pass"},
		{"short constant", short, false, []array{one, one}, one.values, 0, 0, "wherever the run ends"},
		{"changed constant", items, false, []array{one, two}, one.values, 0, 1, "a finding"},
		{"another shape", items, false, []array{zeros(3), zeros(3)}, nil, 0, 0, "no form is known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, [][]int{ids(5)}, tt.items, nil, tt.parts...)
			got, l := laid(t, in, 0, path.Port{Shape: one.shape, Fed: tt.fed}, 5)
			assert.Len(t, l.Changes, tt.changes, tt.reason)
			if tt.want == nil {
				assert.Len(t, l.Unlaid, 1, tt.reason)
				return
			}
			require.NotNil(t, got, tt.reason)
			assert.Equal(t, tt.want, numbers(got.Tensor), tt.reason)
			axis, _ := got.RowAxis()
			assert.Equal(t, -1, axis)
			assert.True(t, got.Whole())
			assert.Equal(t, slices.Repeat([]int{tt.pass}, 5), got.Pass)
		})
	}
}

// The states of a batch are those of its sequences, in whatever order these were fed; one that does not tell sequences apart is
// that of the run.
func TestStatesOfABatch(t *testing.T) {
	tokens := [][]int{ids(2), ids(2)}
	golden := passes(t, tokens, [][]dump.PassItem{{item(0, 0, 2), item(1, 0, 2)}}, nil)[0]
	lay := func(shape []int, items [][]dump.PassItem, parts ...array) *path.Laid {
		in := input(t, tokens, items, nil, parts...)
		runs := in.Runs
		if runs[0].Sequence == 1 {
			runs = []*path.Run{runs[1], runs[0]}
		}
		return in.Lay([]path.Port{{Layer: "a", Name: "output", Shape: shape, Fed: true}}, path.NewGrid(golden, runs)).Ports[0]
	}
	each := func(v ...float32) array { return array{[]int{len(v) / 3, 3}, v} }
	for _, tt := range []struct {
		shape  []int
		items  [][]dump.PassItem
		parts  []array
		want   []float32
		pass   []int
		reason string
	}{
		{[]int{2, 3}, [][]dump.PassItem{{item(0, 0, 2), item(1, 0, 2)}}, []array{each(1, 2, 3, 4, 5, 6)}, []float32{1, 2, 3, 4, 5, 6}, []int{0, 0, 0, 0}, "together"},
		{[]int{2, 3}, [][]dump.PassItem{{item(1, 0, 2), item(0, 0, 2)}}, []array{each(1, 2, 3, 4, 5, 6)}, []float32{4, 5, 6, 1, 2, 3}, []int{0, 0, 0, 0}, "in the other order"},
		{[]int{2, 3}, [][]dump.PassItem{{item(0, 0, 1), item(1, 0, 1)}, {item(0, 1, 2), item(1, 1, 2)}}, []array{each(9, 9, 9, 9, 9, 9), each(1, 2, 3, 4, 5, 6)},
			[]float32{1, 2, 3, 4, 5, 6}, []int{1, 1, 1, 1}, "what the last pass left"},
		{[]int{5}, [][]dump.PassItem{{item(0, 0, 2), item(1, 0, 2)}}, []array{{[]int{5}, []float32{1, 2, 3, 4, 5}}}, []float32{1, 2, 3, 4, 5}, []int{0, 0, -1, -1}, "of no sequence: it stands with the first"},
	} {
		got := lay(tt.shape, tt.items, tt.parts...)
		require.NotNil(t, got, tt.reason)
		assert.Equal(t, tt.want, numbers(got.Tensor), tt.reason)
		assert.Equal(t, tt.pass, got.Pass, tt.reason)
	}
}

// Floats of several types are laid out in float32; whole numbers of several types are not.
func TestTypes(t *testing.T) {
	items := [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}}
	wide := must(tensor.Of([]float32{0.5, 0.25}, 1, 1, 2))
	half := must(tensor.New(tensor.F16, []int{1, 1, 2}, []byte{0, 0x3c, 0, 0x40}))
	whole := must(tensor.Of([]int64{1, 2}, 1, 1, 2))
	for _, tt := range []struct {
		second *tensor.Tensor
		want   []float32
		reason string
	}{
		{half, []float32{0.5, 0.25, 1, 2}, "an island of float32"},
		{whole, nil, "numbers of another kind"},
	} {
		in := path.NewRecorded([][]int{ids(2)}, passes(t, [][]int{ids(2)}, items, nil),
			func(pass int, _, _ string) *tensor.Tensor { return []*tensor.Tensor{wide, tt.second}[pass] })
		got, l := laid(t, in, 0, path.Port{Shape: []int{1, 2, 2}, Fed: true}, 2)
		if tt.want == nil {
			assert.Len(t, l.Unlaid, 1, tt.reason)
			continue
		}
		require.NotNil(t, got, tt.reason)
		assert.Equal(t, tt.want, numbers(got.Tensor), tt.reason)
	}
}

// Rows that data upstream sorts look like m rows for each token, and are not.
func TestSorted(t *testing.T) {
	in := input(t, [][]int{ids(4)}, [][]dump.PassItem{{item(0, 0, 3)}, {item(0, 3, 4)}}, nil, zeros(6, 2), zeros(2, 2))
	for _, sorted := range []bool{true, false} {
		got, l := laid(t, in, 0, path.Port{Shape: []int{8, 2}, Fed: true, Sorted: sorted}, 4)
		assert.Equal(t, [2]bool{sorted, sorted}, [2]bool{got == nil, len(l.Unlaid) == 1}, "in the order of the tokens they are laid out")
	}
}

// Runs begin anew where a sequence does; a prefix hit has rows of an earlier run, which are not judged.
func TestRuns(t *testing.T) {
	const n, w = 4, 2
	whole := random(rand.New(rand.NewPCG(9, 1)), 1, n, w)
	tokens := [][]int{ids(n), {1, 2, 7}}
	hit := dump.PassItem{Sequence: 1, From: 2, To: 3, CachedTokens: 2}
	items := [][]dump.PassItem{{item(0, 0, 4)}, {hit}, {fresh(0, 0, 2)}, {item(0, 2, 4)}}
	other := random(rand.New(rand.NewPCG(9, 2)), 1, n, w)
	in := input(t, tokens, items, nil, whole, other.cut(1, 0, 1), other.cut(1, 0, 2), other.cut(1, 2, 4))
	require.Len(t, in.Runs, 3)
	assert.Empty(t, in.Notes)
	assert.Same(t, in.Runs[0], in.Runs[1].Prefix)
	whose := func(cached int) *path.Run { // of a hit after a run of two tokens
		hit := dump.PassItem{Sequence: 1, From: cached, To: 4, CachedTokens: cached}
		in := path.NewRecorded([][]int{ids(4), ids(5)}, passes(t, [][]int{ids(4), ids(5)}, [][]dump.PassItem{{item(0, 0, 2)}, {hit}}, nil), nil)
		return in.Runs[1].Prefix
	}
	assert.NotNil(t, whose(2), "all that it ran")
	assert.Nil(t, whose(3), "more than it ran")

	got, _ := laid(t, in, 1, path.Port{Shape: []int{1, 3, w}, Fed: true}, 3)
	assert.Equal(t, []bool{true, true, true}, got.Have)
	assert.Equal(t, []bool{false, false, true}, got.Own, "borrowed rows are sources")
	assert.Equal(t, slices.Concat(whole.values[:2*w], other.values[:w]), numbers(got.Tensor))

	got, _ = laid(t, in, 2, path.Port{Shape: whole.shape, Fed: true}, n)
	assert.Equal(t, other.values, numbers(got.Tensor), "the second run of sequence 0")
	assert.Equal(t, []int{2, 2, 3, 3}, got.Pass)
}

// What nobody ran, and what was not recorded, is said.
func TestNotes(t *testing.T) {
	const n = 6
	tokens := [][]int{ids(n)}
	tests := []struct {
		name   string
		items  [][]dump.PassItem
		parts  []array
		shape  []int
		notes  []string
		reason string
	}{
		{"gap", [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 4, 6)}}, []array{zeros(1, 2, 1), zeros(1, 2, 1)}, []int{1, n, 1},
			[]string{"sequence 0: no forward pass ran its tokens 2–3"}, "from is beyond the end"},
		{"nobody's prefix", [][]dump.PassItem{{{From: 2, To: 6, CachedTokens: 2}}}, []array{zeros(1, 4, 1)}, []int{1, n, 1},
			[]string{"sequence 0: no forward pass ran the 2 tokens that its prefix cache held"}, "a hit without a run"},
		{"missing pass", [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 6)}}, []array{zeros(1, 2, 1), {}}, []int{1, n, 1},
			[]string{"forward pass 1 recorded nothing: sequence 0 lacks its rows 2–5"}, "its folder is gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tokens, tt.items, nil, tt.parts...)
			_, l := laid(t, in, 0, path.Port{Shape: tt.shape, Fed: true}, n)
			assert.Equal(t, tt.notes, l.Notes, tt.reason)
		})
	}
}

// Any run of one sequence in random chunks, laid out, is the whole.
func TestRandomChunks(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 11))
		n := 2 + r.IntN(12)
		var items [][]dump.PassItem
		for at := 0; at < n; {
			to := min(at+1+r.IntN(5), n)
			items = append(items, []dump.PassItem{item(0, at, to)})
			at = to
		}
		shape := [][]int{{1, n, 5}, {1, 3, n, 5}, {1, 5, n}, {n, 5}, {1, n}, {n * 2, 3}, {1, n, 3, 2}}[r.IntN(7)]
		axis := slices.Index(shape, n)
		if axis < 0 {
			axis = 0
		}
		whole := random(r, shape...)
		var parts []array
		for _, p := range items {
			m := shape[axis] / n
			parts = append(parts, whole.cut(axis, p[0].From*m, p[0].To*m))
		}
		in := input(t, [][]int{ids(n)}, items, nil, parts...)
		got, l := laid(t, in, 0, path.Port{Shape: shape, Fed: true}, n)
		require.NotNil(t, got, "seed %d: %v of %v: %v", seed, shape, items, l.Unlaid)
		assert.Equal(t, whole.values, numbers(got.Tensor), "seed %d", seed)
		assert.True(t, got.Whole())
	}
}
