package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
)

// engineOptions says where an engine logs, which outlives the run for people and CI to read, and what runs the engine command: the
// fixture's program, in the fixture's folder.
func (f *Fixture) engineOptions(name string) (opt engine.Options, err error) {
	if f.cfg.Out != "" {
		opt.LogFile = filepath.Join(f.cfg.Out, name+".log")
	} else if opt.LogFile, err = engine.LogFile(f.name + "-" + name); err != nil {
		return opt, err
	}
	if name != engine.Command {
		return opt, nil
	}
	if opt.Dir, err = filepath.Abs(f.dir); err != nil {
		return opt, err
	}
	opt.Program = slices.Clone(f.yaml.Model.Command)
	if program := opt.Program[0]; strings.HasPrefix(program, ".") {
		opt.Program[0] = filepath.Join(opt.Dir, program)
	}
	for i, word := range opt.Program {
		if word == fixture.Python {
			if opt.Program[i], err = engine.Interpreter(os.Getenv, "."); err != nil {
				return opt, err
			}
		}
	}
	return opt, nil
}
