package path_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/path"
)

func TestPlans(t *testing.T) {
	abc := []path.Input{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}}}}
	both := append(abc, path.Input{Case: "b", Tokens: [][]int{{6, 7}}})
	seen := []path.Input{{Case: "c", Tokens: [][]int{{8, 9, 9}}, Images: [][]string{{"x.png"}}}, {Case: "d", Tokens: [][]int{{7, 9, 9}}, Images: [][]string{{"y.png"}}}}
	twin := path.Input{Case: "e", Tokens: [][]int{{8, 9, 9}}, Images: [][]string{{"y.png"}}}
	fresh := func(sequence, to int) []dump.PassItem {
		return []dump.PassItem{{Sequence: sequence, To: to, Fresh: true}}
	}
	items := func(i ...dump.PassItem) []dump.PassItem { return i }
	tests := []struct {
		path   string
		inputs []path.Input
		want   []path.Plan
		left   int
		reason string
	}{
		{"decode", abc, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}},
			Passes: [][]dump.PassItem{{item(0, 0, 1)}, {item(0, 1, 2)}, {item(0, 2, 3)}, {item(0, 3, 4)}, {item(0, 4, 5)}}}}, 0,
			"at most 8 tokens, and at least one before them"},
		{"decode:2", both, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}},
			Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(0, 3, 4)}, {item(0, 4, 5)}}}}, 1, "b is too short, which is said"},
		{"chunked:3", both, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}},
			Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(0, 3, 5)}}}}, 1, "the second chunk has two tokens"},
		{"turns:1", []path.Input{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5, 6, 7, 8, 9}}}, {Case: "b", Tokens: [][]int{{1, 2, 3, 4, 5, 6, 7}}}},
			[]path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5, 6, 7, 8, 9}},
				Passes: [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}, {item(0, 3, 5)}, {item(0, 5, 6)}, {item(0, 6, 9)}}}}, 1,
			"several, one, several, one, several"},
		{"batch", both, []path.Plan{{Tokens: [][]int{{1, 2, 3, 4, 5}, {6, 7}},
			Passes: [][]dump.PassItem{{item(0, 0, 5), item(1, 0, 2)}, append(fresh(1, 2), fresh(0, 5)...)}}}, 0,
			"all cases, then in the other order"},
		{"batch", abc, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}, {1, 2, 3}, {1, 2, 3, 4}},
			Passes: [][]dump.PassItem{{item(0, 0, 5), item(1, 0, 3), item(2, 0, 4)},
				append(append(fresh(2, 4), fresh(1, 3)...), fresh(0, 5)...)}}}, 0, "with beginnings of itself"},
		{"batch:1", both, []path.Plan{{Tokens: [][]int{{1, 2, 3, 4, 5}, {6, 7}},
			Passes: [][]dump.PassItem{{item(0, 0, 4), item(1, 0, 1)}, {item(0, 4, 5), item(1, 1, 2)}}}}, 0, "the last token of each, together"},
		{"batch:2", both, []path.Plan{{Tokens: [][]int{{1, 2, 3, 4, 5}, {1, 2, 3}},
			Passes: [][]dump.PassItem{{item(0, 0, 3), item(1, 0, 1)}, {item(0, 3, 4), item(1, 1, 2)}, {item(0, 4, 5), item(1, 2, 3)}}}}, 1,
			"b is too short, so a goes beside its own beginning"},
		{"batch:1", append(abc[:1:1], seen...), []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}, {1, 2, 3}},
			Passes: [][]dump.PassItem{{item(0, 0, 4), item(1, 0, 2)}, {item(0, 4, 5), item(1, 2, 3)}}}}, 2, "parts of sequences with images are fed alone"},
		{"one-pass", both, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}}, Passes: [][]dump.PassItem{{item(0, 0, 5)}}},
			{Case: "b", Tokens: [][]int{{6, 7}}, Passes: [][]dump.PassItem{{item(0, 0, 2)}}}}, 0, "each case alone"},
		{"batch", append(both[:2:2], seen[0]), []path.Plan{{Tokens: [][]int{{1, 2, 3, 4, 5}, {6, 7}},
			Passes: [][]dump.PassItem{{item(0, 0, 5), item(1, 0, 2)}, append(fresh(1, 2), fresh(0, 5)...)}}}, 1, "one with images has no other beside it"},
		{"padding:left", append(abc[:1:1], path.Input{Case: "b", Tokens: [][]int{{9, 8, 7, 6, 5}}}), []path.Plan{{Tokens: [][]int{{1, 2, 3, 4, 5}, {9, 8, 7, 6, 5}, {1, 2, 3}, {1, 2, 3, 4}},
			Passes: [][]dump.PassItem{{item(0, 0, 5), item(1, 0, 5), item(2, 0, 3), item(3, 0, 4)}}}}, 0, "all equally long, so with beginnings of the first"},
		{"padding:left", both, []path.Plan{{Tokens: [][]int{{1, 2, 3, 4, 5}, {6, 7}},
			Passes: [][]dump.PassItem{{item(0, 0, 5), item(1, 0, 2)}}}}, 0, "sequences of several lengths"},
		{"repeat:2", abc, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}, {5, 4, 3, 2, 1}},
			Passes: [][]dump.PassItem{{item(0, 0, 5)}, {item(1, 0, 5)}, fresh(0, 5)}}}, 0, "another prompt between"},
		{"lengths:1,4", abc, []path.Plan{{Case: "a", Tokens: [][]int{{1}, {1, 2, 3, 4}},
			Passes: [][]dump.PassItem{{item(0, 0, 1)}, {item(1, 0, 4)}}}}, 0, "each a sequence of its own"},
		{"mask", abc, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5}, {1, 2, 3, 4}, {1, 2, 3, 4}},
			Passes: [][]dump.PassItem{{item(0, 0, 5)}, items(dump.PassItem{Sequence: 1, To: 4, Hidden: []int{5}}), {item(2, 0, 4)}}}}, 0,
			"the last third is hidden, beside none of it and all of it"},
		{"decode:1", seen, []path.Plan{{Case: "c", Tokens: [][]int{{8, 9, 9}}, Images: [][]string{{"x.png"}}, Passes: [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}}},
			{Case: "d", Tokens: [][]int{{7, 9, 9}}, Images: [][]string{{"y.png"}}, Passes: [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}}}}, 0, "images go with their sequence"},
		{"repeat:2", seen[:1], []path.Plan{{Case: "c", Tokens: [][]int{{8, 9, 9}, {9, 9, 8}}, Images: [][]string{{"x.png"}, {"x.png"}},
			Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(1, 0, 3)}, fresh(0, 3)}}}, 0, "the same image in other tokens"},
		{"repeat:2", seen, []path.Plan{{Case: "c", Tokens: [][]int{{8, 9, 9}, {7, 9, 9}}, Images: [][]string{{"x.png"}, {"y.png"}},
			Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(1, 0, 3)}, fresh(0, 3)}}, {Case: "d", Tokens: [][]int{{7, 9, 9}, {8, 9, 9}}, Images: [][]string{{"y.png"}, {"x.png"}},
			Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(1, 0, 3)}, fresh(0, 3)}}}, 0, "the prompt of another case with images"},
		{"repeat:2", []path.Input{{Case: "a", Tokens: [][]int{{1, 2, 1}}}}, []path.Plan{{Case: "a", Tokens: [][]int{{1, 2, 1}, {2, 1}},
			Passes: [][]dump.PassItem{{item(0, 0, 3)}, {item(1, 0, 2)}, fresh(0, 3)}}}, 0, "backwards they are the same"},
		{"batch", append(both[:2:2], seen...), []path.Plan{{Tokens: [][]int{{1, 2, 3, 4, 5}, {6, 7}},
			Passes: [][]dump.PassItem{{item(0, 0, 5), item(1, 0, 2)}, append(fresh(1, 2), fresh(0, 5)...)}},
			{Case: "c", Tokens: [][]int{{8, 9, 9}, {7, 9, 9}}, Images: [][]string{{"x.png"}, {"y.png"}},
				Passes: [][]dump.PassItem{{item(0, 0, 3), item(1, 0, 3)}, append(fresh(1, 3), fresh(0, 3)...)}}}, 0, "texts, and those with images"},
		{"lengths:2", append(abc[:1:1], seen...), []path.Plan{{Case: "a", Tokens: [][]int{{1, 2}}, Passes: [][]dump.PassItem{{item(0, 0, 2)}}}}, 2,
			"a beginning may end inside of an image"},
		{"decode:1", append(seen[:1:1], twin), []path.Plan{{Case: "c", Tokens: [][]int{{8, 9, 9}}, Images: [][]string{{"x.png"}},
			Passes: [][]dump.PassItem{{item(0, 0, 2)}, {item(0, 2, 3)}}}}, 1, "rows are found by their tokens, and these are of two images"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			got, left, err := path.Plans(tt.path, tt.inputs, path.About{})
			require.NoError(t, err)
			for i := range tt.want {
				tt.want[i].Path = tt.path
			}
			assert.Equal(t, tt.want, got, tt.reason)
			assert.Len(t, left, tt.left)
		})
	}
}

