// Package servingtest has a server of OpenAI's API for tests: its model is a hash, its faults are
// fields.
package servingtest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/tensor"
)

// The stub's model has tokens 0 to 31; 1 begins a text and 2 ends it. Its logits are a hash of all
// tokens before: a prompt that differs anywhere is answered with something else.
const (
	Vocabulary = 32
	BOS        = 1
	EOS        = 2
)

// Logits of the next token.
func Logits(ids []int) []float64 {
	h := fnv.New64a()
	fmt.Fprint(h, ids)
	r := rand.New(rand.NewPCG(h.Sum64(), 7))
	out := make([]float64, Vocabulary)
	for i := range out {
		out[i] = 3 * r.NormFloat64()
	}
	out[0], out[BOS], out[EOS] = -20, -20, -20
	return out
}

// IDs of a text: its words are t3, t4, …
func IDs(text string) (out []int) {
	for _, w := range strings.Fields(text) {
		var id int
		fmt.Sscanf(w, "t%d", &id)
		out = append(out, id)
	}
	return out
}

// Text of ids.
func Text(ids []int) string {
	var words []string
	for _, id := range ids {
		if id != BOS && id != EOS {
			words = append(words, fmt.Sprintf("t%d", id))
		}
	}
	return strings.Join(words, " ")
}

// Chat renders messages as ids: a token for each tool, then for each message that of its role and its content.
func Chat(messages []dump.Message, tools ...map[string]any) []int {
	out := []int{BOS}
	for range tools {
		out = append(out, 10)
	}
	for _, m := range messages {
		out = append(append(out, 3+len(m.Role)%4), IDs(m.Content)...)
	}
	return append(out, 9)
}

// Tokenizer is the tokenizer.json of the stub's model.
func Tokenizer() []byte {
	words := map[string]int{}
	for id := range Vocabulary {
		words[fmt.Sprintf("▁t%d", id)] = id
	}
	type object = map[string]any
	special := []object{{"id": BOS, "content": "<s>", "special": true}, {"id": EOS, "content": "</s>", "special": true}}
	return encoded(object{"model": object{"vocab": words}, "decoder": object{"type": "Metaspace", "replacement": "▁"},
		"added_tokens": special})
}

