package serving_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// The pieces of a stream come to the text of the answer.
func TestStreamed(t *testing.T) {
	pieces := func(change func(events []string) []string) *servingtest.Stub {
		return &servingtest.Stub{Pieces: change}
	}
	for _, c := range []struct {
		stub    *servingtest.Stub
		verdict report.Verdict
		says    string
		reason  string
	}{
		{&servingtest.Stub{}, report.Pass, "", "right"},
		{pieces(func(e []string) []string { return slices.Insert(e, 0, "", ": a comment", `{"choices":[]}`) }), report.Pass, "", "events without text"},
		{pieces(func(e []string) []string { return e[:len(e)-1] }), report.Pass, "", "no [DONE]"},
		{pieces(func(e []string) []string { return slices.Delete(e, len(e)-2, len(e)-1) }), report.Pass, "", "no finish_reason"},
		{pieces(func(e []string) []string { return slices.Delete(e, 1, 2) }), report.Fail, "the pieces of the stream come to", "a piece is lost"},
		{pieces(func(e []string) []string { return slices.Insert(e, 1, e[0]) }), report.Fail, "the pieces of the stream come to", "a piece comes twice"},
		{pieces(func(e []string) []string { e[0], e[1] = e[1], e[0]; return e }), report.Fail, "the pieces of the stream come to", "another order"},
		{pieces(func(e []string) []string {
			e[len(e)-2] = strings.Replace(e[len(e)-2], `"length"`, `"stop"`, 1)
			return e
		}), report.Fail, "the stream says that it ended by", "another reason"},
		{pieces(func(e []string) []string { return e[:len(e)-2] }), report.Fail, "breaks off", "it has no end"},
		{pieces(func(e []string) []string { return []string{`{"error":{"message":"no streams here"}}`} }), report.Pass, "no streams here", "an error in it"},
		{&servingtest.Stub{Whole: true}, report.Pass, "answered without one", "no streams"},
		{&servingtest.Stub{Refuses: func(body map[string]any) string {
			if body["stream"] == true {
				return "stream is not known"
			}
			return ""
		}}, report.Pass, "stream is not known", "refused"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			out := judge(t, c.stub, servingtest.Cases(tokensOfCases), serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}})
			said := strings.Join(append(out.Notes, out.Error), "\n")
			n := 0
			for _, r := range out.Requests {
				if r.Way == serving.Stream {
					n++
					said += "\n" + r.String()
				}
			}
			require.Equal(t, c.verdict, out.Verdict, said)
			assert.Equal(t, len(servingtest.Cases(tokensOfCases)), n, "each case")
			assert.Contains(t, said, c.says)
			if c.verdict == report.Fail {
				assert.Equal(t, []string{"stream"}, causes(out))
				require.NotNil(t, out.First)
				assert.Equal(t, serving.Stream, out.First.Way)
			}
		})
	}
}
