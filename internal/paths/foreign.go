package paths

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// IsForeign reports whether a path is a file that another tool wrote: JSON of logits, a response of a
// server, or what llama-perplexity saves.
func IsForeign(path string) bool {
	st, err := os.Stat(path)
	ext := strings.ToLower(filepath.Ext(path))
	return err == nil && st.Mode().IsRegular() && (ext == ".json" || ext == ".kld")
}

// ReadForeign reads the texts of a file that another tool wrote. golden, which may be nil, are those of
// the other side: what is returned is in their order.
func ReadForeign(path string, golden []*Side) ([]*Side, error) {
	data, err := mapfile.Read(path, mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	sides, err := decodeForeign(filepath.ToSlash(path), data, golden)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if golden == nil {
		return sides, nil
	}
	return inOrder(path, sides, golden)
}

// decodeForeign tells the formats apart by their content.
func decodeForeign(path string, data []byte, golden []*Side) ([]*Side, error) {
	switch trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff"); {
	case bytes.HasPrefix(data, []byte(perplexityMagic)):
		return perplexity(path, data)
	case bytes.HasPrefix(trimmed, []byte("[")):
		return modular(path, data)
	case bytes.HasPrefix(trimmed, []byte("{")):
		return response(path, data, golden)
	}
	return nil, unjudged("it is no JSON: want a list of prompts with values, or a response with choices")
}

// inOrder finds the text of each golden: by its prompt, or else by its name, or else by its place.
func inOrder(path string, sides, golden []*Side) (out []*Side, err error) {
	for i, g := range golden {
		at := slices.IndexFunc(sides, func(s *Side) bool { return g.Asked != "" && s.Asked == g.Asked })
		if at < 0 {
			at = slices.IndexFunc(sides, func(s *Side) bool { return g.Case != "" && s.Case == g.Case })
		}
		if at < 0 && len(sides) == len(golden) {
			at = i
		}
		if at < 0 {
			return nil, unjudged("%s has %d texts and none of them is text %d of the golden, which has %d", path, len(sides), i, len(golden))
		}
		out = append(out, sides[at])
	}
	return out, nil
}

// modular reads a list of {"prompt", "values": [{"next_token", "logits" or "logprobs"}]}. The token is
// the one that the next step was fed, which the engine may not have chosen.
func modular(path string, data []byte) ([]*Side, error) {
	var prompts []struct {
		Prompt json.RawMessage `json:"prompt"`
		Values []struct {
			NextToken *array `json:"next_token"` // one token, alone or in a list
			Logits    *array `json:"logits"`
			LogProbs  *array `json:"logprobs"`
		} `json:"values"`
	}
	if err := json.Unmarshal(data, &prompts); err != nil {
		return nil, unjudged("%v", mapfile.JSONError(data, err))
	}
	var sides []*Side
	for i, p := range prompts {
		s := &Side{Case: fmt.Sprintf("prompt-%d", i), From: path, Prompt: -1, Free: true}
		if json.Unmarshal(p.Prompt, &s.Asked) != nil {
			s.Asked = string(p.Prompt)
		}
		var rows []generation.Row
		of := tensor.F32
		for k, v := range p.Values {
			logits := cmp.Or(v.Logits, v.LogProbs)
			token, err := v.NextToken.token()
			if logits == nil || len(logits.values) == 0 {
				err = errors.New("no logits")
			}
			if err != nil {
				return nil, unjudged("[%d].values[%d]: %v", i, k, err)
			}
			rows, of, s.Fed = append(rows, generation.NewRow(logits.values)), logits.of, append(s.Fed, token)
		}
		if len(rows) == 0 {
			return nil, unjudged("[%d] has no values with logits: want [{\"prompt\": …, \"values\": [{\"next_token\": 5, \"logits\": …}]}]", i)
		}
		s.logits = listed("values.logits", of, rows)
		sides = append(sides, s)
	}
	if len(sides) == 0 {
		return nil, unjudged("it lists no prompt")
	}
	return sides, nil
}

