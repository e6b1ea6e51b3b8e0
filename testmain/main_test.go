package testmain_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
	"github.com/goparity/goparity/testmain"
)

// tests stands for a package's tests: what they do, and their exit code.
type tests func() int

func (f tests) Run() int { return f() }

// setFlag sets a flag of go test for this test only.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	require.NotNil(t, f, name)
	was := f.Value.String()
	require.NoError(t, f.Value.Set(value))
	t.Cleanup(func() { require.NoError(t, f.Value.Set(was)) })
}

// clean makes a process in which no one asked for anything.
func clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{"PARITY_REPLAY", "PARITY_RECORD", "PARITY_UPDATE", "PARITY_GOLDEN_DUMP",
		"PARITY_OUT", "PARITY_RUN", "CI"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.testlogfile"} {
		setFlag(t, name, "")
	}
	setFlag(t, "test.short", "false")
	setFlag(t, "test.count", "1")
}

// fixture makes a fixture folder without goldens and two dumps of one layer, of the reference and
// of the candidate.
func fixture(t *testing.T) (dir, ref, cand string) {
	t.Helper()
	root := t.TempDir()
	dir, ref, cand = filepath.Join(root, "toy"), filepath.Join(root, "ref.safetensors"), filepath.Join(root, "cand.safetensors")
	x, err := tensor.Of([]float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	var dump bytes.Buffer
	require.NoError(t, safetensors.Write(&dump, []tensor.Named{{Name: "norm-output", Tensor: x}}, nil))
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fixture.yaml"), []byte("cases: {short: {prompt: Hello}}\n"), 0o644))
	require.NoError(t, os.WriteFile(ref, dump.Bytes(), 0o644))
	require.NoError(t, os.WriteFile(cand, dump.Bytes(), 0o644))
	return dir, ref, cand
}

// compareAll is what a user's test does.
func compareAll() {
	c, err := session.Current().Default().Comparison()
	if err != nil {
		panic(err)
	}
	for _, p := range c.Ports {
		p.Decide(nil, "", false)
	}
}

func TestExitCodes(t *testing.T) {
	dir, ref, cand := fixture(t)
	out := filepath.Join(t.TempDir(), "out")
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o644))
	pass := func() int { compareAll(); return 0 }

	for _, c := range []struct {
		run    tests
		flags  map[string]string
		env    env
		code   int
		stdout string
		stderr string
		reason string
	}{
		{pass, nil, env{"PARITY_UPDATE": "all", "PARITY_GOLDEN_DUMP": ref, "PARITY_REPLAY": cand}, 0,
			"parity: update toy: float32: 0 unchanged, 0 moved, 1 new, 0 gone", "",
			"goldens are made first, then judged"},
		{pass, nil, env{"PARITY_REPLAY": cand, "PARITY_OUT": out}, 0, "parity: toy: PASS: compared 1 of 1 output", "", "all is well"},
		{func() int { compareAll(); return 1 }, nil, env{"PARITY_REPLAY": cand}, 1, "parity: toy: PASS", "",
			"another test failed"},
		{func() int { return 2 }, nil, nil, 2, "", "", "the tests' own code"},
		{func() int { return 0 }, nil, nil, 1, "",
			"testmain: no test compared anything of toy: call parity.All(t).Check() in a test\n", "nothing was compared"},
		{func() int { return 0 }, map[string]string{"test.run": "ExitCodes/x"}, nil, 0, "", "",
			"the tests that compare were not asked for"},
		{func() int { return 0 }, map[string]string{"test.run": "Other"}, nil, 1, "", "testmain: -run Other selects no test of this package",
			"no test was asked for"},
		{func() int { return 0 }, map[string]string{"test.skip": "Toy"}, nil, 0, "", "", "they were skipped"},
		{func() int { return 0 }, map[string]string{"test.short": "true"}, nil, 0, "", "", "they may skip themselves"},
		{func() int { return 0 }, map[string]string{"test.count": "0"}, nil, 0, "", "", "no test was asked for"},
		{pass, nil, env{"PARITY_REPLAY": cand, "PARITY_OUT": blocked}, 1, "", "file", "the report cannot be written"},
		{func() int { compareAll(); return 2 }, nil, env{"PARITY_REPLAY": cand, "PARITY_OUT": blocked}, 2, "", "file",
			"the worse code counts"},
		{nil, nil, env{"PARITY_UPDATE": "all"}, 1, "",
			"names no model to run as the reference: write model: {path: …}, or point PARITY_GOLDEN_DUMP to a dump\n",
			"no test runs after an update that failed"},
		{nil, nil, env{"PARITY_UPDATE": "never"}, 1, "", `testmain: PARITY_UPDATE is "never": want none, new or all`,
			"no test runs after a wrong setting"},
		{nil, nil, env{"CI": "true", "PARITY_UPDATE": "all", "PARITY_GOLDEN_DUMP": ref}, 1, "",
			"PARITY_UPDATE_IN_CI=1", "not in CI"},
		{nil, map[string]string{"test.run": "TestToy/norm"}, env{"PARITY_UPDATE": "all", "PARITY_GOLDEN_DUMP": ref},
			1, "", "-run TestToy/norm narrows to layers", "not a part of a pass"},
		{func() int { return 0 }, map[string]string{"test.list": "."},
			env{"PARITY_UPDATE": "all", "PARITY_GOLDEN_DUMP": "nowhere"}, 0, "", "", "listing starts nothing"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			clean(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			for k, v := range c.flags {
				setFlag(t, k, v)
			}
			m := c.run
			if m == nil {
				m = func() int { t.Error("the tests ran"); return 0 }
			}
			var stdout, stderr strings.Builder
			code := testmain.Run(m, &stdout, &stderr, testmain.Fixture(dir))
			assert.Equal(t, c.code, code)
			assert.Contains(t, stdout.String(), c.stdout)
			assert.Contains(t, stderr.String(), c.stderr)
			if c.stderr == "" {
				assert.Empty(t, stderr.String())
			}
			assert.Nil(t, session.Current(), "the session has ended")
		})
	}
	assert.FileExists(t, filepath.Join(out, "testmain", "report.txt"), "below the folder, that of the package")
	data, err := os.ReadFile(filepath.Join(out, "testmain", "report.json"))
	require.NoError(t, err)
	assert.Contains(t, string(data), `"package": "github.com/goparity/goparity/testmain"`)
}

