package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/maxckpt"
	"github.com/goparity/goparity/tensor/npy"
	"github.com/goparity/goparity/tensor/raw"
)

func TestMain(m *testing.M) {
	if real, err := exec.LookPath("go"); err == nil && os.Getenv(realGo) == "" {
		os.Setenv(realGo, real)
	}
	testscript.Main(m, map[string]func(){
		"parity": main,
		"go":     goForScripts,

		"fakepython":  fakePython,
		"fakeweights": fakeWeights,
		"stubserver":  stubServer,
	})
}

// realGo and linked are variables with the program go, and with the folder of what goForScripts has linked: that of
// testscript's own programs.
const realGo, linked = "REAL_GO", "LINKED"

// goForScripts is go. go test of a single package links its tests each time, which takes far longer than they do: here
// scripts share the binary of a package of one path with the same sources.
func goForScripts() {
	args := os.Args[1:]
	pkg, flags := toy.BinaryArgs(args[min(1, len(args)):])
	dir := strings.TrimPrefix(pkg, "example.com/user/")
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if os.Getenv(linked) == "" || args[0] != "test" || len(sources) == 0 || runtime.GOOS == "windows" {
		cmd := exec.Command(os.Getenv(realGo), args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			os.Exit(max(cmd.ProcessState.ExitCode(), 1))
		}
		return
	}
	hash := sha256.New()
	for _, name := range sources {
		text, wrong := os.ReadFile(name)
		err = errors.Join(err, wrong)
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
	}
	binary := filepath.Join(os.Getenv(linked), fmt.Sprintf("%x.test", hash.Sum(nil)))
	unlock, wrong := supervise.LockFile(context.Background(), binary+".lock", func(string) {})
	if err = errors.Join(err, wrong); err == nil {
		if _, there := os.Stat(binary); there != nil {
			var out []byte
			if out, err = exec.Command(os.Getenv(realGo), "test", "-c", "-o", binary, pkg).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		}
		unlock()
	}
	if i := slices.Index(args, "-o"); i > 0 && err == nil {
		os.Remove(args[i+1])
		err = os.Link(binary, args[i+1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "go:", err)
		os.Exit(2)
	}
	if slices.Contains(args, "-c") {
		return
	}
	cmd := exec.Command(binary, append([]string{"-test.paniconexit0"}, flags...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Printf("%sFAIL\texample.com/user/%s\nFAIL\n", out, dir)
		os.Exit(1)
	}
	if slices.Contains(args, "-v") {
		os.Stdout.Write(out)
	}
	fmt.Printf("ok  \texample.com/user/%s\n", dir)
}

// mk writes a small float32 tensor: mk FILE SHAPE VALUE…, or mk FILE SHAPE random SEED. The last value repeats
// it.
func mk(ts *testscript.TestScript, _ bool, args []string) {
	path, args, shape := ts.MkAbs(args[0]), args[2:], args[1]
	spec, err := raw.Parse("f32:" + shape)
	ts.Check(err)
	n, err := tensor.NumElems(spec.Shape)
	ts.Check(err)
	values := make([]float32, n)
	random := len(args) == 2 && args[0] == "random"
	var r *rand.Rand
	if random {
		seed, err := strconv.ParseUint(args[1], 10, 64)
		ts.Check(err)
		r = rand.New(rand.NewPCG(seed, 0))
	}
	for i := range values {
		if random {
			values[i] = float32(r.NormFloat64())
			continue
		}
		_, err := fmt.Sscan(args[min(i, len(args)-1)], &values[i])
		ts.Check(err)
	}
	t, err := tensor.Of(values, spec.Shape...)
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	var b bytes.Buffer
	switch filepath.Ext(path) {
	case ".max":
		err = maxckpt.Write(&b, strings.TrimSuffix(filepath.Base(path), ".max"), t)
	case ".npy":
		err = npy.Write(&b, t)
	default:
		_, err = t.WriteTo(&b)
	}
	ts.Check(err)
	ts.Check(os.WriteFile(path, b.Bytes(), 0o644))
}

// exits runs a program and wants its exit code: exits CODE PROGRAM ARGS…
func exits(ts *testscript.TestScript, _ bool, args []string) {
	var exit *exec.ExitError
	code := 0
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// next runs the command that parity explain prints for a report, and wants its exit code: next CODE
// REPORT
func next(ts *testscript.TestScript, _ bool, args []string) {
	_ = ts.Exec("parity", "explain", "--json", args[1]) // its exit code is that of the verdict
	var b struct{ Next string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &b))
	if runtime.GOOS != "windows" { // it is for a POSIX shell
		exits(ts, false, []string{args[0], "sh", "-c", b.Next})
	}
}

// cpdir copies a folder: cpdir FROM TO
func cpdir(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// userModule makes the folder a user's module, with a tiny model in it.
func userModule(ts *testscript.TestScript, _ bool, _ []string) {
	root := ts.Getenv("PARITY_ROOT")
	mod, sum, err := toy.UserModule(root)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("go.mod"), mod, 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("go.sum"), sum, 0o644))
	ts.Check(os.RemoveAll(ts.MkAbs("model")))
	ts.Check(tinyModel(ts.MkAbs("model")))
	ts.Setenv("GOFLAGS", "-mod=mod -vet=off -ldflags=-s")
	ts.Setenv("GOPROXY", "off")
}

// params are the scripts' surroundings: nothing of this machine but Go's caches and, where real
// engines run, MAX's.
func params(t *testing.T) testscript.Params {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE").Output()
	require.NoError(t, err)
	env := map[string]string{}
	require.NoError(t, json.Unmarshal(out, &env))
	env["PARITY_ROOT"], env[realGo], env[linked] = root, os.Getenv(realGo), filepath.SplitList(os.Getenv("PATH"))[0]
	env["GORACE"] = "atexit_sleep_ms=0" // the race detector sleeps for a second where a program ends
	env["FIXTURES"], env["EXAMPLES"] = filepath.Join(root, "fixtures"), filepath.Join(root, "examples")
	env["MODULAR_MAX_CACHE_DIR"], err = engine.CompileCache(os.Getenv)
	require.NoError(t, err)
	return testscript.Params{
		UpdateScripts: *toy.Update,
		Setup: func(e *testscript.Env) error {
			for k, v := range env {
				e.Setenv(k, v)
			}
			e.Setenv("PARITY_LOCK_DIR", filepath.Join(e.WorkDir, "lock"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "mk": mk, "next": next, "cpdir": cpdir, "module": userModule,
			"mkserved": mkServed, "replace": toy.Replace, "alive": alive, "await": await, "shows": shows},
	}
}

func TestScripts(t *testing.T) {
	p := params(t)
	p.Dir = "testdata/script"
	testscript.Run(t, p)
}

// The real dumps of the fixtures, unpacked as an engine writes them, give the verdict of the packed
// ones.
func TestUnpackedFixture(t *testing.T) {
	fixture := filepath.Join("..", "..", "fixtures", "tinyllama")
	runs, err := store.OpenCases(filepath.Join(fixture, "runs", "max-cpu"), dump.Options{})
	require.NoError(t, err)
	defer dump.CloseAll(runs)
	dir := t.TempDir()
	for _, e := range runs[0].Entries {
		var b bytes.Buffer
		require.NoError(t, maxckpt.Write(&b, e.Label(), e.Tensor))
		path := filepath.Join(dir, e.Step, e.Label()+".max")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	var out, errs bytes.Buffer
	code := run(context.Background(),
		[]string{"compare", "--golden", filepath.Join(fixture, "runs", "max-cpu"), "--actual", dir}, &out,
		&errs)
	require.Equal(t, exitPass, code, "%s%s", &out, &errs)
	assert.Contains(t, out.String(), "worst row rel. L2 0")
}

// The tiny model has the weights that its config asks for, which an engine can run without a NaN, the same each time.
func TestTinyModel(t *testing.T) {
	dir, again := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, again} {
		require.NoError(t, tinyModel(d))
	}
	one, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(again, "model.safetensors"))
	require.NoError(t, err)
	assert.Equal(t, one, two)
	c, err := checkpoint.ReadConfig(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	n := func(key string) int { i, _ := c.Int(key); return i }
	hidden, inner, vocab, kv := n("hidden_size"), n("intermediate_size"), n("vocab_size"), n("num_key_value_heads")*n("head_dim")
	want := map[string][]int{"model.embed_tokens": {vocab, hidden}, "model.norm": {hidden}, "lm_head": {vocab, hidden}}
	for i := range n("num_hidden_layers") {
		for name, shape := range map[string][]int{"input_layernorm": {hidden}, "post_attention_layernorm": {hidden},
			"self_attn.q_proj": {hidden, hidden}, "self_attn.k_proj": {kv, hidden}, "self_attn.v_proj": {kv, hidden}, "self_attn.o_proj": {hidden, hidden},
			"mlp.gate_proj": {inner, hidden}, "mlp.up_proj": {inner, hidden}, "mlp.down_proj": {hidden, inner}} {
			want[fmt.Sprintf("model.layers.%d.%s", i, name)] = shape
		}
	}
	w, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer w.Close()
	assert.Len(t, w.Tensors, len(want))
	for name, shape := range want {
		x := w.Tensors[name+".weight"]
		require.NotNil(t, x, name)
		assert.Equal(t, shape, x.Shape(), name)
		values := make([]float64, x.Len())
		x.Float64s(values, 0)
		if name == "lm_head" {
			for _, v := range values[259*hidden:] {
				require.Zero(t, v, "a row without a token is never chosen")
			}
			values = values[:259*hidden]
		}
		mean, square := 0.0, 0.0
		for _, v := range values {
			mean += v / float64(len(values))
		}
		for _, v := range values {
			square += (v - mean) * (v - mean) / float64(len(values))
		}
		about, spread := 0.0, 0.08
		if len(shape) == 1 {
			about, spread = 1, 0.1
		}
		assert.InDelta(t, about, mean, 0.05, name)
		assert.InDelta(t, spread, math.Sqrt(square), 0.03, name)
	}
}

func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		version, least string
		want           bool
	}{{"3.10", "3.10", true}, {"3.9", "3.10", false}, {"3.11.2", "3.10", true}, {"4.0", "3.10", true}, {"2.35", "2.34", true}, {"2", "2.34", false}, {"", "2.34", false}} {
		assert.Equal(t, tt.want, atLeast(tt.version, tt.least), "%s, %s", tt.version, tt.least)
	}
}

// The name of what was judged is part of a file's name.
func TestPlain(t *testing.T) {
	for name, want := range map[string]string{"a-b_c.D9": "a-b_c.D9", "../x y": "_x_y", "größe": "gr__e", "z~Z[": "z_Z_", "@`{:/": "_____",
		strings.Repeat("a", 90): strings.Repeat("a", 80)} {
		assert.Equal(t, want, plain(name), name)
	}
}

func TestTokens(t *testing.T) {
	assert.Equal(t, "1 2 3", tokens([]int{1, 2, 3}))
	many := slices.Repeat([]int{7}, 66)
	assert.Equal(t, strings.TrimSpace(strings.Repeat("7 ", 64)), tokens(many[:64]))
	assert.Equal(t, strings.Repeat("7 ", 64)+"… and 2 more", tokens(many))
}

// A build of the Makefile says its commit, wherever git reads the checkout.
func TestVersionOfTheMakefile(t *testing.T) {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("git does not read this checkout: %v", err)
	}
	program := filepath.Join(t.TempDir(), "parity.exe")
	out, err := exec.Command("make", "-C", filepath.Join("..", ".."), "build", "PARITY="+program).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := exec.Command(program, "--version").Output()
	require.NoError(t, err)
	assert.Regexp(t, `^parity (v[0-9.]+|development version), commit `+strings.TrimSpace(string(head)), string(text))
	assert.NotContains(t, string(text), "not stamped")
}