// Without numbers, lengths are those at which kernels and windows change what they do.
func TestUsualLengths(t *testing.T) {
	for _, tt := range []struct {
		n, window int
		want      []int
		reason    string
	}{
		{20, 12, []int{1, 2, 7, 8, 9, 11, 12, 13, 15, 16, 17, 20}, "a window among tiles, and all of it"},
		{20, 0, []int{1, 2, 7, 8, 9, 15, 16, 17, 20}, "no window"},
		{66, 1, []int{1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 66}, "no run has 0 tokens"},
		{130, 0, []int{1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 130}, "a page"},
	} {
		plans, _, err := path.Plans("lengths", []path.Input{{Case: "a", Tokens: [][]int{make([]int, tt.n)}}}, path.About{Window: tt.window})
		require.NoError(t, err)
		var lengths []int
		for _, ids := range plans[0].Tokens {
			lengths = append(lengths, len(ids))
		}
		assert.Equal(t, tt.want, lengths, tt.reason)
	}
}

// A cache that cannot be cut, as that of a window, finds the first beginning again; one that can, half of it.
func TestPrefix(t *testing.T) {
	ids := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	passes := func(pages int) [][]dump.PassItem {
		return [][]dump.PassItem{{item(0, 0, pages)}, {item(1, 0, 10)}, {item(2, 0, pages/2+1)}}
	}
	for _, tt := range []struct{ page, pages int }{{4, 8}, {9, 9}, {1, 9}} {
		plans, _, err := path.Plans("prefix", []path.Input{{Case: "a", Tokens: [][]int{ids}}}, path.About{Page: tt.page})
		require.NoError(t, err)
		want := path.Plan{Path: "prefix", Case: "a", Tokens: [][]int{ids[:tt.pages], ids, ids[:tt.pages/2+1]}, Passes: passes(tt.pages)}
		assert.Equal(t, []path.Plan{want}, plans)
	}
}

