package testmain

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/gpu"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/session"
)

// flags are registered when Main runs, after every package's init: a flag of another library is used, never redefined.
type flags struct {
	run, mode, inherited, replay, record, update, dump, bless, out, diagnose *string
	alias                                                                    *flag.Flag // -update
}

func registerFlags(fs *flag.FlagSet) *flags {
	str := func(name, usage string) *string {
		if f := fs.Lookup(name); f != nil { // Main ran twice, as tests of it do
			s := f.Value.String()
			return &s
		}
		return fs.String(name, "", usage)
	}
	f := &flags{
		run:       str("parity.run", "what is judged: `replay`, cpu or gpu; the build tag gpu makes it gpu (env PARITY_RUN)"),
		mode:      str("parity.mode", "`standard`, or both: the candidate runs once more with golden inputs for each layer, to tell who made an error (env PARITY_MODE)"),
		inherited: str("parity.inherited", "what a test does whose layer only passes on an error: `fail`, in one line, or skip (env PARITY_INHERITED)"),
		replay:    str("parity.replay", "judge the dump or recording in this `folder` (env PARITY_REPLAY)"),
		record:    str("parity.record", "keep the replayed run in the fixture under this `name` (env PARITY_RECORD)"),
		update:    str("parity.update", "renew goldens from the reference: `none`, new or all (env PARITY_UPDATE)"),
		bless:     str("parity.bless", "make the candidate's run golden, for this `reason`, which every report repeats: the run that would be judged, or -parity.dump"),
		dump:      str("parity.dump", "the reference's dump `folder` that an update imports (env PARITY_GOLDEN_DUMP)"),
		diagnose:  str("parity.diagnose", "time for the search of causes when a run fails: `off`, fast or full, the default (env PARITY_DIAGNOSE)"),
		out:       str("parity.out", "write report.json and report.txt into this `folder` (env PARITY_OUT)"),
	}
	if fs.Lookup("update") == nil {
		fs.Bool("update", false, "renew goldens from the reference (-parity.update=all)")
	}
	f.alias = fs.Lookup("update")
	return f
}

// configure takes each setting from its flag, else from its variable. Another library's -update counts if it is a switch.
func (f *flags) configure(c *session.Config, getenv func(string) string) error {
	pick := func(flag *string, env string) string {
		if *flag != "" {
			return *flag
		}
		return getenv(env)
	}
	c.Replay = pick(f.replay, "PARITY_REPLAY")
	c.Record = pick(f.record, "PARITY_RECORD")
	c.GoldenDump = pick(f.dump, "PARITY_GOLDEN_DUMP")
	c.Out = pick(f.out, "PARITY_OUT")
	if c.Diagnose = pick(f.diagnose, "PARITY_DIAGNOSE"); judge.CheckDiagnose(c.Diagnose) != nil {
		return judge.CheckDiagnose(c.Diagnose)
	}
	c.Update = pick(f.update, "PARITY_UPDATE")
	if c.Update == "" && f.alias.Value.String() == "true" {
		c.Update = session.UpdateAll
	}
	if c.Bless = *f.bless; c.Bless != "" && c.Update == "" {
		c.Update = session.UpdateAll
	}
	switch c.Update {
	case "", session.UpdateNone:
		if c.Bless != "" {
			return errors.New("-parity.bless makes goldens, and the update mode is none: leave one of them out")
		}
		c.Update = session.UpdateNone
	case session.UpdateNew, session.UpdateAll:
		if err := mayUpdate(getenv); err != nil {
			return err
		}
	default:
		return fmt.Errorf("update mode %q: want none, new or all", c.Update)
	}
	run := pick(f.run, "PARITY_RUN")
	switch run {
	case session.RunReplay, session.RunCPU, session.RunGPU:
		if run != session.RunReplay && c.Replay != "" {
			return fmt.Errorf("-parity.run=%s and PARITY_REPLAY=%s: judge a live run or a dump, not both", run, c.Replay)
		}
	case "":
		if run = gpu.DefaultRun; c.Replay != "" {
			run = session.RunReplay
		}
	default:
		return fmt.Errorf("parity.run is %q: want replay, cpu or gpu", run)
	}
	c.Run = run
	switch c.Inherited = pick(f.inherited, "PARITY_INHERITED"); c.Inherited {
	case "", session.InheritedFail, session.InheritedSkip:
	default:
		return fmt.Errorf("parity.inherited is %q: want fail or skip", c.Inherited)
	}
	switch c.Mode = pick(f.mode, "PARITY_MODE"); c.Mode {
	case "", session.ModeStandard, session.ModeBoth:
		return nil
	}
	return fmt.Errorf("parity.mode is %q: want standard or both", c.Mode)
}

// mayUpdate refuses updates that nobody would see, or that would renew a part of a forward pass.
func mayUpdate(getenv func(string) string) error {
	if err := session.MayUpdate(getenv); err != nil {
		return err
	}
	if run := testFlag("test.run"); strings.Contains(run, "/") {
		return fmt.Errorf("-run %s narrows to layers, but an update renews whole forward passes: name tests only", run)
	}
	return nil
}
