package servingtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing/fstest"
	"time"

	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// WriteFixture writes a fixture of the stub's model into a folder, and into dir/dump the dump of the
// reference of which its goldens are made. more is appended to its fixture.yaml.
func WriteFixture(dir string, more string) error {
	const steps = 6
	files := fstest.MapFS{"model/tokenizer.json": {Data: Tokenizer()}, "model/config.json": {Data: []byte(`{"eos_token_id": 2}`)}}
	var yaml strings.Builder
	yaml.WriteString("model: {path: ./model, task: text-generation}\ncases:\n")
	for _, r := range Cases(steps) {
		input := map[string]any{"steps": steps}
		switch r.Ask.As {
		case serving.AsIDs:
			input["token_ids"] = r.Ask.IDs
		case serving.AsText:
			input["prompt"] = r.Ask.Prompt
		case serving.AsChat:
			input["messages"] = r.Ask.Messages
		}
		fmt.Fprintf(&yaml, "  %s: %s\n", r.Case, encoded(input))
		dumpOf(files, r)
	}
	files["fixture.yaml"] = &fstest.MapFile{Data: []byte(yaml.String() + more)}
	return os.CopyFS(dir, files)
}

// dumpOf adds the files of a case's dump: a prefill, and a step for each token after it.
func dumpOf(files fstest.MapFS, r *serving.Reference) {
	run := map[string]any{"schema": 2, "engine": "stub", "token_ids": [][]int{r.Prompt}, "case": r.Case}
	files["dump/"+r.Case+"/run.json"] = &fstest.MapFile{Data: encoded(run)}
	seen := r.Prompt
	for step := range r.Tokens {
		fed := seen
		if step > 0 {
			fed = []int{r.Tokens[step-1]}
			seen = append(seen[:len(seen):len(seen)], fed...)
		}
		ids := make([]int64, len(fed))
		rows := make([]float32, 0, len(fed)*Vocabulary)
		for i := range fed {
			ids[i] = int64(fed[i])
			for _, x := range Logits(seen[:len(seen)-len(fed)+i+1]) {
				rows = append(rows, float32(x))
			}
		}
		in, err := tensor.Of(ids, 1, len(ids))
		must(err)
		out, err := tensor.Of(rows, 1, len(ids), Vocabulary)
		must(err)
		for label, t := range map[string]*tensor.Tensor{"model.embed_tokens-input_0": in, "model-output_logits": out} {
			var b bytes.Buffer
			must(npy.Write(&b, t))
			files[fmt.Sprintf("dump/%s/%d/%s.npy", r.Case, step, label)] = &fstest.MapFile{Data: b.Bytes()}
		}
	}
}

// Named is a server with a fault by its name.
func Named(mood string) *Stub {
	switch mood {
	case "right":
		return &Stub{}
	case "no-ids":
		return &Stub{Refuses: Strict}
	case "bos-twice":
		return &Stub{Asked: func(q *Request) {
			if q.As != serving.AsIDs {
				q.Tokens = append([]int{BOS}, q.Tokens...)
			}
		}}
	case "neighbour":
		return &Stub{Among: Neighbour}
	case "samples":
		return &Stub{Choose: func(row []float64, _ int, r *rand.Rand) int { return Ranked(row)[r.IntN(3)] }}
	case "html":
		return &Stub{Answer: func(w http.ResponseWriter, _ *Request, _, _ int) bool {
			fmt.Fprint(w, "<html>")
			return true
		}}
	case "slow":
		return &Stub{Answer: func(http.ResponseWriter, *Request, int, int) bool {
			time.Sleep(time.Minute)
			return false
		}}
	case "crash":
		return &Stub{Answer: func(w http.ResponseWriter, _ *Request, n, _ int) bool {
			if n == 2 {
				HangUp(w)
				fmt.Fprintln(os.Stderr, "last words")
				os.Exit(7)
			}
			return false
		}}
	}
	panic("no such mood: " + mood)
}

// Neighbour gives the answer of another request that is on its way.
func Neighbour(q *Request, others []*Request) {
	if len(others) > 0 {
		*q = *others[0]
	}
}

// HangUp closes the connection in the middle of an answer.
func HangUp(w http.ResponseWriter) {
	conn, buffer, err := w.(http.Hijacker).Hijack()
	must(err)
	fmt.Fprint(buffer, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"choices\":[{\"te")
	buffer.Flush()
	conn.Close()
}
