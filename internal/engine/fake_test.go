package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// With this variable in its environment the test binary is a fake engine: it runs one job in the
// mood that the variable names, and exits.
const moodKey = "ENGINE_TEST_MOOD"

func TestMain(m *testing.M) {
	if mood := os.Getenv(moodKey); mood != "" {
		os.Exit(fakeEngine(mood, os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// fakeEngine plays an engine: it reads a job file, reports progress and writes a dump.
func fakeEngine(mood, jobFile string) int {
	data, err := os.ReadFile(jobFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	var job struct {
		Schema                    int
		Engine, Out, Nonce, Model string
		Mode                      string
		Cases                     []struct {
			Name  string
			Steps int
		}
	}
	if err := json.Unmarshal(data, &job); err != nil || job.Schema != 1 || !filepath.IsAbs(job.Out) {
		fmt.Fprintln(os.Stderr, "bad job:", err, string(data))
		return 9
	}
	pipe := os.NewFile(3, "progress")
	say := func(format string, args ...any) { fmt.Fprintf(pipe, format+"\n", args...) }
	fmt.Println("args:", strings.Join(os.Args[1:], " "))
	switch mood {
	case "infra", "model", "usage", "bug":
		say(`{"error":{"class":%q,"message":"it is %s","hint":"do this","where":"oracle.py:7"}}`, mood, mood)
		return 1
	case "error, then well":
		say(`{"error":{"class":"model","message":"half done"}}`)
		return 0
	case "exit":
		fmt.Fprintln(os.Stderr, "last words, token "+os.Getenv("HF_TOKEN"))
		return 3
	case "crash":
		_ = os.Mkdir(job.Out+".tmp", 0o755)
		say(`{"phase":"compile"}`)
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill() // SIGKILL, because Go would handle SIGSEGV
		time.Sleep(time.Minute)
	case "hang":
		time.Sleep(time.Minute)
	case "nothing":
		return 0
	case "chatter":
		say("not JSON")
		say(`{"warning":"careful"}`)
		say(`{"phase":"forward","seconds":1.5}`)
	case "babble":
		for i := range 20_000 {
			say(`{"phase":"%d","warning":"%d"}`, i, i)
		}
		say(`{"phase":%q}`, strings.Repeat("x", 60_000))
	case "secret":
		say(`{"warning":%q}`, "the hub refuses "+os.Getenv("HF_TOKEN"))
		say(`{"phase":%q}`, os.Getenv("HF_TOKEN"))
		say(`{"model":{"class":%q,"file":%q}}`, os.Getenv("HF_TOKEN"), os.Getenv("HF_TOKEN"))
		job.Engine = os.Getenv("HF_TOKEN") + os.Getenv("DB_PASSWORD")
		fmt.Println(string(data), os.Getenv("INDEX_URL"))
	case "environment":
		here, _ := os.Getwd()
		fmt.Println("in: " + here)
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "secret error":
		say(`{"error":{"class":"model","message":%[1]q,"hint":%[1]q,"where":%[1]q}}`, "with "+os.Getenv("HF_TOKEN"))
		return 1
	case "other run":
		job.Nonce = "stale"
	case "one step":
		job.Cases[0].Steps = 1
	case "one case":
		job.Cases = job.Cases[1:]
	}
	for _, c := range job.Cases {
		if job.Mode == "program" {
			if err := fakeProgram(filepath.Join(job.Out, c.Name), job.Nonce, c.Name, mood); err != nil {
				return 9
			}
			continue
		}
		if err := fakeDump(filepath.Join(job.Out, c.Name), job.Engine, job.Nonce, c.Name, mood, max(c.Steps, 1)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 9
		}
	}
	return 0
}

// fakeDump writes one float of value 1 as model-output for each step.
func fakeDump(dir, engine, nonce, name, mood string, steps int) error {
	if mood == "unnamed" { // and without a folder of its own
		dir, name = filepath.Dir(dir), ""
	}
	header := `{"model-output":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	file := string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + "\x00\x00\x80\x3f"
	var order [][]string
	for s := range steps {
		step := fmt.Sprint(s)
		if err := os.MkdirAll(filepath.Join(dir, step), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, step, "all.safetensors"), []byte(file), 0o644); err != nil {
			return err
		}
		order = append(order, []string{step, "model", "output", "all.safetensors", "model-output"})
	}
	info := map[string]any{"schema": 1, "engine": engine, "nonce": nonce, "case": name, "order": order,
		"token_ids": [][]int{{5, 6}}, "sequence": [][]int{{5, 6, 7, 8}}, "model_class": "fake.Model"}
	if mood == "along" && name == "a" { // the first pass in part by a prefix cache
		info["path"], info["passes"] = "repeat:2", json.RawMessage(`[[{"from":1,"to":2,"cached_tokens":1}],[{"to":2,"fresh":true}]]`)
	}
	if mood == "short" {
		info["sequence"] = [][]int{{5}}
	}
	run, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "run.json"), run, 0o644)
}

// fakeProgram writes a program that does nothing, and no tensor.
func fakeProgram(dir, nonce, name, mood string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if mood != "no program" {
		if err := os.WriteFile(filepath.Join(dir, "program.json"), []byte(`{"schema":1}`), 0o644); err != nil {
			return err
		}
	}
	run := fmt.Sprintf(`{"schema":2,"engine":"torch","nonce":%q,"case":%q,"token_ids":[[5,6]]}`, nonce, name)
	return os.WriteFile(filepath.Join(dir, "run.json"), []byte(run), 0o644)
}
