package golden_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/tensor"
)

// importEnv makes this program import goldens of one value until it is killed.
const importEnv = "GOLDEN_TEST_IMPORT"

func TestMain(m *testing.M) {
	if v := os.Getenv(importEnv); v != "" {
		value, err := strconv.ParseFloat(v, 32)
		for err == nil {
			if err = importAll(os.Args[1], float32(value)); err == nil {
				fmt.Println("done")
			}
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// importAll makes goldens of two cases in two variants, all tensors of one value.
func importAll(dir string, value float32) error {
	var opts []golden.ImportOptions
	for _, variant := range []string{"float32", "float64"} {
		opt := golden.ImportOptions{Variant: variant, Runs: map[string]*golden.Run{}}
		for _, name := range []string{"a", "b"} {
			run := &golden.Run{Engine: "torch"}
			for i := range 6 {
				values := make([]float32, 500)
				for j := range values {
					values[j] = value
				}
				values[0] = float32(i)
				x, err := tensor.Of(values, len(values))
				if err != nil {
					return err
				}
				run.Ports = append(run.Ports, golden.Port{Step: "0", Layer: fmt.Sprint("l", i), Port: "output", Tensor: x})
			}
			opt.Runs[name] = run
		}
		opts = append(opts, opt)
	}
	_, err := golden.ImportAll(context.Background(), dir, opts, nil)
	return err
}

// valueOf reads a whole store and returns the value of all its tensors.
func valueOf(dir string) (value float64, err error) {
	s, err := golden.Open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // an update may begin and end here
	if n := len(s.Passes()); n != 4 {
		return 0, fmt.Errorf("%d passes", n)
	}
	for _, p := range s.Passes() {
		entries, err := s.Tensors(p.Variant, p.Case, p.Step)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			if err := e.Verify(); err != nil {
				return 0, err
			}
			x, err := e.Tensor()
			if err != nil {
				return 0, err
			}
			if v := x.At(x.Len() - 1); value == 0 {
				value = v
			} else if v != value {
				return 0, fmt.Errorf("a mixture of %v and %v", value, v)
			}
		}
	}
	problems, err := s.Verify(context.Background())
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("%v", problems)
	}
	return value, err
}

// importer is a process that imports all the time.
type importer struct {
	cmd  *exec.Cmd
	said *bufio.Reader
}

func startImporter(t *testing.T, dir string, value int) *importer {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, dir)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", importEnv, value))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &importer{cmd, bufio.NewReader(out)}
}

// kill ends the process at once, after its first import, and returns what it said beside "done".
func (i *importer) kill() (errs []string) {
	first, _ := i.said.ReadString('\n')
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	i.cmd.Process.Kill()
	rest, _ := io.ReadAll(i.said)
	i.cmd.Wait()
	for line := range strings.Lines(first + string(rest)) {
		if line != "done\n" {
			errs = append(errs, line)
		}
	}
	return errs
}

// Two processes import into one store all the time, and are killed at any moment; whoever reads
// meanwhile, and after it, sees one import, whole.
func TestConcurrentAndKilledImports(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fixture", "golden")
	require.NoError(t, importAll(dir, 1))
	done := make(chan struct{})
	read := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-done:
				read <- n
				return
			default:
			}
			_, err := valueOf(dir)
			assert.NoError(t, err, "read %d", n)
			n++
		}
	}()
	for range 6 {
		one, two := startImporter(t, dir, 1), startImporter(t, dir, 2)
		assert.Empty(t, one.kill())
		assert.Empty(t, two.kill())
		_, err := valueOf(dir)
		require.NoError(t, err)
	}
	close(done)
	assert.Greater(t, <-read, 6)

	require.NoError(t, importAll(dir, 3), "the lock of a process that was killed is free")
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left beside the goldens")
}
