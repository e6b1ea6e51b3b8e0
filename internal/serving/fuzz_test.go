package serving_test

import (
	"testing"

	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// Whatever a server writes is an answer that can be judged, or an error.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`{"choices":[{"index":0,"text":"t5 t6","token_ids":[5,6],"prompt_token_ids":[1,2],"finish_reason":"stop","stop_reason":"x",
			"logprobs":{"tokens":["a","b"],"token_logprobs":[-0.5,null],"top_logprobs":[{"t5":-0.5},null]}}],
			"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`,
		`{"choices":[{"message":{"content":"t5"},"logprobs":{"content":[{"token":"token_id:5","logprob":-1e-3,"id":5,"top_logprobs":[{"token":"x","logprob":-1}]}]}}]}`,
		`{"choices":[{"text":"","finish_reason":"length","logprobs":{"token_logprobs":[]}},{"index":-1,"text":"b"}],"prompt_token_ids":[[1]]}`,
		`{"choices":[{"text":"t5","logprobs":{"token_logprobs":[-1,-2,-3,-4,-5,-6,-7,-8,-9]}}]}`,
	} {
		f.Add([]byte(text))
	}
	refs, models := servingtest.Cases(4), []serving.Model{{}, known(f)}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range models {
			for _, ref := range refs {
				serving.Judge(m, ref, data)
			}
		}
	})
}
