package supervise

import (
	"context"
	"os/exec"
)

// group is the program alone: what it starts is not ended with it.
type group struct{ cmd *exec.Cmd }

func startGroup(_ context.Context, cmd *exec.Cmd) (*group, error) { return &group{cmd}, cmd.Start() }

// wait returns how the program ended. On Windows a crash is an exit code such as 0xC0000005, not a
// signal.
func (g *group) wait() ending {
	err := g.cmd.Wait()
	if g.cmd.ProcessState == nil {
		return ending{err: err}
	}
	return ending{code: g.cmd.ProcessState.ExitCode()}
}

// terminate kills the program: Windows has no SIGTERM.
func (g *group) terminate() { g.cmd.Process.Kill() }

func (g *group) close() { g.cmd.Process.Kill() }
