package testmain_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/testmain"
)

// goTest does what go test does in a package with this TestMain and this test, in a folder with the
// fixture "toy": TestMain ends its process, so that the example of that name runs once more in one
// of its own.
func goTest(example string, TestMain func(testmain.TestingM), test func(*testing.T)) {
	if os.Getenv("PARITY_TEST_EXAMPLE") == example {
		os.Stdout = os.NewFile(1, "stdout") // go test has replaced the process's own
		TestMain(tests(func() int {
			if testing.RunTests(func(string, string) (bool, error) { return true, nil },
				[]testing.InternalTest{{Name: "TestToy", F: test}}) {
				return 0
			}
			return 1
		}))
	}
	root, err := os.MkdirTemp("", "testmain")
	if err == nil {
		err = errors.Join(inToy(root, example), os.RemoveAll(root))
	}
	if err != nil {
		fmt.Println(err)
	}
}

func inToy(root, example string) error {
	dir, ref, cand, err := toy(root)
	if err != nil {
		return err
	}
	s, err := session.Start(session.Config{Fixtures: []string{dir}, Update: setting.UpdateAll, GoldenDump: ref})
	if err != nil {
		return err
	}
	if err := errors.Join(s.Update(io.Discard), s.Close()); err != nil {
		return err
	}
	exe, err := filepath.Abs(os.Args[0])
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, "-test.run=^"+example+"$")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "PARITY_TEST_EXAMPLE="+example, "PARITY_REPLAY="+cand)
	out, err := cmd.Output()
	fmt.Print(string(out))
	return err
}