func encoded(value any) []byte {
	data, err := json.Marshal(value)
	must(err)
	return data
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Stub is a server whose faults are its fields. Functions are called one at a time.
type Stub struct {
	NoIDs, NoLogProbs, NoUsage bool // what it does not say
	EOSIn                      bool // the token that ends a text is among the ids
	EndsAt                     int  // the model ends a text that has so many tokens, the prompt among them; 0: never
	IgnoresEOS                 bool // it knows ignore_eos
	Whole                      bool // it knows no streams
	PromptToo                  bool // penalties count the tokens of the prompt, too
	Drafts                     bool // after the first token no one draws: what is the best comes
	Models                     []string

	Refuses func(body map[string]any) string // the message with which it refuses a request, "" if it does not

	Asked  func(q *Request)                                          // what it makes of a request
	Among  func(q *Request, others []*Request)                       // the same, with others on their way
	Answer func(w http.ResponseWriter, q *Request, n, busy int) bool // of request n, with busy on their way; true if it has answered
	Model  func(seen []int) []float64                                // in place of [Logits]
	Choose func(row []float64, k int, r *rand.Rand) int              // in place of the best
	Made   func(q *Request, m *Made)                                 // what it makes of an answer
	Stops  func(text, stop string) (before, finish string)           // where a text ends by a stop, in place of before it
	Change func(q *Request, answer map[string]any, n, busy int)      // the answer, before it is sent
	Pieces func(events []string) []string                            // of a stream, in place of those that are right
	Holds  bool                                                      // a stream goes on once another request has come, or after a moment
	Joined func(rest []string) []string                              // what is left of a stream when another request has come

	// A draft model proposes 20 tokens for each request: how many are accepted of request n, with busy on their way, and
	// how a page of metrics tells it.
	Accepts func(q *Request, n, busy int) int
	Page    func(proposed, accepted int) string

	mu       sync.Mutex
	proposed int
	accepted int
	n        int
	inflight []*Request
	random   *rand.Rand
}

// Made is an answer: its tokens, their log-probabilities, those of the tokens beside them, its text, and why it ended.
type Made struct {
	IDs    []int
	P      []float64
	Top    []map[string]float64
	Text   string
	Finish string
}

// Cut has other tokens come, and another reason.
func (m *Made) Cut(ids []int, finish string) { m.IDs, m.Text, m.Finish = ids, Text(ids), finish }

func (m *Made) add(id int, p float64, top map[string]float64) {
	m.IDs, m.P, m.Top = append(m.IDs, id), append(m.P, p), append(m.Top, top)
}

// Request is what the server is asked.
type Request struct {
	Model    string           `json:"model"`
	Prompt   any              `json:"prompt"`
	Messages []dump.Message   `json:"messages"`
	Tools    []map[string]any `json:"tools"`
	Max      int              `json:"max_tokens"`
	LogProbs any              `json:"logprobs"`
	IDs      bool             `json:"return_token_ids"`
	Echo     bool             `json:"echo"`
	Stream   bool             `json:"stream"`
	NoEnd    bool             `json:"ignore_eos"`
	TopK     int              `json:"top_k"`
	Heat     float64          `json:"temperature"`
	TopP     float64          `json:"top_p"`
	MinP     float64          `json:"min_p"`
	Seed     *uint64          `json:"seed"`
	Stop     []string         `json:"stop"`
	Bias     map[int]float64  `json:"logit_bias"`
	Often    float64          `json:"frequency_penalty"`
	Present  float64          `json:"presence_penalty"`
	Again    float64          `json:"repetition_penalty"` // 0: 1
	As       string           `json:"-"`                  // as package serving calls it
	Tokens   []int            `json:"-"`                  // of the prompt
}

// Strict refuses return_token_ids, as servers do that know no key but OpenAI's.
func Strict(body map[string]any) string {
	if body["return_token_ids"] != nil {
		return "1 validation error: return_token_ids: Extra inputs are not permitted"
	}
	return ""
}

// Start starts the server and returns its address. It ends with the test.
func (s *Stub) Start(t testing.TB) string {
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// Handler is the server.
func (s *Stub) Handler() http.Handler {
	s.random = rand.New(rand.NewPCG(1, 2))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		list := []map[string]any{{"id": "stub", "object": "model"}}
		for i, id := range s.Models {
			list = append(list[:i], map[string]any{"id": id})
		}
		w.Write(encoded(map[string]any{"object": "list", "data": list}))
	})
	if s.Page != nil {
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			fmt.Fprint(w, s.Page(s.proposed, s.accepted))
		})
	}
	mux.HandleFunc("POST /v1/completions", s.serve)
	mux.HandleFunc("POST /v1/chat/completions", s.serve)
	return mux
}

// read returns a request; nil if it was refused.
func (s *Stub) read(w http.ResponseWriter, r *http.Request) *Request {
	data, err := io.ReadAll(r.Body)
	must(err)
	var body map[string]any
	var q Request
	must(json.Unmarshal(data, &body))
	if s.Refuses != nil {
		if message := s.Refuses(body); message != "" {
			w.WriteHeader(http.StatusBadRequest)
			w.Write(encoded(map[string]any{"error": map[string]any{"message": message}}))
			return nil
		}
	}
	must(json.Unmarshal(data, &q))
	if q.Echo {
		panic("echo was asked for, which kills a server")
	}
	switch p := q.Prompt.(type) {
	case string:
		q.As, q.Tokens = serving.AsText, append([]int{BOS}, IDs(p)...)
	case []any:
		q.As = serving.AsIDs
		for _, id := range p {
			q.Tokens = append(q.Tokens, int(id.(float64)))
		}
	default:
		q.As, q.Tokens = serving.AsChat, Chat(q.Messages, q.Tools...)
	}
	return &q
}

