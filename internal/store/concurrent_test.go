package store_test

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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// importEnv makes this program import goldens of one value until it is killed.
const importEnv = "STORE_TEST_UPDATE"

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
	c := &store.Change{}
	for _, variant := range []string{"float32", "float64"} {
		for _, name := range []string{"a", "b"} {
			info := dump.Info{Engine: "torch", Mode: dump.Standard, Case: name}
			var entries []dump.Entry
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
				entries = append(entries, dump.Entry{Step: "0", Layer: fmt.Sprint("l", i, variant), Port: "output", Tensor: x})
			}
			c.Add = append(c.Add, store.Recording{Kept: store.Kept{Variant: variant, Info: info}, Run: dump.New("memory", info, dump.OrderRunFile, entries)})
		}
	}
	return store.Update(context.Background(), dir, nil, func(*store.Store) (*store.Change, error) { return c, nil })
}

// valueOf reads a whole store and returns the value of all its tensors.
func valueOf(dir string) (value float64, err error) {
	s, err := store.Open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // an update may begin and end here
	if n := len(s.Runs()); n != 4 {
		return 0, fmt.Errorf("%d runs", n)
	}
	for _, k := range s.Runs() {
		run, err := s.Run(k)
		if err != nil {
			return 0, err
		}
		for _, e := range run.Entries {
			if v := e.Tensor.At(e.Tensor.Len() - 1); value == 0 {
				value = v
			} else if v != value {
				return 0, fmt.Errorf("a mixture of %v and %v", value, v)
			}
		}
	}
	problems, err := s.Verify(context.Background())
	if problems = slices.DeleteFunc(problems, func(p store.Problem) bool { return p.Extra }); err == nil && len(problems) > 0 {
		err = fmt.Errorf("%v", problems) // files that another process writes at the moment are extra
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
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 5, "nothing is left of those that were killed")
}
