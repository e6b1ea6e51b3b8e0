package judge_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// Two runs of different tokens are not two answers to one question, whatever layer shows it first.
func TestOtherPrompt(t *testing.T) {
	run := func(ids string, v float32) *dump.Run {
		x, err := tensor.Of([]float32{v, 1}, 1, 2)
		require.NoError(t, err)
		return dump.New("x", dump.Info{Case: "c", Mode: dump.Standard, TokenIDs: json.RawMessage(ids)},
			dump.OrderRunFile,
			[]dump.Entry{{Step: "0", Layer: "model.lin", Port: "output", Tensor: x}})
	}
	for _, tt := range []struct{ golden, actual, kind, reason string }{
		{"[[1,2]]", "[[1,3]]", localise.KindInput, "other ids"},
		{"[[1,2]]", "[1,2,3]", localise.KindInput, "more ids, in another form"},
		{"[[1,2]]", "[1,2]", localise.KindLocal, "the same ids in another form"},
		{"[[1,2]]", "", localise.KindLocal, "a candidate that does not say"},
	} {
		c, err := judge.Compare(context.Background(),
			[]judge.Case{{Name: "c", Golden: run(tt.golden, 1), Actual: run(tt.actual, 2)}}, judge.Options{})
		require.NoError(t, err)
		require.NotNil(t, c.Verdict)
		assert.Equal(t, tt.kind, c.Verdict.Kind, tt.reason)
	}
}
