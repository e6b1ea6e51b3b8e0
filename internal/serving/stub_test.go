package serving_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/serving"
	_ "github.com/goparity/goparity/internal/updateflag"
	"github.com/goparity/goparity/internal/vocab"
	"github.com/goparity/goparity/tensor"
)

// The stub's model has tokens 0 to 31; 1 begins a text and 2 ends it. Its logits are a hash of all
// tokens before: a prompt that differs anywhere is answered with something else.
const (
	vocabulary = 32
	bos        = 1
	eos        = 2
)

// logits of the next token.
func logits(ids []int) []float64 {
	h := fnv.New64a()
	fmt.Fprint(h, ids)
	r := rand.New(rand.NewPCG(h.Sum64(), 7))
	out := make([]float64, vocabulary)
	for i := range out {
		out[i] = 3 * r.NormFloat64()
	}
	out[0], out[bos], out[eos] = -20, -20, -20
	return out
}

func logSumExp(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += math.Exp(v)
	}
	return math.Log(sum)
}

func argmax(x []float64) (best int) {
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}

// ids of a text: its words are t3, t4, …
func ids(text string) (out []int) {
	for _, w := range strings.Fields(text) {
		var id int
		fmt.Sscanf(w, "t%d", &id)
		out = append(out, id)
	}
	return out
}

func text(ids []int) string {
	var words []string
	for _, id := range ids {
		if id != bos && id != eos {
			words = append(words, fmt.Sprintf("t%d", id))
		}
	}
	return strings.Join(words, " ")
}

// chat renders messages as ids: a role token, then the content.
func chat(messages []serving.Message) []int {
	out := []int{bos}
	for _, m := range messages {
		out = append(append(out, 3+len(m.Role)%4), ids(m.Content)...)
	}
	return append(out, 9)
}

// tokenizer is the tokenizer.json of the stub's model.
func tokenizer(t testing.TB) *vocab.Vocab {
	t.Helper()
	words := map[string]int{}
	for id := range vocabulary {
		words[fmt.Sprintf("▁t%d", id)] = id
	}
	data, err := json.Marshal(map[string]any{"model": map[string]any{"vocab": words},
		"decoder":      map[string]any{"type": "Metaspace", "replacement": "▁"},
		"added_tokens": []map[string]any{{"id": bos, "content": "<s>", "special": true}, {"id": eos, "content": "</s>", "special": true}}})
	require.NoError(t, err)
	v, err := vocab.Decode(data)
	require.NoError(t, err)
	return v
}

// stub is a server with the faults that its fields have.
type stub struct {
	t testing.TB
	// What it is.
	noIDs, strict, noLogProbs, noUsage, chatTop, eosOut, eosIn bool
	endsAt                                                     int // the model ends each text after so many tokens; 0: never
	digits                                                     int // of log-probabilities

	prompt  func(as string, ids []int) []int                              // what it makes of a prompt
	render  func(messages []serving.Message) []int                        // its template
	choose  func(row []float64, k int, r *rand.Rand) int                  // in place of the best
	scored  func(p []float64) []float64                                   // in place of the log-probabilities
	written func(ids []int) string                                        // in place of the text
	cut     func(ids []int, r *request) ([]int, string)                   // what it returns, and why it ended
	answer  func(w http.ResponseWriter, r *request, n int, busy int) bool // everything else; true if it has answered
	between func(r *request, n, busy int)                                 // before it answers
	change  func(r *request, answer map[string]any, n, busy int)          // the answer, before it is sent
	model   func(prompt []int) []float64                                  // in place of logits
	swap    func(mine *request, others []*request) *request               // whose answer it gives

	mu       sync.Mutex
	n        int
	busy     int
	inflight []*request
	seen     [][]int
	random   *rand.Rand
}

type request struct {
	Model    string            `json:"model"`
	Prompt   any               `json:"prompt"`
	Messages []serving.Message `json:"messages"`
	Max      int               `json:"max_tokens"`
	LogProbs any               `json:"logprobs"`
	IDs      *bool             `json:"return_token_ids"`
	Echo     bool              `json:"echo"`
	TopK     int               `json:"top_k"`
	Salt     string            `json:"cache_salt"`
	Seed     *uint64           `json:"seed"`
	as       string
	ids      []int
}

