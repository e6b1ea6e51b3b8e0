// Package testmain runs the parity tests of a package: it opens the fixtures, replays the
// candidate's recorded run, renews goldens on request, and writes the report when all tests are
// done.
//
//	func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/minilm")) }
//
// Flags, each with an environment variable that does the same where a flag would break packages
// without parity tests:
//
//	-parity.run=WHAT      PARITY_RUN          the recorded run (replay), or a live one: cpu or gpu
//	-parity.inherited=X   PARITY_INHERITED    a layer that only passes on an error: skip or fail
//	-parity.mode=MODE     PARITY_MODE         standard, or both: once more with golden inputs
//	-parity.replay=DIR    PARITY_REPLAY       judge this dump or recording, not the recorded run
//	-parity.record=NAME   PARITY_RECORD       keep the judged run as the fixture's run NAME
//	-parity.update=MODE   PARITY_UPDATE       renew goldens: none, new or all; -update is all
//	-parity.dump=DIR      PARITY_GOLDEN_DUMP  the reference's dump that -update imports
//	-parity.prune                             an update may remove goldens
//	-parity.bless=REASON                      make the candidate's run golden; reports say why
//	-parity.diagnose=X    PARITY_DIAGNOSE     search for causes: off, fast (1.5 s) or full (10 s)
//	-parity.out=DIR       PARITY_OUT          where report.json and report.txt go
//
// A flag wins over its variable. PARITY_UPDATE_IN_CI=1 allows updates where CI is set. Nothing here
// is served from Go's test cache.
package testmain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

// TestingM is the part of [testing.M] that Main needs.
type TestingM interface{ Run() int }

// Option is a part of what Main sets up.
type Option interface{ apply(*session.Config) }

type optionFunc func(*session.Config)

func (f optionFunc) apply(c *session.Config) { f(c) }

// Fixture names a fixture's folder, relative to the package. With several, tests choose with
// parity.Use by the last element of the folder, which no two of them may share.
func Fixture(dir string) Option {
	return optionFunc(func(c *session.Config) { c.Fixtures = append(c.Fixtures, dir) })
}

// Main runs the tests and exits. It never returns.
func Main(m TestingM, opts ...Option) {
	os.Exit(run(m, os.Stdout, os.Stderr, opts))
}

// run is Main without the exit, so that deferred calls happen.
func run(m TestingM, stdout, stderr io.Writer, opts []Option) int {
	var cfg session.Config
	for _, o := range opts {
		o.apply(&cfg)
	}
	err := registerFlags(flag.CommandLine, &cfg, os.Getenv)
	if !flag.Parsed() {
		flag.Parse()
	}
	if err == nil {
		err = configure(flag.CommandLine, &cfg, os.Getenv)
	}
	if err != nil {
		return fail(stderr, err)
	}
	cfg.Settings = settings(&cfg, os.Getenv)
	if cfg.Package = setting.ImportPath(); cfg.Out != "" {
		cfg.Out = outOf(cfg.Out)
	}
	cfg.Started = time.Now()
	if d, err := time.ParseDuration(setting.TestFlag("test.timeout")); err == nil {
		cfg.Timeout = d
	}
	s, err := session.Start(cfg)
	if err != nil {
		return fail(stderr, err)
	}
	defer s.Close()
	if setting.TestFlag("test.list") != "" { // go test only wants names
		return m.Run()
	}
	defer neverCache()
	if err := mapfile.Guard(func() error { return s.Update(stdout) }); err != nil {
		return fail(stderr, err)
	}
	code := m.Run()
	if err := mapfile.Guard(func() error { return s.Finish(stdout) }); err != nil {
		return max(code, fail(stderr, err))
	}
	if code != 0 {
		return code
	}
	if err := vacuous(s); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// vacuous says why tests that pass say nothing; nil if they do.
func vacuous(s *session.Session) error {
	if wrong := s.Wrong; len(wrong) > 0 {
		return fmt.Errorf("no test failed, but %s: all that differ were skipped as inherited, and no test asserts "+
			"the layer that made the error: assert it, or run with -parity.inherited=fail", strings.Join(wrong, "; "))
	}
	if what := noTest(); what != "" {
		return errors.New(what)
	}
	unused, unjudged := s.Unused(), s.Unjudged()
	switch {
	case !unfiltered():
	case len(unused) > 0:
		return fmt.Errorf("no test compared anything of %s: call parity.All(t).Check() in a test", strings.Join(unused, ", "))
	case len(unjudged) > 0:
		return errors.New(strings.Join(unjudged, "\n"))
	}
	return nil
}

// outOf returns the folder of this package's reports: many packages may be given one folder, which
// is relative to the root of the module.
func outOf(dir string) string {
	root, folder := setting.Place()
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return filepath.Join(dir, filepath.FromSlash(folder))
}

func fail(w io.Writer, err error) int {
	fmt.Fprintf(w, "testmain: %s\n", sanitize.Text(err.Error()))
	return 1
}

// unfiltered reports whether all tests of the package were asked for.
func unfiltered() bool {
	return setting.TestFlag("test.run") == "" && setting.TestFlag("test.skip") == "" && setting.TestFlag("test.short") != "true" &&
		setting.TestFlag("test.count") != "0"
}

// neverCache keeps go test from serving this result again: it cannot see dumps outside the module,
// nor what was read before the tests ran. Without its log of opened files it stores no result
// (cmd/go: "reading testlog: no such file").
func neverCache() {
	if log := setting.TestFlag("test.testlogfile"); log != "" {
		os.Remove(log)
	}
}

// noTest says that -run selects no test of this package, "" where it selects one or is not given: go test calls that ok.
// -run '^$', and any other beside -bench or -fuzz, is how one asks for none.
func noTest() string {
	pattern := setting.TestFlag("test.run")
	if pattern == "" || pattern == "^$" || setting.TestFlag("test.bench") != "" || setting.TestFlag("test.fuzz") != "" {
		return ""
	}
	first, _, _ := strings.Cut(pattern, "/")
	selects, err := regexp.Compile(first)
	if err != nil { // a slash in brackets; go test has said what it makes of it
		return ""
	}
	tests := listed()
	if len(tests) == 0 || slices.ContainsFunc(tests, selects.MatchString) {
		return ""
	}
	return "-run " + pattern + " selects no test of this package, so nothing was judged: it has " + strings.Join(tests, ", ")
}

// listed are the tests of this binary, by its own list; nil where that cannot be had.
func listed() (tests []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, os.Args[0], "-test.list", ".").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "Test") || strings.HasPrefix(line, "Example") || strings.HasPrefix(line, "Fuzz") {
			tests = append(tests, line)
		}
	}
	return tests
}
