package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/supervise"
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

func job(t *testing.T) engine.Job {
	t.Helper()
	return engine.Job{Engine: "fake", Out: filepath.Join(t.TempDir(), "run"),
		Cases: []engine.Case{{Name: "a", Steps: 2}, {Name: "b"}}}
}

// fake returns options with the test binary as the program, in a mood.
func fake(t *testing.T, mood string) engine.Options {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake engine reads file descriptor 3")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	return engine.Options{Program: []string{self},
		Env: append(os.Environ(), moodKey+"="+mood, "HF_TOKEN=hf_very_secret")}
}

func TestRun(t *testing.T) {
	j, opt := job(t), fake(t, "chatter")
	var events []engine.Event
	opt.Progress = func(e engine.Event) { events = append(events, e) }
	r, err := engine.Run(t.Context(), j, opt)
	require.NoError(t, err)
	defer r.Close()
	require.Len(t, r.Runs, 2)
	assert.Equal(t, []string{"0", "1"}, r.Runs[0].Steps())
	assert.Equal(t, "b", r.Runs[1].Info.Case)
	assert.Equal(t, []string{"careful"}, r.Warnings)
	require.Len(t, events, 2, "a line that is not JSON is not an event")
	require.NotNil(t, events[1].Seconds)
	assert.Equal(t, 1.5, *events[1].Seconds)
	assert.Equal(t, "fake.Model", r.About[0].ModelClass)
	generated, err := r.Generated(0)
	require.NoError(t, err)
	assert.Equal(t, [][]int{{7, 8}}, generated)
	left, err := filepath.Glob(j.Out + ".*")
	require.NoError(t, err)
	assert.Empty(t, left, "no job file, no log, no temporary folder")
	assert.Empty(t, j.Nonce, "the caller's job is not changed")
}

// A run that failed says why, and who is to blame.
func TestRunFails(t *testing.T) {
	for _, tt := range []struct{ mood, class, want, reason string }{
		{"nothing", "fixture", "left no dump", "an engine that does nothing does not pass"},
		{"other run", "fixture", "dump of another run", "the nonce is not the job's"},
		{"one step", "fixture", "has the steps 0, not the 2", "a step is missing"},
		{"one case", "fixture", `wrote no case "a"`, "a case is missing"},
		{"unnamed", "fixture", `wrote no case "a"`, "of several each has its name"},
		{"error, then well", "model", "half done", "an error counts, whatever the exit code"},
		{"infra", "infra", "it is infra (oracle.py:7): do this (log: ", "the machine"},
		{"model", "model", "it is model (oracle.py:7): do this (log: ", "the model"},
		{"usage", "usage", "it is usage (oracle.py:7): do this (log: ", "the job"},
		{"bug", "bug", "it is bug (oracle.py:7): do this (log: ", "a runner"},
		{"exit", "crash", "exited with code 3; last line of its log: last words", "it did not say why"},
	} {
		t.Run(tt.mood, func(t *testing.T) {
			r, err := engine.Run(t.Context(), job(t), fake(t, tt.mood))
			require.ErrorContains(t, err, tt.want, tt.reason)
			assert.Equal(t, tt.class, engine.Class(err), tt.reason)
			assert.NotContains(t, err.Error(), "hf_very_secret", "secrets are kept out of messages")
			assert.Nil(t, r)
		})
	}
}