func (s *stub) start() string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"stub","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) })
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, true) })
	server := httptest.NewServer(mux)
	s.t.Cleanup(server.Close)
	s.random = rand.New(rand.NewPCG(1, 2))
	return server.URL
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request, isChat bool) {
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if q.Echo {
		s.t.Error("echo was asked for")
	}
	if s.strict && q.IDs != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"code":"400","message":"1 validation error: return_token_ids: Extra inputs are not permitted"}}`)
		return
	}
	switch p := q.Prompt.(type) {
	case string:
		q.as, q.ids = "text", append([]int{bos}, ids(p)...)
	case []any:
		q.as = "ids"
		for _, id := range p {
			q.ids = append(q.ids, int(id.(float64)))
		}
	}
	if isChat {
		render := chat
		if s.render != nil {
			render = s.render
		}
		q.as, q.ids = "chat", render(q.Messages)
	}
	if s.prompt != nil {
		q.ids = s.prompt(q.as, q.ids)
	}
	s.mu.Lock()
	n := s.n
	s.n++
	s.busy++
	s.inflight = append(s.inflight, &q)
	s.mu.Unlock()
	time.Sleep(3 * time.Millisecond) // others come meanwhile
	s.mu.Lock()
	busy := s.busy
	others := slices.Clone(s.inflight)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.busy--
		s.inflight = slices.DeleteFunc(s.inflight, func(o *request) bool { return o == &q })
		s.mu.Unlock()
	}()
	time.Sleep(3 * time.Millisecond) // all see each other
	if s.answer != nil && s.answer(w, &q, n, busy) {
		return
	}
	of := &q
	if s.swap != nil {
		of = s.swap(&q, others)
	}
	out := s.of(of, q.Max, isChat)
	if s.change != nil {
		s.mu.Lock()
		s.change(&q, out, n, busy)
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(out)
}

// of answers a request.
func (s *stub) of(q *request, most int, isChat bool) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	random := s.random
	if q.Seed != nil {
		random = rand.New(rand.NewPCG(*q.Seed, 0))
	}
	seen := slices.Clone(q.ids)
	var made []int
	var p []float64
	var top []map[string]float64
	finish := "length"
	for k := range most {
		if s.endsAt > 0 && len(seen) >= s.endsAt {
			finish = "stop"
			if s.eosIn {
				made, p, top = append(made, eos), append(p, -0.01), append(top, nil)
			}
			break
		}
		row := logits(seen)
		if s.model != nil {
			row = s.model(seen)
		}
		best := argmax(row)
		if s.choose != nil && q.TopK != 1 {
			best = s.choose(row, k, random)
		}
		lse := logSumExp(row)
		p = append(p, row[best]-lse)
		five := map[string]float64{}
		for _, id := range ranked(row)[:5] {
			five[fmt.Sprintf("t%d", id)] = row[id] - lse
		}
		top = append(top, five)
		made, seen = append(made, best), append(seen, best)
	}
	if s.cut != nil {
		made, finish = s.cut(made, q)
	}
	if s.scored != nil {
		p = s.scored(p)
	}
	if s.digits > 0 {
		for i := range p {
			unit := math.Pow(10, float64(s.digits))
			p[i] = math.Round(p[i]*unit) / unit
		}
	}
	return s.wire(q, made, p, top, finish, isChat)
}

func (s *stub) wire(q *request, made []int, p []float64, top []map[string]float64, finish string, isChat bool) map[string]any {
	write := text
	if s.written != nil {
		write = s.written
	}
	choice := map[string]any{"index": 0, "finish_reason": finish}
	if isChat {
		choice["message"] = map[string]any{"role": "assistant", "content": write(made)}
	} else {
		choice["text"] = write(made)
	}
	if q.IDs != nil && *q.IDs && !s.noIDs {
		choice["token_ids"], choice["prompt_token_ids"] = append([]int{}, made...), q.ids
	}
	if q.LogProbs != nil && !s.noLogProbs {
		if isChat {
			var content []any
			for i := range p {
				content = append(content, map[string]any{"token": "x", "logprob": p[i]})
			}
			choice["logprobs"] = map[string]any{"content": content}
		} else {
			choice["logprobs"] = map[string]any{"token_logprobs": p, "top_logprobs": top}
		}
	}
	out := map[string]any{"id": "x", "choices": []any{choice}}
	if !s.noUsage {
		out["usage"] = map[string]any{"prompt_tokens": len(q.ids), "completion_tokens": len(made)}
	}
	return out
}

func ranked(row []float64) []int {
	at := make([]int, len(row))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int {
		if row[a] > row[b] {
			return -1
		}
		return 1
	})
	return at
}

// reference is what the stub's model says to a prompt.
func reference(name string, ask serving.Ask, prompt []int, n int) *serving.Reference {
	r := &serving.Reference{Case: name, Ask: ask, Prompt: prompt}
	seen := slices.Clone(prompt)
	for range n {
		row := logits(seen)
		best := argmax(row)
		r.Rows = append(r.Rows, serving.NewRow(row, tensor.F32))
		r.Tokens = append(r.Tokens, best)
		seen = append(seen, best)
	}
	r.Ask.Tokens = n
	r.Text = text(r.Tokens)
	return r
}

// cases are the references of a fixture: two prompts as ids that begin alike, one as text, one chat.
func cases(n int) []*serving.Reference {
	a, b, words := []int{bos, 5, 6, 7, 8}, []int{bos, 5, 6, 9}, "t11 t12 t13"
	messages := []serving.Message{{Role: "system", Content: "t20 t21"}, {Role: "user", Content: "t22 t23"}}
	return []*serving.Reference{
		reference("first", serving.Ask{As: serving.AsIDs, IDs: a}, a, n),
		reference("second", serving.Ask{As: serving.AsIDs, IDs: b}, b, n),
		reference("words", serving.Ask{As: serving.AsText, Prompt: words}, append([]int{bos}, ids(words)...), n),
		reference("talk", serving.Ask{As: serving.AsChat, Messages: messages}, chat(messages), n),
	}
}
