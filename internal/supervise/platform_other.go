//go:build !windows && (!unix || aix)

package supervise

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
)

// On these systems programs cannot be supervised: recorded runs can be judged, but no engine can be
// run.

type group struct{}

func newGroup(context.Context, string, time.Duration) (*group, error) {
	return nil, errors.ErrUnsupported
}

func (*group) start(*exec.Cmd) error         { return errors.ErrUnsupported }
func (*group) terminate(p *os.Process) error { return p.Kill() }
func (*group) close()                        {}

func (*progress) pass(*exec.Cmd) error { return errors.ErrUnsupported }

func status(s *os.ProcessState) (code int, signal string) { return s.ExitCode(), "" }

func notExecutable(error) bool { return false }

func raise(os.Signal) { os.Exit(1) }
