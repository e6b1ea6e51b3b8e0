package testmain

import (
	"errors"
	"flag"
	"fmt"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

// registerFlags binds each setting of c to its flag, whose default is its environment variable; the
// error is about a variable. It is called when Main runs, after every package's init: a flag of
// another library is used, never redefined.
func registerFlags(fs *flag.FlagSet, c *session.Config, getenv func(string) string) error {
	var wrong []error
	for _, s := range []struct {
		to               flag.Value
		name, env, usage string
	}{
		{setting.Flag(&c.Run), "run", "PARITY_RUN", "what is judged: `replay`, cpu or gpu; the build tag gpu makes it gpu"},
		{setting.Flag(&c.Mode), "mode", "PARITY_MODE",
			"`standard`, or both: the candidate runs once more with golden inputs for each layer, to tell who made an error"},
		{setting.Flag(&c.Inherited), "inherited", "PARITY_INHERITED",
			"what parity.All and parity.Layers do with a layer that only passes on an error: `skip`, or fail, in one line"},
		{setting.Flag(&c.Update), "update", "PARITY_UPDATE", "renew goldens from the reference: `none`, new or all"},
		{setting.Flag(&c.Diagnose), "diagnose", "PARITY_DIAGNOSE", "time for the search of causes when a run fails: `off`, fast or full"},
		{setting.Flag(&c.Replay), "replay", "PARITY_REPLAY", "judge the dump or recording in this `folder`"},
		{setting.Flag(&c.Record), "record", "PARITY_RECORD", "keep the replayed run in the fixture under this `name`"},
		{setting.Flag(&c.GoldenDump), "dump", "PARITY_GOLDEN_DUMP", "the reference's dump `folder` that an update imports"},
		{setting.Flag(&c.Bless), "bless", "",
			"make the candidate's run golden, for this `reason`, which every report repeats: the run that would be judged, or -parity.dump"},
		{setting.Flag(&c.Out), "out", "PARITY_OUT",
			"write report.json and report.txt into this `folder`, below it into that of the package"},
	} {
		usage := s.usage
		if s.env != "" {
			usage += " (env " + s.env + ")"
		}
		f := fs.Lookup("parity." + s.name)
		value, from := getenv(s.env), s.env
		if f != nil && f.Value.String() != f.DefValue { // Main ran before, as in tests of it
			value, from = f.Value.String(), "-"+f.Name
		}
		if err := s.to.Set(value); err != nil {
			wrong = append(wrong, fmt.Errorf("%s is %q: %w", from, value, err))
		}
		if f == nil {
			fs.Var(s.to, "parity."+s.name, usage)
		}
	}
	if fs.Lookup("parity.prune") == nil {
		fs.BoolVar(&c.Prune, "parity.prune", false, "an update removes goldens that the reference's run has no more")
	}
	if fs.Lookup("update") == nil {
		fs.Bool("update", false, "renew goldens from the reference (-parity.update=all)")
	}
	return errors.Join(wrong...)
}

// configure settles what parsed flags leave open, and refuses what contradicts itself. Another
// library's -update counts if it is a switch.
func configure(fs *flag.FlagSet, c *session.Config, getenv func(string) string) error {
	if c.Update == "" {
		c.Update = setting.UpdateNone
		if c.Bless != "" || fs.Lookup("update").Value.String() == "true" {
			c.Update = setting.UpdateAll
		}
	}
	if c.Update == setting.UpdateNone && c.Bless != "" {
		return errors.New("-parity.bless makes goldens, and the update mode is none: leave one of them out")
	}
	if c.Prune && c.Update == setting.UpdateNone {
		return errors.New("-parity.prune is for an update, and nothing is updated: add -update, or run parity golden prune FIXTURE")
	}
	if c.Update != setting.UpdateNone {
		if err := setting.MayUpdate(getenv); err != nil {
			return err
		}
		if setting.Narrowed() {
			return fmt.Errorf("-run %s narrows to layers, but an update renews whole forward passes: name tests only", setting.TestFlag("test.run"))
		}
	}
	if dump := fs.Lookup("parity.dump"); c.Update == setting.UpdateNone && dump.Value.String() != dump.DefValue {
		return fmt.Errorf("-parity.dump=%s is what an update imports, and nothing is updated: add -update, or leave "+
			"it out", c.GoldenDump)
	}
	switch {
	case c.Run == "" && c.Replay != "":
		c.Run = setting.RunReplay
	case c.Run == "":
		c.Run = setting.DefaultRun
	case c.Run != setting.RunReplay && c.Replay != "":
		return fmt.Errorf("-parity.run=%s and PARITY_REPLAY=%s: judge a live run or a dump, not both", c.Run, c.Replay)
	}
	return nil
}

// settings are what flags and variables asked for, of what chooses the run that is judged.
func settings(c *session.Config, getenv func(string) string) report.Settings {
	s := report.Settings{Tags: setting.Tags(), Replay: c.Replay, Mode: string(c.Mode), Inherited: string(c.Inherited)}
	if c.Replay == "" && (c.Run != setting.DefaultRun || getenv("PARITY_RUN") != "") {
		s.Run = string(c.Run)
	}
	return s
}
