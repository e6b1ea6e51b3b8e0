package testmain

import (
	"errors"
	"flag"
	"io"

	"github.com/goparity/goparity/internal/session"
)

// Run is Main without the exit.
func Run(m TestingM, stdout, stderr io.Writer, opts ...Option) int {
	return run(m, stdout, stderr, opts)
}

// Configure parses arguments with a flag set to which other libraries have added theirs, and
// returns what they and the environment ask for.
func Configure(fs *flag.FlagSet, args []string, getenv func(string) string) (session.Config, error) {
	var c session.Config
	wrong := registerFlags(fs, &c, getenv)
	if err := errors.Join(wrong, fs.Parse(args)); err != nil {
		return c, err
	}
	return c, configure(fs, &c, getenv)
}

// Settings are what was asked for of what chooses the run.
var Settings = settings
