package testmain_test

import (
	"flag"
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/testmain"
)

type env map[string]string

func (e env) get(name string) string { return e[name] }

func newFlags() *flag.FlagSet {
	fs := flag.NewFlagSet("user.test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

func TestFlagsAndEnvironment(t *testing.T) {
	none := func(c session.Config) session.Config {
		if c.Update == "" {
			c.Update = setting.UpdateNone
		}
		if c.Run == "" {
			c.Run = setting.DefaultRun
		}
		if c.Replay != "" {
			c.Run = setting.RunReplay
		}
		return c
	}
	for _, c := range []struct {
		args   []string
		env    env
		want   session.Config
		reason string
	}{
		{nil, nil, session.Config{}, "nothing is asked for"},
		{[]string{"-parity.replay=d"}, nil, session.Config{Replay: "d"}, "a flag"},
		{nil, env{"PARITY_REPLAY": "e"}, session.Config{Replay: "e"}, "its variable"},
		{[]string{"-parity.replay=d"}, env{"PARITY_REPLAY": "e"}, session.Config{Replay: "d"}, "the flag comes first"},
		{[]string{"-parity.record=a", "-parity.dump=b", "-update", "-parity.out=c", "-parity.diagnose=off", "-parity.mode=both"},
			env{"PARITY_RECORD": "e", "PARITY_GOLDEN_DUMP": "e", "PARITY_OUT": "e", "PARITY_DIAGNOSE": "fast", "PARITY_MODE": "standard"},
			session.Config{Record: "a", GoldenDump: "b", Update: setting.UpdateAll, Out: "c", Diagnose: setting.DiagnoseOff, Mode: setting.ModeBoth}, "all flags"},
		{nil, env{"PARITY_RECORD": "a", "PARITY_GOLDEN_DUMP": "b", "PARITY_OUT": "c", "PARITY_DIAGNOSE": "fast", "PARITY_MODE": "standard"},
			session.Config{Record: "a", GoldenDump: "b", Out: "c", Diagnose: setting.DiagnoseFast, Mode: setting.ModeStandard}, "all variables"},
		{[]string{"-update"}, nil, session.Config{Update: setting.UpdateAll}, "the short flag is all"},
		{[]string{"-update=false"}, nil, session.Config{}, "a switch can be off"},
		{[]string{"-parity.update=new"}, nil, session.Config{Update: setting.UpdateNew}, "a mode"},
		{nil, env{"PARITY_UPDATE": "all"}, session.Config{Update: setting.UpdateAll}, "a mode by its variable"},
		{[]string{"-parity.update=none"}, env{"PARITY_UPDATE": "all"}, session.Config{},
			"the flag comes first, to switch off as well"},
		{[]string{"-update", "-parity.update=new"}, nil, session.Config{Update: setting.UpdateNew},
			"the long flag says more than the short one"},
		{nil, env{"CI": "true"}, session.Config{}, "CI matters to updates only"},
		{[]string{"-update"}, env{"CI": "false"}, session.Config{Update: setting.UpdateAll}, "no CI"},
		{[]string{"-update"}, env{"CI": "0"}, session.Config{Update: setting.UpdateAll}, "no CI"},
		{[]string{"-update"}, env{"CI": "true", "PARITY_UPDATE_IN_CI": "1"},
			session.Config{Update: setting.UpdateAll}, "a job that is meant to"},
		{nil, env{"PARITY_RUN": "replay"}, session.Config{Run: setting.RunReplay},
			"replay, also with the build tag gpu"},
		{nil, env{"PARITY_RUN": "cpu"}, session.Config{Run: setting.RunCPU}, "a live run by its variable"},
		{[]string{"-parity.run=gpu"}, env{"PARITY_RUN": "cpu"}, session.Config{Run: setting.RunGPU},
			"the flag comes first"},
	} {
		got, err := testmain.Configure(newFlags(), c.args, c.env.get)
		require.NoError(t, err, c.reason)
		assert.Equal(t, none(c.want), got, c.reason)
	}
}

func TestWhatFlagsRefuse(t *testing.T) {
	for _, c := range []struct {
		args   []string
		env    env
		want   string
		reason string
	}{
		{[]string{"-parity.update=some"}, nil, `invalid value "some" for flag -parity.update: want none, new or all`,
			"an unknown mode"},
		{nil, env{"PARITY_UPDATE": "1"}, `PARITY_UPDATE is "1": want none, new or all`,
			"the variable takes a mode, not a switch"},
		{[]string{"-update"}, env{"CI": "true"}, "goldens are not updated in CI (CI=true): set PARITY_UPDATE_IN_CI=1",
			"no one would see it"},
		{[]string{"-update"}, env{"CI": "1"}, "PARITY_UPDATE_IN_CI=1", "any value of CI"},
		{nil, env{"CI": "true", "PARITY_UPDATE": "new"}, "PARITY_UPDATE_IN_CI=1", "new goldens too"},
		{[]string{"-update"}, env{"CI": "true", "PARITY_UPDATE_IN_CI": "0"}, "PARITY_UPDATE_IN_CI=1",
			"only 1 allows it"},
		{[]string{"-parity.diagnose=never"}, nil,
			`invalid value "never" for flag -parity.diagnose: want off, fast or full`, "an unknown mode"},
		{[]string{"-parity.mode=isolated"}, nil,
			`invalid value "isolated" for flag -parity.mode: want standard or both`, "an unknown mode"},
		{nil, env{"PARITY_RUN": "tpu"}, `PARITY_RUN is "tpu": want replay, cpu or gpu`, "an unknown device"},
		{[]string{"-parity.run=cpu"}, env{"PARITY_REPLAY": "d"}, "judge a live run or a dump, not both",
			"two candidates"},
		{[]string{"-parity.dump=d"}, nil, "-parity.dump=d is what an update imports, and nothing is updated: add -update",
			"the goldens would not be that dump's"},
		{[]string{"-parity.tolerance=1"}, nil, "flag provided but not defined: -parity.tolerance", "no such flag"},
	} {
		_, err := testmain.Configure(newFlags(), c.args, c.env.get)
		assert.ErrorContains(t, err, c.want, c.reason)
	}
}

// Another library's -update is used, never redefined.
func TestUpdateOfAnotherLibrary(t *testing.T) {
	fs := newFlags()
	theirs := fs.Bool("update", false, "renew other files")
	c, err := testmain.Configure(fs, []string{"-update"}, env{}.get)
	require.NoError(t, err)
	assert.Equal(t, setting.UpdateAll, c.Update)
	assert.True(t, *theirs, "theirs is set as well")

	fs = newFlags()
	text := fs.String("update", "", "what to renew")
	c, err = testmain.Configure(fs, []string{"-update=docs"}, env{}.get)
	require.NoError(t, err)
	assert.Equal(t, setting.UpdateNone, c.Update, "a text is no switch")
	assert.Equal(t, "docs", *text)
}

// docs/commands.md has a row for each flag, with its variable.
func TestFlagsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/commands.md")
	require.NoError(t, err)
	fs := newFlags()
	_, err = testmain.Configure(fs, nil, env{}.get)
	require.NoError(t, err)
	variable := regexp.MustCompile(`\(env (\w+)\)`)
	n := 0
	fs.VisitAll(func(f *flag.Flag) {
		row := "`-" + f.Name + "[=`].*\\| \\|"
		if m := variable.FindStringSubmatch(f.Usage); m != nil {
			row = "`-" + f.Name + "[=`].*\\| `" + m[1] + "` \\|"
		}
		if f.Name == "update" {
			row = "`-update`, `-parity.update="
		}
		assert.Regexp(t, "\n\\| .*"+row, string(page))
		n++
	})
	assert.Greater(t, n, 10)
}

// What was asked for is said, so that the run can be repeated, and nothing else.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		config session.Config
		env    env
		run    string
		reason string
	}{
		{session.Config{Run: setting.DefaultRun}, nil, "", "no one asked"},
		{session.Config{Run: setting.RunCPU}, nil, "cpu", "a live run"},
		{session.Config{Run: setting.DefaultRun}, env{"PARITY_RUN": "x"}, string(setting.DefaultRun), "by its variable"},
		{session.Config{Run: setting.RunGPU, Replay: "d"}, nil, "", "a dump is no live run"},
	} {
		got := testmain.Settings(&c.config, c.env.get)
		assert.Equal(t, []string{c.run, c.config.Replay}, []string{got.Run, got.Replay}, c.reason)
	}
}