func TestPlansRefuses(t *testing.T) {
	one := []path.Input{{Case: "a", Tokens: [][]int{{1}}}}
	six := []path.Input{{Case: "a", Tokens: [][]int{{1, 2, 3, 4, 5, 6}}}}
	tests := []struct {
		path   string
		inputs []path.Input
		want   string
	}{
		{"decode", one, "it has 1 tokens, and the path wants 2 or more"},
		{"decode:6", six, "wants 7 or more"},
		{"chunked:5", six, "wants 7 or more"},
		{"chunked:1", six, "in chunks of 2"},
		{"turns", six, "wants 22 or more"},
		{"turns:1", six, "wants 8 or more"},
		{"prefix", six, "wants 129 or more: a page of the cache, of 128 tokens, and one more"},
		{"repeat:1", six, "no repetition"},
		{"lengths:2,7", six, "wants 7 or more"},
		{"batch", one, "all sequences have one token"},
		{"batch:5", six, "wants two sequences of 6 tokens or more"},
		{"mask", one, "wants 3 or more"},
		{"padding:left", []path.Input{{Case: "a", Tokens: [][]int{{1, 2}}, Images: [][]string{{"x"}}}, {Case: "b", Tokens: [][]int{{3, 4}}, Images: [][]string{{"y"}}}}, "inside of an image"},
		{"sideways", six, `path is "sideways"`},
	}
	for _, tt := range tests {
		_, _, err := path.Plans(tt.path, tt.inputs, path.About{})
		assert.ErrorContains(t, err, tt.want, tt.path)
	}
}

// A run that fed what was planned shows the path.
func TestPlansShowThePath(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var inputs []path.Input
		for i := range 1 + random.IntN(3) {
			ids := make([]int, 8+random.IntN(20))
			for k := range ids {
				ids[k] = random.IntN(50)
			}
			inputs = append(inputs, path.Input{Case: strconv.Itoa(i), Tokens: [][]int{ids}})
		}
		for _, name := range []string{"decode", "decode:3", "chunked:2", "chunked:3", "turns:1", "batch", "padding:left", "padding:right",
			"prefix", "repeat:3", "lengths", "lengths:1,5", "mask"} {
			plans, _, err := path.Plans(name, inputs, path.About{Window: random.IntN(10), Page: 1 + random.IntN(4)})
			require.NoError(t, err, name)
			for _, p := range plans {
				s, err := path.New(fed(t, p), nil)
				require.NoError(t, err, name)
				assert.NoError(t, s.Check(), "%s %v", name, p)
			}
		}
	}
}

// fed is a run of an engine that did what was planned, with a hit in the prefix cache.
func fed(t *testing.T, p path.Plan) *dump.Run {
	info := dump.Info{Path: p.Path, Passes: p.Passes, PadMasks: map[string][][]int{}}
	var entries []dump.Entry
	for k, items := range p.Passes {
		longest := 0
		for i, item := range items {
			if p.Path == dump.Prefix && k > 0 {
				hit := min(item.To-1, p.Passes[0][0].To)
				items[i].From, items[i].CachedTokens = hit, hit
			}
			longest = max(longest, item.To-item.From+len(item.Hidden))
		}
		var mask [][]int
		for _, item := range items {
			row := make([]int, longest)
			n := item.To - item.From
			for i := range row {
				real := i < n
				if p.Path == "padding:left" {
					real = i >= longest-n
				}
				row[i] = 0
				if real {
					row[i] = 1
				}
			}
			mask = append(mask, row)
		}
		if k == 0 {
			info.PadMask = mask
		} else {
			info.PadMasks[fmt.Sprint(k)] = mask
		}
		entries = append(entries, entry(t, fmt.Sprint(k), "a", "output", []int{len(items), longest, 2}))
	}
	return run(t, info, p.Tokens, entries...)
}
