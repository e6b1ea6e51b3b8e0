package servingtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// WriteFixture writes a fixture of the stub's model into a folder, and into dir/dump the dump of the
// reference of which its goldens are made. more is appended to its fixture.yaml.
func WriteFixture(dir string, more string) error {
	const steps = 6
	var yaml strings.Builder
	yaml.WriteString("model: {path: ./model, task: text-generation}\ncases:\n")
	files := map[string][]byte{"model/tokenizer.json": Tokenizer(), "model/config.json": []byte(`{"eos_token_id": 2}`)}
	for _, r := range Cases(steps) {
		input, err := json.Marshal(map[string]any{"token_ids": r.Ask.IDs})
		switch r.Ask.As {
		case serving.AsText:
			input, err = json.Marshal(map[string]any{"prompt": r.Ask.Prompt})
		case serving.AsChat:
			input, err = json.Marshal(map[string]any{"messages": r.Ask.Messages})
		}
		must(err)
		fmt.Fprintf(&yaml, "  %s: {%s, steps: %d}\n", r.Case, strings.Trim(string(input), "{}\n"), steps)
		if err := dumpOf(files, r); err != nil {
			return err
		}
	}
	files["fixture.yaml"] = []byte(yaml.String() + more)
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// dumpOf adds the files of a case's dump: a prefill, and a step for each token after it.
func dumpOf(files map[string][]byte, r *serving.Reference) error {
	run, err := json.Marshal(map[string]any{"schema": 2, "engine": "stub", "token_ids": [][]int{r.Prompt}, "case": r.Case})
	must(err)
	folder := "dump/" + r.Case + "/"
	files[folder+"run.json"] = run
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
			if err := npy.Write(&b, t); err != nil {
				return err
			}
			files[fmt.Sprintf("%s%d/%s.npy", folder, step, label)] = b.Bytes()
		}
	}
	return nil
}

// Named is a server with a fault by its name.
func Named(mood string) *Stub {
	answers := func(answer func(w http.ResponseWriter, n int) bool) *Stub {
		return &Stub{Answer: func(w http.ResponseWriter, _ *Request, n, _ int) bool { return answer(w, n) }}
	}
	moods := map[string]*Stub{
		"right":  {},
		"no-ids": {Refuses: Strict},
		"bos-twice": {Asked: func(q *Request) {
			if q.As != serving.AsIDs {
				q.Tokens = append([]int{BOS}, q.Tokens...)
			}
		}},
		"neighbour": {Among: Neighbour},
		"samples":   {Choose: func(row []float64, _ int, r *rand.Rand) int { return Ranked(row)[r.IntN(3)] }},
		"html": answers(func(w http.ResponseWriter, _ int) bool {
			fmt.Fprint(w, "<html>")
			return true
		}),
		"slow": answers(func(http.ResponseWriter, int) bool {
			time.Sleep(time.Minute)
			return false
		}),
		"crash": answers(func(w http.ResponseWriter, n int) bool {
			if n == 2 {
				HangUp(w)
				fmt.Fprintln(os.Stderr, "last words")
				os.Exit(7)
			}
			return false
		}),
	}
	if moods[mood] == nil {
		panic("no such mood: " + mood)
	}
	return moods[mood]
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
