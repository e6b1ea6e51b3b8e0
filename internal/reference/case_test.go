package reference_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/tensor"
)

func TestCase(t *testing.T) {
	ids := func(step string, values ...int64) dump.Entry {
		x, err := tensor.Of(values, 1, len(values))
		require.NoError(t, err)
		return dump.Entry{Step: step, Layer: "model.embed_tokens", Port: "input_0", Tensor: x}
	}
	out := func(step string) dump.Entry {
		return dump.Entry{Step: step, Layer: "model", Port: "output", Tensor: ids("0", 1).Tensor}
	}
	for _, tt := range []struct {
		info    dump.Info
		entries []dump.Entry
		want    engine.Case
		err     string
		reason  string
	}{
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 1}, "", "a prefill"},
		{dump.Info{}, []dump.Entry{ids("0", 1, 2), out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 1}, "", "the inputs show the tokens"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{ids("0", 1, 2), ids("1", 3), ids("2", 4)},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 3, Forced: [][]int{{3, 4}}}, "", "decode steps"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{out("0"), out("1")},
			engine.Case{}, "has 2 steps, and does not show which tokens", "no one knows what was decoded"},
		{dump.Info{TokenIDs: json.RawMessage("[[0,1,2],[3,4,5]]"), PadMask: [][]int{{0, 1, 1}, {1, 1, 1}}}, []dump.Entry{out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}, {3, 4, 5}}, Steps: 1}, "", "padding is the reference's own"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2,3]]"), Path: "chunked:2",
			Passes: [][]dump.PassItem{{{From: 0, To: 2}}, {{From: 2, To: 3}}}}, []dump.Entry{out("0"), out("1")},
			engine.Case{TokenIDs: [][]int{{1, 2, 3}}, Steps: 1}, "", "one pass judges all paths"},
	} {
		tt.info.Case, tt.want.Name = "a", "a"
		got, err := reference.Case(dump.New("d", tt.info, dump.OrderRunFile, tt.entries))
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, got, tt.reason)
	}
}