func TestNoFixture(t *testing.T) {
	clean(t)
	var stdout, stderr strings.Builder
	assert.Equal(t, 1, testmain.Run(tests(func() int { t.Error("the tests ran"); return 0 }), &stdout, &stderr))
	assert.Contains(t, stderr.String(), `no fixture: name one, testmain.Main(m, testmain.Fixture("fixtures/NAME"))`)
}

// A panic of the tests ends the process as in Go; files are closed on the way.
func TestPanicPassesThrough(t *testing.T) {
	clean(t)
	dir, _, _ := fixture(t)
	var stdout, stderr strings.Builder
	assert.PanicsWithValue(t, "by the user", func() {
		testmain.Run(tests(func() int { panic("by the user") }), &stdout, &stderr, testmain.Fixture(dir))
	})
	assert.Nil(t, session.Current())
}

// Without the log of opened files go test cannot store the result.
func TestResultIsNeverCached(t *testing.T) {
	dir, _, _ := fixture(t)
	for _, c := range []struct {
		list   string
		kept   bool
		reason string
	}{
		{"", false, "a run that judged"},
		{".", true, "a list depends on nothing outside"},
	} {
		clean(t)
		log := filepath.Join(t.TempDir(), "testlog.txt")
		require.NoError(t, os.WriteFile(log, []byte("# test log\n"), 0o644))
		setFlag(t, "test.testlogfile", log)
		setFlag(t, "test.list", c.list)
		var stdout, stderr strings.Builder
		testmain.Run(tests(func() int { return 0 }), &stdout, &stderr, testmain.Fixture(dir))
		_, err := os.Stat(log)
		assert.Equal(t, c.kept, err == nil, c.reason)
	}
}