// An engine that takes another path than it is asked for is refused.
func TestRunAlong(t *testing.T) {
	type passes = [][]dump.PassItem
	right := passes{{item(0, 0, 2)}, {item(0, 0, 2)}}
	for _, tt := range []struct {
		path   string
		last   int // token
		passes passes
		want   string
		reason string
	}{
		{"repeat:2", 6, right, "", "what the cache held need not be fed"},
		{"repeat:2", 6, passes{{item(0, 1, 2)}, {item(0, 0, 2)}}, "", "nor be asked for"},
		{"chunked:1", 6, right, "run.json has the path repeat:2, the job asks for chunked:1", "another path"},
		{"repeat:2", 7, right, "run.json has token_ids [[5 6]], the job asks for [[5 7]]", "another text"},
		{"repeat:2", 6, right[:1], "run.json has so many passes: 2, the job asks for 1", "more passes"},
		{"repeat:2", 6, passes{{item(0, 0, 1)}, {item(0, 0, 2)}}, "run.json has in forward pass 0 ", "another end"},
		{"repeat:2", 6, passes{{item(0, 0, 2)}, {item(0, 1, 2)}}, "run.json has in forward pass 1 ", "another beginning"},
		{"repeat:2", 6, passes{{item(0, 0, 2)}, {item(1, 0, 2)}}, "run.json has in forward pass 1 ", "another sequence"},
		{"repeat:2", 6, passes{{item(0, 0, 2)}, {{To: 2, Hidden: []int{1}}}}, "run.json has in forward pass 1 ", "hidden tokens"},
		{"", 6, nil, "case a was run along repeat:2, and the job asks for one pass", "no path is asked for"},
	} {
		j := job(t)
		j.Cases[0].Path, j.Cases[0].TokenIDs, j.Cases[0].Passes = tt.path, [][]int{{5, tt.last}}, tt.passes
		if tt.passes == nil {
			j.Cases[1].Passes = right
		}
		r, err := engine.Run(t.Context(), j, fake(t, "along"))
		if tt.want == "" {
			require.NoError(t, err, tt.reason)
			require.NoError(t, r.Close())
			continue
		}
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
	j := job(t)
	j.Cases = j.Cases[:1]
	r, err := engine.Run(t.Context(), j, fake(t, "unnamed"))
	require.NoError(t, err)
	assert.Equal(t, "a", r.Runs[0].Info.Case, "the only one")
	require.NoError(t, r.Close())
	r, err = engine.Run(t.Context(), job(t), fake(t, "short"))
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Generated(0)
	assert.ErrorContains(t, err, "sequence 0 is shorter than its prompt")
}

// A job for programs alone has no tensors.
func TestProgramsOnly(t *testing.T) {
	j := job(t)
	j.Mode = engine.ProgramMode
	r, err := engine.Run(t.Context(), j, fake(t, "good"))
	require.NoError(t, err)
	defer r.Close()
	assert.Equal(t, filepath.Join(j.Out, "b", "program.json"), r.Runs[1].Program)
	assert.Equal(t, [][]int{{5, 6}}, r.Runs[1].Info.Tokens())
	assert.Empty(t, r.Runs[1].Entries)
	for mood, want := range map[string]string{"nothing": "left no dump", "no program": "left no dump", "other run": "dump of another run"} {
		j.Out = filepath.Join(t.TempDir(), "run")
		_, err := engine.Run(t.Context(), j, fake(t, mood))
		require.ErrorContains(t, err, want, mood)
	}
}

func TestRunAfterACrash(t *testing.T) {
	j := job(t)
	_, err := engine.Run(t.Context(), j, fake(t, "crash"))
	require.ErrorContains(t, err, "SIGKILL")
	assert.NoDirExists(t, j.Out, "no dump")
	assert.NoDirExists(t, j.Out+".tmp", "nor half of one")
	r, err := engine.Run(t.Context(), j, fake(t, "good"))
	require.NoError(t, err, "the same job works again")
	require.NoError(t, r.Close())
}

func TestRunRefuses(t *testing.T) {
	good := fake(t, "good")
	for _, tt := range []struct {
		change func(*engine.Job, *engine.Options)
		want   string
		reason string
	}{
		{func(j *engine.Job, _ *engine.Options) { require.NoError(t, os.Mkdir(j.Out, 0o755)) }, "exists already",
			"nothing is overwritten"},
		{func(j *engine.Job, _ *engine.Options) { j.Out = "" }, "no output folder", "nowhere to write"},
		{func(j *engine.Job, _ *engine.Options) { j.Cases = nil }, "no cases", "nothing to do"},
		{func(j *engine.Job, _ *engine.Options) { j.Cases[1].Name = "../b" }, "names of folders",
			"a case that leaves the folder"},
		{func(j *engine.Job, _ *engine.Options) { j.Cases[1].Name = "a" }, "names of folders",
			"two cases with one name"},
		{func(j *engine.Job, o *engine.Options) { o.Program = nil }, `unknown engine "fake"`,
			"an engine of another name needs a program"},
		{func(j *engine.Job, o *engine.Options) { o.Program = []string{"/no/such/program"} }, "could not be started",
			"no such program"},
	} {
		j, opt := job(t), good
		tt.change(&j, &opt)
		_, err := engine.Run(t.Context(), j, opt)
		assert.ErrorContains(t, err, tt.want, tt.reason)
	}
}

// The engines of this package are started as: interpreter -X faulthandler RUNNER JOB.
func TestRunPython(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	j, opt := job(t), fake(t, "good")
	j.Engine, opt.Python, opt.Program = engine.Torch, opt.Program[0], nil
	opt.LogFile = filepath.Join(t.TempDir(), "log")
	opt.Env = append(os.Environ(), opt.Env[len(opt.Env)-2:]...) // with this test's cache folder
	r, err := engine.Run(t.Context(), j, opt)
	require.NoError(t, err)
	defer r.Close()
	log, err := os.ReadFile(opt.LogFile)
	require.NoError(t, err)
	args := strings.Fields(strings.TrimPrefix(strings.TrimSpace(string(log)), "args: "))
	require.Len(t, args, 4)
	assert.Equal(t, []string{"-X", "faulthandler"}, args[:2])
	assert.FileExists(t, filepath.Join(args[2], "__main__.py"))
	assert.FileExists(t, filepath.Join(args[2], "goparity", "__init__.py"))
}

func TestRunShowsNoSecrets(t *testing.T) {
	const password = `pass"word\é`
	j, opt := job(t), fake(t, "secret")
	opt.Env = append(opt.Env, "DB_PASSWORD="+password, "INDEX_URL=https://me:in-the-url@example.com/", "SHORT_TOKEN=1")
	opt.LogFile = filepath.Join(t.TempDir(), "log")
	var events []engine.Event
	opt.Progress = func(e engine.Event) { events = append(events, e) }
	r, err := engine.Run(t.Context(), j, opt)
	require.NoError(t, err)
	defer r.Close()
	said, err := json.Marshal([]any{events, r.Warnings, r.Runs[0].Info, r.About})
	require.NoError(t, err)
	log, err := os.ReadFile(opt.LogFile)
	require.NoError(t, err)
	written, err := os.ReadFile(filepath.Join(r.Dir, "a", dump.RunFile))
	require.NoError(t, err)
	for where, text := range map[string][]byte{"what is told": said, "run.json": written,
		"the log, with the job file in it": log} {
		for _, secret := range []string{"hf_very_secret", password, `pass\"word\\é`, "in-the-url"} {
			assert.NotContains(t, string(text), secret, where)
		}
	}
	assert.Equal(t, []string{"the hub refuses ***"}, r.Warnings)
	assert.Contains(t, string(log), `"schema": 1`, "the rest of the log stays")

	_, err = engine.Run(t.Context(), job(t), fake(t, "secret error"))
	var model *engine.Error
	require.ErrorAs(t, err, &model)
	assert.Equal(t, []string{"with ***", "with ***", "with ***"}, []string{model.Msg, model.Hint, model.Where})
}

func TestRunIsQuiet(t *testing.T) {
	for _, tt := range []struct {
		env, want, reason string
	}{
		{"A=1", "HF_HUB_OFFLINE=1", "the hub is off"},
		{"HF_HUB_OFFLINE=0", "HF_HUB_OFFLINE=0", "unless the user wants it"},
		{"A=1", "HF_HUB_DISABLE_TELEMETRY=1", "telemetry is off in any case"},
		{"A=1", "PYTHONHASHSEED=0", "sets have one order in all runs"},
	} {
		j, opt := job(t), fake(t, "environment")
		opt.Env = append(opt.Env, tt.env)
		opt.Dir, opt.LogFile = t.TempDir(), filepath.Join(t.TempDir(), "log")
		r, err := engine.Run(t.Context(), j, opt)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		log, err := os.ReadFile(opt.LogFile)
		require.NoError(t, err)
		assert.Contains(t, strings.Split(string(log), "\n"), tt.want, tt.reason)
		assert.Contains(t, string(log), "in: "+opt.Dir+"\n", "a program may run in another folder, such as that of its fixture")
	}
}

// An engine may say any number of things: what is kept is bounded.
func TestRunHearsNoMoreThanAnyoneReads(t *testing.T) {
	j, opt := job(t), fake(t, "babble")
	events := 0
	opt.Progress = func(e engine.Event) {
		events++
		assert.LessOrEqual(t, len(e.Phase), 17<<10)
	}
	r, err := engine.Run(t.Context(), j, opt)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	assert.Equal(t, 10_000, events)
	require.Len(t, r.Warnings, 101)
	assert.Contains(t, r.Warnings[100], "there are more")
}

// A program does not wait for the CPU that an engine of another test uses; torch and MAX do, unless
// the lock is off. Whoever waits says for whom, how long that one has had it, and how not to.
func TestWhoWaitsForTheCPU(t *testing.T) {
	for _, c := range []struct {
		engine, lock string
		waits        bool
		reason       string
	}{
		{engine.Command, "", false, "any program"},
		{engine.Torch, "", true, "torch takes all cores"},
		{engine.MAX, "on", true, "so does MAX"},
		{engine.Torch, "off", false, "the user knows better"},
	} {
		t.Run(c.engine+","+c.lock, func(t *testing.T) {
			t.Setenv("PARITY_LOCK_DIR", t.TempDir())
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("PARITY_LOCK", c.lock)
			unlock, err := supervise.Lock(t.Context(), "cpu:0", nil)
			require.NoError(t, err)
			defer unlock()
			j, opt := job(t), fake(t, "good")
			j.Engine, j.Device = c.engine, engine.CPU
			if c.engine != engine.Command {
				opt.Python, opt.Program = opt.Program[0], nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			said := ""
			r, err := engine.RunOnDevice(ctx, j, opt, func(line string) {
				said += line + "\n"
				if strings.Contains(line, "waits for") {
					unlock()
				}
			})
			require.NoError(t, err, c.reason)
			require.NoError(t, r.Close())
			if !c.waits {
				assert.Empty(t, said, c.reason)
				return
			}
			assert.Regexp(t, `waits for the cpu, which pid \d+, .*, since \S+ uses; 1m0s are left until the deadline of `+
				`this test \(PARITY_LOCK=off does not wait\)`, said, c.reason)
			assert.Contains(t, said, "were spent waiting for the cpu", c.reason)
		})
	}
}

// A deadline that passes while an engine waits says so, and so does one that passes later.
func TestWaitingIsNoSilentLossOfTime(t *testing.T) {
	t.Setenv("PARITY_LOCK_DIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	unlock, err := supervise.Lock(t.Context(), "cpu:0", nil)
	require.NoError(t, err)
	defer unlock()
	j, opt := job(t), fake(t, "good")
	j.Engine, opt.Python, opt.Program = engine.Torch, opt.Program[0], nil
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = engine.RunOnDevice(ctx, j, opt, func(string) {})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "after waiting for ")
	assert.ErrorContains(t, err, os.Args[0])
	assert.ErrorContains(t, err, "PARITY_LOCK=off does not wait")

	opt = fake(t, "hang")
	opt.Python, opt.Program = opt.Program[0], nil
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = engine.RunOnDevice(ctx, j, opt, func(string) { unlock() })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "before that, ")
	assert.ErrorContains(t, err, "were spent waiting for the cpu, held by pid ")

	t.Setenv("PARITY_LOCK", "of")
	_, err = engine.RunOnDevice(t.Context(), j, opt, func(string) {})
	assert.ErrorContains(t, err, `PARITY_LOCK is "of": want on or off`)
}
