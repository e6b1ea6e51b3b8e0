package servingtest

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	files := map[string][]byte{"model/tokenizer.json": Tokenizer(), "model/config.json": []byte(`{"eos_token_id": 2}`)}
	var yaml strings.Builder
	yaml.WriteString("model: {path: ./model, task: text-generation}\ncases:\n")
	for _, r := range Cases(steps) {
		input := map[string]map[string]any{serving.AsIDs: {"token_ids": r.Ask.IDs}, serving.AsText: {"prompt": r.Ask.Prompt},
			serving.AsChat: {"messages": r.Ask.Messages}}[r.Ask.As]
		input["steps"] = steps
		fmt.Fprintf(&yaml, "  %s: %s\n", r.Case, encoded(input))
		dumpOf(files, r)
	}
	files["fixture.yaml"] = []byte(yaml.String() + more)
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// dumpOf adds the files of a case's dump: a prefill, and a step for each token after it.
func dumpOf(files map[string][]byte, r *serving.Reference) {
	run := map[string]any{"schema": 2, "engine": "stub", "token_ids": [][]int{r.Prompt}, "case": r.Case}
	files["dump/"+r.Case+"/run.json"] = encoded(run)
	seen, from := slices.Concat(r.Prompt, r.Tokens), 0
	for step := range r.Tokens {
		ids, rows := []int64{}, []float32{}
		for ; from < len(r.Prompt)+step; from++ {
			ids = append(ids, int64(seen[from]))
			for _, x := range Logits(seen[:from+1]) {
				rows = append(rows, float32(x))
			}
		}
		folder := fmt.Sprintf("dump/%s/%d/", r.Case, step)
		files[folder+"model.embed_tokens-input_0.npy"] = array(ids, 1, len(ids))
		files[folder+"model-output_logits.npy"] = array(rows, 1, len(ids), Vocabulary)
	}
}

func array[T tensor.Element](values []T, shape ...int) []byte {
	t, err := tensor.Of(values, shape...)
	must(err)
	var b bytes.Buffer
	must(npy.Write(&b, t))
	return b.Bytes()
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