// token is a number that is an id.
func (a *array) token() (token int, err error) {
	if a == nil || len(a.values) == 0 {
		return 0, errors.New("next_token: missing: want the token that the next step was fed")
	}
	x := a.values[0]
	if len(a.values) > 1 || !(x >= 0 && x <= math.MaxInt32) || x != math.Trunc(x) {
		return 0, fmt.Errorf("next_token: %v is no token id", x)
	}
	return int(x), nil
}

// array is a number, a list of numbers, in lists, or {"__np__": base64, "shape": […], "dtype": "float32"}.
type array struct {
	values []float64
	of     tensor.DType
}

func (a *array) UnmarshalJSON(data []byte) error {
	a.of = tensor.F32
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return a.lists(data)
	}
	var packed struct {
		NP    []byte `json:"__np__"`
		Shape []int  `json:"shape"`
		DType string `json:"dtype"`
	}
	if err := json.Unmarshal(data, &packed); err != nil {
		var corrupt base64.CorruptInputError
		if errors.As(err, &corrupt) {
			return fmt.Errorf("__np__ is no base64: %w", err)
		}
		return err
	}
	if packed.NP == nil {
		return errors.New(`want a list of numbers, or {"__np__": base64, "shape": […], "dtype": "float32"}`)
	}
	t, err := packedTensor(packed.NP, packed.Shape, packed.DType)
	if err == nil {
		a.of, a.values = t.DType(), vec.ReadAll(t)
	}
	return err
}

func packedTensor(data []byte, shape []int, name string) (*tensor.Tensor, error) {
	if bytes.HasPrefix(data, []byte("\x93NUMPY")) {
		f, err := npy.Decode("__np__", data)
		if err != nil {
			return nil, err
		}
		if len(f.Tensors) != 1 {
			return nil, errors.New("__np__ holds no array")
		}
		return f.Tensors[0].Tensor, nil
	}
	d, err := tensor.ParseDType(name)
	if err != nil {
		return nil, err
	}
	return tensor.New(d, shape, data)
}

// lists flattens lists of numbers.
func (a *array) lists(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		t, err := d.Token()
		if t == nil && err != nil {
			return nil // the end
		}
		switch x := t.(type) {
		case float64:
			a.values = append(a.values, x)
		case json.Delim:
		default:
			return fmt.Errorf("%v is no number", t)
		}
	}
}

// perplexityMagic begins what llama-perplexity --kl-divergence-base FILE saves: the log-probabilities of
// a text, in 16 bits.
//
//	"_logits_", int32 n_ctx, n_vocab, n_chunk, n_chunk·n_ctx tokens as int32, and for each chunk and each of
//	its tokens from n_ctx/2 to n_ctx − 2: float32 scale, float32 least, n_vocab numbers of 16 bits (one more
//	if n_vocab is odd); log p = least + scale·number
const perplexityMagic = "_logits_"

// perplexity reads such a file, a text for each chunk.
func perplexity(path string, data []byte) ([]*Side, error) {
	const header = len(perplexityMagic) + 12
	if len(data) < header {
		return nil, unjudged("the file ends in its header")
	}
	word := func(at int) int { return int(int32(binary.LittleEndian.Uint32(data[at:]))) }
	context, vocab, chunks := word(8), word(12), word(16)
	if context < 4 || vocab < 2 || chunks < 1 || context > len(data) || vocab > len(data) || chunks > len(data)/context/4 {
		return nil, unjudged("its header has %d chunks of %d tokens and %d words, which no file of %d bytes holds", chunks, context, vocab, len(data))
	}
	first := context / 2
	rows, width := context-1-first, 2*(2*((vocab+1)/2)+4)
	at := header + 4*chunks*context
	if want := at + chunks*rows*width; len(data) != want {
		return nil, unjudged("it has %d bytes, its header asks for %d: it was not written to its end", len(data), want)
	}
	var sides []*Side
	for chunk := range chunks {
		s := &Side{From: path, Prompt: first + 1}
		for i := range context {
			s.Text = append(s.Text, word(header+4*(chunk*context+i)))
		}
		s.Fed = s.Text[s.Prompt:]
		var read []generation.Row
		for range rows {
			read = append(read, scaledRow(data[at:at+width], vocab))
			at += width
		}
		s.logits = listed("log-probabilities", tensor.F16, read)
		sides = append(sides, s)
	}
	return sides, nil
}

