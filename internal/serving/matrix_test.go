package serving_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// faulty makes a server with a fault, and says which causes are true of it.
type faulty struct {
	name   string
	stub   func() *servingtest.Stub
	causes []string
	in     string // the ways of writing a case in which it shows; empty: in all
}

func faults(best, other int) []faulty {
	notIDs := func(change func([]int) []int) func() *servingtest.Stub {
		return func() *servingtest.Stub {
			return &servingtest.Stub{Prompt: func(as string, ids []int) []int {
				if as == serving.AsIDs {
					return ids
				}
				return change(ids)
			}}
		}
	}
	twice := func(ids []int) []int { return append([]int{servingtest.BOS}, ids...) }
	missing := func(ids []int) []int { return ids[1:] }
	return []faulty{
		{"right", func() *servingtest.Stub { return &servingtest.Stub{} }, nil, "none"},
		{"BOS twice", notIDs(twice), []string{"bos-twice"}, "text chat"},
		{"BOS missing", notIDs(missing), []string{"bos-missing"}, "text chat"},
		{"BOS twice everywhere", func() *servingtest.Stub {
			return &servingtest.Stub{Prompt: func(_ string, ids []int) []int { return twice(ids) }}
		}, []string{"bos-twice"}, ""},
		{"template", func() *servingtest.Stub {
			return &servingtest.Stub{Render: func(q *servingtest.Request) []int { return servingtest.Chat(q.Messages[1:]) }}
		}, []string{"template"}, "chat"},
		{"no generation prompt", func() *servingtest.Stub {
			return &servingtest.Stub{Render: func(q *servingtest.Request) []int { ids := servingtest.Chat(q.Messages); return ids[:len(ids)-1] }}
		}, []string{"template"}, "chat"},
		{"swapped", func() *servingtest.Stub { return &servingtest.Stub{Model: swapped(best, other)} },
			[]string{"choice", "logprobs"}, ""}, // where neither is chosen, it shows in the log-probabilities beside a token
		{"neighbour", func() *servingtest.Stub { return &servingtest.Stub{Swap: servingtest.Neighbour} }, []string{"concurrency"}, ""},
		{"samples", func() *servingtest.Stub {
			return &servingtest.Stub{Choose: func(row []float64, _ int, r *rand.Rand) int { return servingtest.Ranked(row)[r.IntN(2)] }}
		}, []string{"sampling"}, ""},
		{"stops early", func() *servingtest.Stub {
			return &servingtest.Stub{Cut: func(ids []int, q *servingtest.Request) ([]int, string) {
				if len(ids) > 2 {
					return ids[:len(ids)-2], "stop"
				}
				return ids, "length"
			}}
		}, []string{"stop"}, ""},
		{"shifted", func() *servingtest.Stub {
			return &servingtest.Stub{Scored: func(p []float64) []float64 {
				out := slices.Clone(p)
				for i := range out {
					out[i] += 0.25
				}
				return out
			}}
		}, []string{"logprobs"}, ""},
		{"garbled", func() *servingtest.Stub {
			return &servingtest.Stub{Written: func(ids []int) string { return strings.ReplaceAll(servingtest.Text(ids), "t", "u") }}
		}, []string{"detokenise"}, ""},
		{"stale", func() *servingtest.Stub {
			seen := map[string][]int{}
			return &servingtest.Stub{Prompt: func(_ string, ids []int) []int {
				key := fmt.Sprint(ids[:min(3, len(ids))])
				if seen[key] == nil {
					seen[key] = ids
				}
				return seen[key]
			}}
		}, []string{"cache"}, "ids"},
	}
}

// Every fault, in fixtures of one kind of case and of all, on servers that say much or little: it is
// found wherever it can show, no healthy server is accused, and no cause that is not true is named.
func TestFaultsOnServersThatSayLittle(t *testing.T) {
	all := servingtest.Cases(tokensOfCases)
	best := all[0].Tokens[1]
	kinds := map[string][]*serving.Reference{"all": all, "ids": all[:2], "one": all[:1], "text": all[2:3], "chat": all[3:]}
	vocabulary := tokenizer(t)
	for _, f := range faults(best, 3) {
		for kind, refs := range kinds {
			for mask := range 16 {
				noIDs, noLogProbs, noUsage, noVocab := mask&1 > 0, mask&2 > 0, mask&4 > 0, mask&8 > 0
				name := fmt.Sprintf("%s/%s/ids=%v,logprobs=%v,usage=%v,vocab=%v", f.name, kind, !noIDs, !noLogProbs, !noUsage, !noVocab)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := f.stub()
					s.NoIDs, s.NoLogProbs, s.NoUsage = noIDs, noLogProbs, noUsage
					var model serving.Model // without the model's files neither is known
					if !noVocab {
						model = serving.Model{EOS: []int{servingtest.EOS}, Vocab: vocabulary}
					}
					out := judge(t, s, refs, serving.Options{Model: model})
					require.NotEqual(t, report.Error, out.Verdict, out.Error)
					for _, c := range causes(out) {
						assert.Contains(t, f.causes, strings.TrimSuffix(c, "?"), "%v\n%s", out.Causes, strings.Join(out.Probes, "\n"))
					}
					shows := f.shows(kind, refs, noIDs, noLogProbs)
					if shows {
						assert.Equal(t, report.Fail, out.Verdict)
						if len(out.Causes) == 0 {
							t.Logf("NOCAUSE %s", name)
						}
					} else if f.in == "none" {
						assert.Equal(t, report.Pass, out.Verdict, "%v", failing(out))
					}
				})
			}
		}
	}
}

// shows reports whether a fault must be found.
func (f *faulty) shows(kind string, refs []*serving.Reference, noIDs, noLogProbs bool) bool {
	switch {
	case f.in == "none":
		return false
	case f.in != "" && kind != "all" && !strings.Contains(f.in, refs[0].Ask.As):
		return false
	case f.name == "shifted":
		return !noLogProbs
	case f.name == "swapped": // the token is among those of the first case
		return kind == "all" || kind == "ids" || kind == "one"
	case f.name == "neighbour", f.name == "stale": // there is another
		return kind == "all" || kind == "ids"
	}
	return true
}
