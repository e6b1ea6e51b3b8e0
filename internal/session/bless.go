package session

import (
	"fmt"
	"io"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/transformers"
)

// MayUpdate refuses updates in CI, which nobody would see.
func MayUpdate(getenv func(string) string) error {
	if ci := strings.ToLower(getenv("CI")); ci != "" && ci != "false" && ci != "0" && getenv("PARITY_UPDATE_IN_CI") != "1" {
		return fmt.Errorf("goldens are not updated in CI (CI=%s): set PARITY_UPDATE_IN_CI=1 if this job is meant to", getenv("CI"))
	}
	return nil
}

// unedited refuses an update that would run an edited copy of transformers: what that computes is no reference.
func unedited(dump string) error {
	if dump != "" {
		return nil // whoever ran it: its run.json says with what
	}
	overlay, err := transformers.Find(".")
	if err != nil || overlay == nil {
		return err
	}
	return fmt.Errorf("goldens are not updated while transformers is edited: %s", overlay)
}

// bless makes golden what would be judged: a dump that was named, else a live run if that was asked for, else the recorded run. The
// manifest keeps the reason.
func (f *Fixture) bless(yaml *fixture.Fixture, mode setting.Update, stdout io.Writer) error {
	f.yaml = yaml
	dir := f.goldenDump
	switch {
	case dir != "":
	case f.isLive():
		job, err := f.candidate()
		if err != nil {
			return err
		}
		r, err := f.run(job)
		if err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		dir = r.Dir
	case f.replay != "":
		dir = f.replay
	case yaml.Replay != "":
		dir = f.runDir(yaml.Replay, dump.Standard)
	default:
		return fmt.Errorf("%s names no recorded run to bless: run the candidate with -parity.run=cpu, or name its dump with -parity.dump=DIR", yaml.File)
	}
	fmt.Fprintf(stdout, "parity: update %s: the candidate's run becomes golden, blessed: %s\n", f.name, f.cfg.Bless)
	return f.importVariant(yaml, yaml.References[0], dir, mode, stdout)
}

// blessed is what reports say of goldens that do not come from the reference; "" for others.
func blessed(engine, date, reason string) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("the golden is not the reference's: it is a run of %s of %s, blessed: %s", engine, date, reason)
}