// scaledRow reads a row of numbers of 16 bits.
func scaledRow(data []byte, vocab int) generation.Row {
	scale := float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
	least := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4:])))
	v := make([]float64, vocab)
	for i := range v {
		v[i] = least + scale*float64(binary.LittleEndian.Uint16(data[8+2*i:]))
	}
	return generation.NewRow(v)
}

// words numbers the texts of tokens: by the ids that a response shows beside texts, else below 0.
type words map[string]int

// id is the number of a token's text.
func (w words) id(text string) int {
	if id, ok := serving.TokenID(text); ok {
		return id
	}
	id, ok := w[text]
	if !ok {
		id = -2 - len(w) // −1 is no token
		w[text] = id
	}
	return id
}

// response reads a response with log-probabilities. Tokens are ids where the server says them
// (return_token_ids); the texts of tokens alone can be compared with those of another response.
func response(path string, data []byte, golden []*Side) ([]*Side, error) {
	answers, err := serving.ReadAnswer(data)
	if err != nil {
		return nil, unjudged("want a response with choices and logprobs: %v", mapfile.JSONError(data, err))
	}
	known := words{}
	if len(golden) > 0 && golden[0].words != nil {
		known = golden[0].words
	}
	var sides []*Side
	for i := range answers {
		a := &answers[i]
		s := &Side{Case: fmt.Sprintf("choice-%d", i), From: path, Prompt: -1, Free: true, Stopped: a.Finish == "stop", Shown: a.Text, words: known}
		rows, tokens, err := lineRows(a, known)
		if err != nil {
			return nil, unjudged("choices[%d]: %v", i, err)
		}
		if golden != nil && tokens[0] < 0 && len(golden[0].Fed) > 0 && golden[0].Fed[0] >= 0 {
			return nil, unjudged("choices[%d] has the texts of tokens alone, and the golden has ids: ask for \"return_token_ids\": true", i)
		}
		s.logits, s.Fed, s.Choices = listed("logprobs", tensor.F32, rows), tokens, tokens
		if a.Prompt != nil {
			s.Prompt, s.Text = len(a.Prompt), slices.Concat(a.Prompt, tokens)
		}
		sides = append(sides, s)
	}
	return sides, nil
}

// rowsOf returns the log-probabilities of each token, and the tokens.
func lineRows(a *serving.Answer, known words) (rows []generation.Row, tokens []int, err error) {
	n := len(a.LogProbs)
	switch {
	case n == 0:
		return nil, nil, errors.New("no logprobs: ask for them, \"logprobs\": 5, or \"logprobs\": true, \"top_logprobs\": 5 of a chat")
	case a.Tokens != nil && len(a.Tokens) != n:
		return nil, nil, fmt.Errorf("%d tokens have log-probabilities, token_ids has %d: ask without echo", n, len(a.Tokens))
	case a.Tokens == nil && a.Texts == nil:
		return nil, nil, fmt.Errorf("%d log-probabilities, and neither texts nor token_ids for each: ask for \"return_token_ids\": true", n)
	}
	for k, p := range a.LogProbs {
		if math.IsNaN(p) {
			return nil, nil, fmt.Errorf("log-probability %d is null, as for the first token of an echo: ask without echo", k)
		}
		var top map[string]float64
		if a.Top != nil {
			top = a.Top[k]
		}
		chosen, texts := "", slices.Sorted(maps.Keys(top))
		for _, text := range texts { // the text of an id is not always told: that of its log-probability
			if top[text] == p {
				chosen = text
			}
		}
		if a.Texts != nil {
			chosen = a.Texts[k]
		}
		id := known.id(chosen)
		if a.Tokens != nil {
			if id = a.Tokens[k]; chosen != "" {
				known[chosen] = id
			}
		}
		list := []generation.Logit{{Token: id, Value: p}}
		for _, text := range texts {
			if other := known.id(text); other != id && text != chosen {
				list = append(list, generation.Logit{Token: other, Value: top[text]})
			}
		}
		rows, tokens = append(rows, generation.Largest(list, math.NaN(), 0)), append(tokens, id)
	}
	return rows, tokens, nil
}
