package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// fakePython stands for an interpreter that has both engines: PARITY_PYTHON=fakepython. Its models
// are fakeLayers layers that add to the embedding of a token. FAKE_MOOD changes what max does:
// "wrong" gives layer 5 another output, "crash" ends it, "shy" returns something else when hooks
// are there; FAKE_MOOD=infra fails both.
func fakePython() {
	args := os.Args[1:]
	switch {
	case slices.Contains(args, "-I"): // where transformers is
		fmt.Printf("%s\n5.12.1\n", os.Getenv("FAKE_TRANSFORMERS"))
	case slices.Contains(args, "-c"):
		fmt.Println(`{"python": "3.11.7", "glibc": "2.30", "packages": {"torch": "2.15.0", "transformers": "5.12.1", "max": "26.6.0"}}`)
	default:
		os.Exit(fakeEngine(args[len(args)-1]))
	}
}

const fakeLayers = 16

type fakeJob struct {
	Engine, Out, Nonce, Encoding, Device, Task, Oracle, Observer string

	Cases []struct {
		Name     string
		Prompts  []string
		TokenIDs [][]int `json:"token_ids"`
		Steps    int
		Forced   [][]int
	}
}

func fakeEngine(file string) int {
	fd, _ := strconv.Atoi(os.Getenv("PARITY_PROGRESS_FD"))
	pipe := os.NewFile(uintptr(fd), "progress")
	say := func(format string, args ...any) { fmt.Fprintf(pipe, format+"\n", args...) }
	var job fakeJob
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &job)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	mood := os.Getenv("FAKE_MOOD")
	say(`{"phase":"import"}`)
	if mood == "infra" {
		say(`{"error":{"class":"infra","message":"this machine has no %s","hint":"install it"}}`, job.Engine)
		return 1
	}
	say(`{"phase":"import","seconds":1.5}`)
	say(`{"model":{"class":"fake.%s.Model","file":"/engines/%s/model.py"}}`, job.Engine, job.Engine)
	if mood == "crash" && job.Engine == "max" {
		fmt.Fprintln(os.Stderr, "last words")
		return 3
	}
	for _, c := range job.Cases {
		say(`{"phase":"forward"}`)
		ids := c.TokenIDs
		if len(ids) > 0 {
			c.Prompts = nil // the tokens that it is given
		}
		for _, p := range c.Prompts {
			var row []int
			for _, b := range []byte(p) {
				row = append(row, int(b))
			}
			ids = append(ids, row)
		}
		if len(ids) == 0 {
			ids = [][]int{{1, 2, 3}} // an oracle makes its own input
		}
		dir := filepath.Join(job.Out, c.Name)
		if err := fakeRun(job, dir, c.Name, ids, max(c.Steps, 1), c.Forced, mood); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 9
		}
		say(`{"phase":"forward","seconds":0.25}`)
	}
	return 0
}

// fakeRun writes one case: the token decoded in step s is 200 + s.
func fakeRun(job fakeJob, dir, name string, ids [][]int, steps int, forced [][]int, mood string) error {
	sequence := make([][]int, len(ids))
	for i, row := range ids {
		sequence[i] = slices.Clone(row)
		for s := range steps {
			token := 200 + s
			if i < len(forced) && s < len(forced[i]) {
				token = forced[i][s]
			}
			sequence[i] = append(sequence[i], token)
		}
	}
	versions := map[string]string{job.Engine: "1.0", "transformers": "5.12.1"}
	if os.Getenv("PARITY_TRANSFORMERS") != "" {
		versions["transformers"] += " (edited copy)"
	}
	var order []dump.OrderEntry
	for s := range steps {
		var at []int
		for i, row := range ids {
			if s == 0 {
				at = append(at, row...)
			} else {
				at = append(at, sequence[i][len(row)+s-1])
			}
		}
		var named []tensor.Named
		add := func(layer, port string, t *tensor.Tensor, err error) error {
			named = append(named, tensor.Named{Name: layer + "-" + port, Tensor: t})
			order = append(order,
				dump.OrderEntry{Step: fmt.Sprint(s), Layer: layer, Port: port, File: "all.safetensors",
					Name: layer + "-" + port})
			return err
		}
		width := len(at) / len(ids)
		tokens := make([]int64, len(at))
		values := make([]float32, 4*len(at))
		for i, id := range at {
			tokens[i] = int64(id)
			for k := range 4 {
				values[4*i+k] = float32(id*(k+1)%17) - 8
			}
		}
		t, err := tensor.Of(tokens, len(ids), width)
		if err := add("model.model.embed_tokens", "input_0", t, err); err != nil {
			return err
		}
		for l := range fakeLayers {
			if l == 5 && mood == "wrong" && job.Engine == "max" {
				values[0] += 3
			}
			t, err := tensor.Of(slices.Clone(values), len(ids), width, 4)
			layer := fmt.Sprintf("model.model.layers.%d", l-1)
			if l == 0 {
				layer = "model.model.embed_tokens"
			}
			if err := add(layer, "output", t, err); err != nil {
				return err
			}
			for i := range values {
				values[i] += float32(l%3) - 1.5
			}
		}
		step := filepath.Join(dir, fmt.Sprint(s))
		if job.Observer != "" {
			if job.Observer == engine.Seen && job.Engine == "max" && mood == "shy" {
				values[0]++
			}
			t, err := tensor.Of(values, len(values))
			if err == nil {
				err = fakeFile(step, "returned.safetensors", tensor.Named{Name: "returned-output_0", Tensor: t})
			}
			if err != nil {
				return err
			}
		}
		if job.Observer == engine.Blind {
			order = append(order[:s:s],
				dump.OrderEntry{Step: fmt.Sprint(s), Layer: "returned", Port: "output_0",
					File: "returned.safetensors", Name: "returned-output_0"})
			continue
		}
		if err := fakeFile(step, "all.safetensors", named...); err != nil {
			return err
		}
	}
	run := map[string]any{"schema": 2, "engine": job.Engine, "versions": versions, "device": job.Device,
		"encoding": job.Encoding, "mode": "standard",
		"case": name, "token_ids": ids, "sequence": sequence, "order": order, "nonce": job.Nonce,
		"model_class": "fake.Model", "model_file": "model.py",
		"seconds": map[string]float64{"import": 1.5, "forward": 0.25}, "peak_rss_bytes": 100 << 20}
	if job.Engine == "torch" && job.Task == "text-generation" {
		run["reference_text"] = "and on it goes"
	}
	data, err := json.Marshal(run)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "run.json"), data, 0o644)
}

func fakeFile(dir, name string, tensors ...tensor.Named) error {
	var b bytes.Buffer
	if err := safetensors.Write(&b, tensors, nil); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644)
}
