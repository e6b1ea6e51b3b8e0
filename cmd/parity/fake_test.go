package main

import (
	"bytes"
	"encoding/json"
	"errors"
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
	Engine, Out, Nonce, Encoding, Device, Task, Oracle, Observer, Mode, Frames string

	Program bool

	Cases []struct {
		Name     string
		Prompts  []string
		TokenIDs [][]int `json:"token_ids"`
		Images   [][]string
		Steps    int
		Forced   [][]int
		Path     string
		Passes   [][]dump.PassItem
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
		dir, err := filepath.Join(job.Out, c.Name), error(nil)
		if job.Program && mood != "unrecorded" {
			err = fakeProgram(dir, c.Name, job.Frames, ids, max(c.Steps, 1), c.Forced)
		}
		if c.Path == dump.Prefix {
			hit := &c.Passes[1][0]
			hit.From = c.Passes[0][0].To
			hit.CachedTokens = hit.From
		}
		var passes [][]int // the tokens of each, one row after the other
		for _, items := range c.Passes {
			var fed []int
			for _, item := range items {
				fed = append(fed, ids[item.Sequence][item.From:item.To]...)
			}
			passes = append(passes, fed)
		}
		if passes == nil {
			passes = fakePasses(ids, max(c.Steps, 1), c.Forced)
		}
		err = errors.Join(err, fakeRun(job, dir, c.Name, ids, passes, max(c.Steps, 1), c.Forced, mood), fakePath(dir, c.Path, c.Passes))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 9
		}
		say(`{"phase":"forward","seconds":0.25}`)
	}
	return 0
}

// fakePasses are the tokens of the prefill and of each decode step of one pass.
func fakePasses(ids [][]int, steps int, forced [][]int) [][]int {
	passes := [][]int{slices.Concat(ids...)}
	for s := 1; s < steps; s++ {
		var fed []int
		for i := range ids {
			token := 200 + s - 1
			if i < len(forced) && s <= len(forced[i]) {
				token = forced[i][s-1]
			}
			fed = append(fed, token)
		}
		passes = append(passes, fed)
	}
	return passes
}

// fakePath adds to a run.json which execution path it was run along.
func fakePath(dir, path string, passes [][]dump.PassItem) error {
	if path == "" {
		return nil
	}
	file := filepath.Join(dir, "run.json")
	var run map[string]any
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &run)
	}
	if err != nil {
		return err
	}
	run["path"], run["passes"] = path, passes
	if data, err = json.Marshal(run); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// fakeRun writes one case, a folder for each pass: the token decoded in step s is 200 + s.
