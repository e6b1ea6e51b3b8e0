package parity_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
)

// crew returns the living processes that inherited this variable.
func crew(t *testing.T, kv string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, name := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		require.NoError(t, err)
		env, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(env, []byte(kv+"\x00")) {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until no one of the crew is alive, a minute at most: machines that test much are slow.
func gone(t *testing.T, kv string) {
	t.Helper()
	start := time.Now()
	for left := crew(t, kv); len(left) > 0; left = crew(t, kv) {
		if time.Since(start) > time.Minute {
			for _, pid := range left {
				cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Errorf("alive after a minute: %d %q", pid, cmdline)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("all gone after %s", time.Since(start).Round(time.Millisecond))
}

// Whenever an update is killed, the goldens are the old or the new ones, and the engine is gone.
func TestAnUpdateThatIsKilledLeavesTheGoldensWhole(t *testing.T) {
	t.Parallel() // it waits most of the time
	base, err := txtar.ParseFile(filepath.Join("testdata", "base.txtar"))
	require.NoError(t, err)
	infra, err := txtar.ParseFile(filepath.Join("testdata", "script", "infra.txtar"))
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range append(base.Files, infra.Files...) {
		files[f.Name] = string(f.Data)
	}
	dir := writeModule(t, files)
	m, err := parseToy(files["model.txt"])
	require.NoError(t, err)
	edit, err := parseEdit("embed*1.01")
	require.NoError(t, err)
	run := toyRun{engine: "torch", format: "max", caseName: "short", encoding: "float32", mode: "standard", steps: 1}
	require.NoError(t, m.write(filepath.Join(dir, "ref"), run))
	run.edits = []toyEdit{edit}
	require.NoError(t, m.write(filepath.Join(dir, "ref2"), run))
	fixture := filepath.Join(dir, "fixtures", "toy")
	require.NoError(t, makeGoldens(fixture, filepath.Join(dir, "ref")))
	build(t, dir)

	mark := "KILL_TEST=" + dir
	update := func(dump string) *exec.Cmd {
		cmd := exec.Command("./user.test", "-test.run=^$", "-update")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), mark, "CI=", "MOOD=well", "CAND="+filepath.Join(dir, dump),
			"PARITY_PYTHON="+filepath.Join(dir, "engine.sh"),
			"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "TMPDIR="+t.TempDir(), "PARITY_LOCK_DIR="+dir)
		return cmd
	}
	norms := map[string]float64{} // of the first golden, by dump
	look := func() float64 {
		store, err := golden.Open(filepath.Join(fixture, "golden"))
		require.NoError(t, err)
		defer store.Close()
		problems, err := store.Verify(context.Background())
		require.NoError(t, err)
		require.Empty(t, problems)
		entries, err := store.Tensors("float32", "short", "0")
		require.NoError(t, err)
		require.Len(t, entries, 18)
		sum := 0.0
		for i := range entries[1].Tensor.Len() {
			sum += entries[1].Tensor.At(i)
		}
		return sum
	}
	took := time.Duration(0)
	for _, dump := range []string{"ref2", "ref"} {
		start := time.Now()
		out, err := update(dump).CombinedOutput()
		require.NoError(t, err, string(out))
		took = max(took, time.Since(start))
		norms[dump] = look()
	}
	require.NotEqual(t, norms["ref"], norms["ref2"])

	const moments = 24
	now, killed := norms["ref"], 0
	for i := range moments {
		next := []string{"ref2", "ref"}[i%2]
		cmd := update(next)
		require.NoError(t, cmd.Start())
		time.Sleep(took * time.Duration(i) / moments)
		require.NoError(t, cmd.Process.Kill())
		if cmd.Wait() != nil {
			killed++
		}
		gone(t, mark)
		got := look()
		require.Contains(t, []float64{now, norms[next]}, got, "moment %d of %d", i, moments)
		now = got
	}
	assert.Positive(t, killed, "some were killed before they had ended")
	out, err := update("ref2").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, norms["ref2"], look())
	left, err := os.ReadDir(fixture)
	require.NoError(t, err)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"fixture.yaml", "golden", "oracle.py"}, names, "nothing of the killed ones is left")
}

// However the test dies while MAX compiles, nothing of ours is alive 3 s later.
func TestLiveKill(t *testing.T) {
	interpreter := livePython(t)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := writeModule(t, map[string]string{"user_test.go": mortalTest})
	require.NoError(t,
		os.CopyFS(filepath.Join(dir, "fixtures", "tinyllama"), os.DirFS(filepath.Join(root, "fixtures", "tinyllama"))))
	build(t, dir)

	binary := func(t *testing.T, mark string) int {
		for _, pid := range crew(t, mark) {
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && strings.HasSuffix(exe, ".test") && bytes.Contains(line, []byte("-test.")) {
				return pid
			}
		}
		t.Fatal("the test binary is not there")
		return 0
	}
	for _, tt := range []struct {
		name string
		kill func(t *testing.T, cmd *exec.Cmd, mark, trigger string) error
	}{
		{"SIGKILL", func(t *testing.T, _ *exec.Cmd, mark, _ string) error {
			return syscall.Kill(binary(t, mark), syscall.SIGKILL)
		}},
		{"Ctrl-C", func(_ *testing.T, cmd *exec.Cmd, _, _ string) error {
			return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		}},
		{"panic", func(_ *testing.T, _ *exec.Cmd, _, trigger string) error {
			return os.WriteFile(trigger, []byte("panic"), 0o600)
		}},
		{"exit", func(_ *testing.T, _ *exec.Cmd, _, trigger string) error {
			return os.WriteFile(trigger, []byte("exit"), 0o600)
		}},
		{"timeout", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmp := t.TempDir()
			mark, trigger := "KILL_TEST="+tmp, filepath.Join(tmp, "trigger")
			args := []string{"test", "-count=1", "-v", ".", "-parity.run=cpu"}
			if tt.kill == nil {
				args = append(args, "-timeout=75s") // a cold compilation alone takes longer
			}
			cmd := exec.Command("go", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), mark, "TRIGGER="+trigger, "PARITY_PYTHON="+interpreter,
				"MODULAR_MAX_CACHE_DIR="+filepath.Join(tmp, "max"),
				"PARITY_LOCK_DIR="+tmp, "TMPDIR="+tmp, "GOFLAGS=-mod=mod -vet=off")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			var out output
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if tt.kill != nil {
				require.Eventually(t, func() bool { return strings.Contains(out.String(), "max: load ") },
					5*time.Minute, 50*time.Millisecond, "the compilation begins")
				time.Sleep(2 * time.Second)
				require.Greater(t, len(crew(t, mark)), 3, "go, test, watchdog, engine")
				require.NoError(t, tt.kill(t, cmd, mark, trigger))
			} else {
				require.Eventually(t, func() bool { return strings.Contains(out.String(), "--- FAIL") },
					5*time.Minute, 50*time.Millisecond, "the deadline passes")
				assert.Contains(t, out.String(), "go test -timeout 1m15s leaves ")
				assert.NotContains(t, out.String(), "panic: test timed out")
			}
			gone(t, mark)
			assert.Error(t, <-ended)
			if tt.name == "Ctrl-C" || tt.kill == nil {
				left, err := filepath.Glob(filepath.Join(tmp, "goparity-*"))
				require.NoError(t, err)
				assert.Empty(t, left, "a test that is stopped in order leaves no dump")
			}
			t.Log(out.String())
		})
	}
}

// output may be read while a program writes to it.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// mortalTest is a test process that dies when a file says so.
const mortalTest = `package user

import (
	"os"
	"testing"
	"time"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/testmain"
)

func TestMain(m *testing.M) {
	go func() {
		for {
			switch how, _ := os.ReadFile(os.Getenv("TRIGGER")); string(how) {
			case "panic":
				panic("on purpose")
			case "exit":
				os.Exit(3)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	testmain.Main(m, testmain.Fixture("fixtures/tinyllama"))
}

func TestTinyLlama(t *testing.T) { parity.All(t).Check() }
`