func (s *Stub) serve(w http.ResponseWriter, r *http.Request) {
	q := s.read(w, r)
	if q == nil {
		return
	}
	s.mu.Lock()
	n := s.n
	s.n++
	s.inflight = append(s.inflight, q)
	others := slices.Clone(s.inflight)
	if s.Accepts != nil {
		s.proposed, s.accepted = s.proposed+20, s.accepted+s.Accepts(q, n, len(others))
	}
	s.mu.Unlock()
	self := func(o *Request) bool { return o == q }
	defer func() {
		s.mu.Lock()
		s.inflight = slices.DeleteFunc(s.inflight, self)
		s.mu.Unlock()
	}()
	if s.Change != nil || s.Among != nil && q.Heat == 0 {
		wait := 3 * time.Millisecond
		if s.Accepts != nil { // which counts those that are there when a request comes
			wait = 20 * time.Millisecond
		}
		time.Sleep(wait) // others come meanwhile
		s.mu.Lock()
		for _, o := range s.inflight {
			if !slices.Contains(others, o) {
				others = append(others, o)
			}
		}
		s.mu.Unlock()
		time.Sleep(3 * time.Millisecond) // all see each other
	}
	busy := len(others)
	if s.Answer != nil && s.Answer(w, q, n, busy) {
		return
	}
	s.mu.Lock()
	of := *q
	if s.Asked != nil {
		s.Asked(&of)
	}
	if s.Among != nil {
		s.Among(&of, slices.DeleteFunc(others, self))
	}
	m := s.make(&of, q.Max)
	out := s.wire(&of, m, q.As)
	if s.Change != nil && !q.Stream {
		s.Change(q, out, n, busy)
	}
	s.mu.Unlock()
	if q.Stream && !s.Whole {
		s.stream(w, m, q.As, n)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(encoded(out))
}

// stream sends the answer to request n in pieces of three characters.
func (s *Stub) stream(w http.ResponseWriter, m *Made, as string, n int) {
	piece := func(text string, finish any) string {
		c := map[string]any{"index": 0, "text": text, "finish_reason": finish}
		if as == serving.AsChat {
			delete(c, "text")
			c["delta"] = map[string]any{"content": text}
		}
		return string(encoded(map[string]any{"choices": []any{c}}))
	}
	var events []string
	for part := range slices.Chunk([]rune(m.Text), 3) {
		events = append(events, piece(string(part), nil))
	}
	events = append(events, piece("", m.Finish), "[DONE]")
	if s.Pieces != nil {
		events = s.Pieces(events)
	}
	for len(events) > 0 {
		fmt.Fprintf(w, "data: %s\n\n", events[0])
		w.(http.Flusher).Flush()
		if events = events[1:]; s.Holds && s.joined(n) && s.Joined != nil {
			events = s.Joined(events)
		}
	}
}

// joined waits a moment for another request after the n-th, and reports whether it has come.
func (s *Stub) joined(n int) (come bool) {
	for i := 0; i < 20 && !come; i++ {
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		come = s.n > n+1
		s.mu.Unlock()
	}
	return come
}

// make answers a request.
func (s *Stub) make(q *Request, most int) *Made {
	random, model := s.random, Logits
	if q.Seed != nil {
		random = rand.New(rand.NewPCG(*q.Seed, 0))
	}
	if s.Model != nil {
		model = s.Model
	}
	m := &Made{Finish: "length"}
	for k := range most {
		seen := slices.Concat(q.Tokens, m.IDs)
		row := q.altered(model(seen), m.IDs, s.PromptToo)
		best, lse := floats.MaxIdx(row), floats.LogSumExp(row)
		if s.Choose != nil && q.TopK != 1 {
			best = s.Choose(row, k, random)
		} else if q.Heat > 0 && !(s.Drafts && k > 0) {
			best = drawn(row, q, random)
		}
		ends := s.EndsAt > 0 && len(seen) >= s.EndsAt && !(q.NoEnd && s.IgnoresEOS)
		if ends || best == EOS && q.Heat > 0 {
			if m.Finish = "stop"; s.EOSIn {
				m.add(EOS, row[EOS]-lse, nil)
			}
			break
		}
		five := map[string]float64{}
		for _, id := range Ranked(row)[:5] {
			five[fmt.Sprintf("t%d", id)] = row[id] - lse
		}
		m.add(best, row[best]-lse, five)
	}
	if m.Text = Text(m.IDs); s.Made != nil {
		s.Made(q, m)
	}
	for _, stop := range q.Stop {
		before, _, found := strings.Cut(m.Text, stop)
		if found && s.Stops != nil {
			m.Text, m.Finish = s.Stops(m.Text, stop)
		} else if found {
			m.Text, m.Finish = before, "stop"
		}
	}
	return m
}

func (s *Stub) wire(q *Request, m *Made, as string) map[string]any {
	choice := map[string]any{"index": 0, "finish_reason": m.Finish, "text": m.Text}
	scores := map[string]any{"token_logprobs": m.P, "top_logprobs": m.Top}
	if as == serving.AsChat {
		choice["message"] = map[string]any{"role": "assistant", "content": m.Text}
		delete(choice, "text")
		var content []any
		for _, p := range m.P {
			content = append(content, map[string]any{"token": "x", "logprob": p})
		}
		scores = map[string]any{"content": content}
	}
	if q.IDs && !s.NoIDs {
		choice["token_ids"], choice["prompt_token_ids"] = append([]int{}, m.IDs...), q.Tokens
	}
	if q.LogProbs != nil && !s.NoLogProbs {
		choice["logprobs"] = scores
	}
	out := map[string]any{"id": "x", "choices": []any{choice}}
	if !s.NoUsage {
		out["usage"] = map[string]any{"prompt_tokens": len(q.Tokens), "completion_tokens": len(m.IDs)}
	}
	return out
}

// altered are logits by the settings of a request, after the tokens that it has made; those of the prompt count where
// promptToo says so.
func (q *Request) altered(row []float64, made []int, promptToo bool) []float64 {
	out, counted := slices.Clone(row), map[int]float64{}
	if promptToo {
		made = slices.Concat(q.Tokens, made)
	}
	for _, id := range made {
		counted[id]++
	}
	for id := range out {
		out[id] += q.Bias[id]
		n := counted[id]
		said := n > 0 || slices.Contains(q.Tokens, id)
		switch {
		case !said || q.Again == 0:
		case out[id] > 0:
			out[id] /= q.Again
		default:
			out[id] *= q.Again
		}
		if out[id] -= n * q.Often; n > 0 {
			out[id] -= q.Present
		}
	}
	return out
}

// drawn is a token of the distribution that a request asks for.
func drawn(row []float64, q *Request, r *rand.Rand) int {
	order, p := Ranked(row), make([]float64, len(row)) // by rank
	for i, id := range order {
		p[i] = math.Exp((row[id] - row[order[0]]) / q.Heat)
	}
	mass, all, kept := 0.0, floats.Sum(p), 0
	for kept < len(p) && !(q.TopK > 0 && kept >= q.TopK || q.TopP > 0 && mass/all >= q.TopP || p[kept] < q.MinP) {
		mass += p[kept]
		kept++
	}
	x := r.Float64() * mass
	for i := range kept {
		if x -= p[i]; x < 0 {
			return order[i]
		}
	}
	return order[0]
}

// Ranked lists tokens by their logits, the largest first.
func Ranked(row []float64) []int {
	at := make([]int, len(row))
	floats.Argsort(slices.Clone(row), at)
	slices.Reverse(at)
	return at
}

// Reference is what the stub's model says to a prompt.
func Reference(name string, ask serving.Ask, prompt []int, n int) *serving.Reference {
	r := &serving.Reference{Case: name, Ask: ask, Prompt: prompt}
	for range n {
		row := Logits(slices.Concat(prompt, r.Tokens))
		r.Rows = append(r.Rows, serving.NewRow(generation.NewRow(row), tensor.F32))
		r.Tokens = append(r.Tokens, floats.MaxIdx(row))
	}
	r.Ask.Tokens = n
	r.Text = Text(r.Tokens)
	return r
}

// Cases are the references of a fixture: two prompts as ids that begin alike, one as text, one chat.
func Cases(n int) []*serving.Reference {
	a, b, words := []int{BOS, 5, 6, 7, 8}, []int{BOS, 5, 6, 9}, "t11 t12 t13"
	messages := []dump.Message{{Role: "system", Content: "t20 t21"}, {Role: "user", Content: "t22 t23"}}
	return []*serving.Reference{
		Reference("first", serving.Ask{As: serving.AsIDs, IDs: a}, a, n),
		Reference("second", serving.Ask{As: serving.AsIDs, IDs: b}, b, n),
		Reference("words", serving.Ask{As: serving.AsText, Prompt: words}, append([]int{BOS}, IDs(words)...), n),
		Reference("talk", serving.Ask{As: serving.AsChat, Messages: messages}, Chat(messages), n),
	}
}
