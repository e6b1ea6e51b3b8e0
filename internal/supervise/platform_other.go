//go:build !windows && (!unix || aix)

package supervise

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// On these systems programs cannot be supervised: recorded runs can be judged, but no engine can be
// run.

type group struct{}

func startGroup(context.Context, *exec.Cmd) (*group, error) {
	return nil, errors.ErrUnsupported
}

func (*group) wait() ending { return ending{err: errors.ErrUnsupported} }
func (*group) terminate()   {}
func (*group) close()       {}

func (*progress) pass(*exec.Cmd) error { return errors.ErrUnsupported }

// Daemons reports whether a program's descendants are ended that have left its process group, and
// says how.
func Daemons() (ended bool, how string) { return false, "no engine can be run on this system" }

func notExecutable(error) bool { return false }

func raise(os.Signal) { os.Exit(1) }