func fakeRun(job fakeJob, dir, name string, ids, passes [][]int, steps int, forced [][]int, mood string) error {
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
	order := []dump.OrderEntry{}
	for s, at := range passes {
		if job.Mode == engine.ProgramMode {
			break
		}
		var named []tensor.Named
		add := func(layer, port string, t *tensor.Tensor, err error) error {
			named = append(named, tensor.Named{Name: layer + "-" + port, Tensor: t})
			order = append(order,
				dump.OrderEntry{Step: fmt.Sprint(s), Layer: layer, Port: port, File: "all.safetensors",
					Name: layer + "-" + port})
			return err
		}
		batch := len(ids)
		if len(at)%batch != 0 || len(passes) != steps { // along a path: ragged
			batch = 1
		}
		width := len(at) / batch
		tokens := make([]int64, len(at))
		values := make([]float32, 4*len(at))
		for i, id := range at {
			tokens[i] = int64(id)
			for k := range 4 {
				values[4*i+k] = float32(id*(k+1)%17) - 8
			}
		}
		t, err := tensor.Of(tokens, batch, width)
		if err := add("model.model.embed_tokens", "input_0", t, err); err != nil {
			return err
		}
		for l := range fakeLayers {
			if l == 5 && mood == "wrong" && job.Engine == "max" {
				values[0] += 3
			}
			t, err := tensor.Of(slices.Clone(values), batch, width, 4)
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
			order = append(order[:s:s], dump.OrderEntry{Step: fmt.Sprint(s), Layer: "returned", Port: "output_0",
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
	for _, c := range job.Cases {
		for _, file := range slices.Concat(c.Images...) {
			if _, err := os.Stat(file); err != nil {
				return err // it was not drawn
			}
			if c.Name == name {
				run["images"] = [][]string{{filepath.Base(file)}}
			}
		}
	}
	if mood == "unrecorded" {
		run["program_error"] = "an operator without a schema"
	}
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

// fakeVocab is how many rows the embedding has, whose weight is fakeWeight.
const (
	fakeVocab  = 300
	fakeWeight = "model.embed_tokens.weight"
)

// fakeWeights writes the weights of the fake model: fakeweights FILE
func fakeWeights() {
	values := make([]float32, 4*fakeVocab)
	for i := range values {
		values[i] = float32(i/4*(i%4+1)%17) - 8
	}
	t, err := tensor.Of(values, fakeVocab, 4)
	if err == nil {
		err = fakeFile(filepath.Dir(os.Args[1]), filepath.Base(os.Args[1]), tensor.Named{Name: fakeWeight, Tensor: t})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fakeProgram writes what the fake model runs: an embedding, and in each layer an addition.
func fakeProgram(dir, name, frames string, ids [][]int, steps int, forced [][]int) error {
	type object = map[string]any
	values := []object{{"id": 0, "shape": []int{fakeVocab, 4}, "dtype": "float32", "from": object{"weight": fakeWeight}}}
	var ops, passes []object
	value := func(shape []int, dtype string, from object) string {
		values = append(values, object{"id": len(values), "shape": shape, "dtype": dtype, "from": from})
		return fmt.Sprintf("%%%d", len(values)-1)
	}
	text := "hidden + step"
	if frames == engine.FramesLines {
		text = ""
	}
	var inputs []tensor.Named
	for s, fed := range fakePasses(ids, steps, forced) {
		shape, first := []int{len(ids), len(fed) / len(ids)}, len(ops)
		given := make([]int64, len(fed))
		for i, id := range fed {
			given[i] = int64(id)
		}
		t, err := tensor.Of(given, shape...)
		if err != nil {
			return err
		}
		inputs = append(inputs, tensor.Named{Name: fmt.Sprintf("input:%d:input_ids", s), Tensor: t})
		x := value(shape, "int64", object{"input": "input_ids", "step": fmt.Sprint(s)})
		hidden := append(slices.Clone(shape), 4)
		ports := object{"model.model.embed_tokens-input_0": []any{x, first, first + 1}}
		for l := range fakeLayers {
			op := object{"op": "aten.add.Tensor", "args": object{"self": x, "other": object{"float": fmt.Sprint(float64((l-1)%3) - 1.5)}, "alpha": 1}}
			layer := fmt.Sprintf("model.model.layers.%d", l-1)
			if l == 0 {
				layer = "model.model.embed_tokens"
				op = object{"op": "aten.embedding.default", "args": object{"weight": "%0", "indices": x, "padding_idx": -1,
					"scale_grad_by_freq": false, "sparse": false}}
			}
			x = value(hidden, "float32", object{"op": len(ops)})
			op["out"], op["layer"], op["call"], op["stack"] = []string{x}, layer, 1, 0
			ops = append(ops, op)
			ports[layer+"-output"] = []any{x, len(ops), len(ops)}
		}
		passes = append(passes, object{"step": fmt.Sprint(s), "ops": []int{first, len(ops)}, "ports": ports})
	}
	data, err := json.Marshal(object{"schema": 1, "engine": "torch 2.15.0", "case": name, "frames": []any{[]any{"fake.py", 7, 8, 21, text}},
		"stacks": [][]int{{0}}, "values": values, "ops": ops, "passes": passes})
	if err == nil {
		err = fakeFile(dir, dump.ConstantsFile, inputs...)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, dump.ProgramFile), data, 0o644)
}
