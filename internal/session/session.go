// Package session is what parity, testmain and the command share: the open fixtures, their runs,
// and the results so far.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
)

// Config is what TestMain, flags and environment ask for.
type Config struct {
	Fixtures   []string // folders
	Replay     string   // dump or recording to judge instead of the fixture's own
	Record     string   // name under which the replayed run is kept
	Update     setting.Update
	GoldenDump string          // the reference's dump
	Bless      string          // why an update takes the candidate's run in place of the reference's; empty: it does not
	Prune      bool            // an update may remove goldens
	Out        string          // folder of the reports, of this package alone
	Package    string          // import path of the tests, for the reports
	Run        setting.Run     // empty is setting.RunReplay
	Settings   report.Settings // what of this the user asked for, to repeat the run
	Observer   bool            // engines run once more without hooks, to tell whether these change what a model returns
	Inherited  setting.Inherited
	Mode       setting.Mode

	Diagnose setting.Diagnose

	Timeout time.Duration // of go test; 0 for none
	Started time.Time     // when the tests began

	Context context.Context // ends all work; nil where signals end the process
}

func (c *Config) context() context.Context {
	if c.Context == nil {
		return context.Background()
	}
	return c.Context
}

// Session is the state of a test binary.
type Session struct {
	cfg      Config
	fixtures []*Fixture
	wrong    []string // see Wrong
	Scopes   sync.Map // what package parity keeps of each test, by its *testing.T
}

// Wrong lists the fixtures whose reports say that a layer is wrong, with the headline; known after
// Finish.
func (s *Session) Wrong() []string { return s.wrong }

// current is the one session of the process: parity's functions take a *testing.T and nothing else.
var current atomic.Pointer[Session]

// SkipsInherited reports whether tests of layers that only pass on an error are skipped, unless they name them.
func (s *Session) SkipsInherited() bool { return s.cfg.Inherited != setting.InheritedFail }

// GoTest is the command that runs tests of this package again, by the settings of this run.
func (s *Session) GoTest(which ...string) string {
	return setting.Command(s.cfg.Settings.GoTest(setting.Package(), which...)...)
}

// Current returns the session that TestMain started; nil without one.
func Current() *Session { return current.Load() }

// Start makes the session of this process. Fixtures are opened when a test needs them.
func Start(cfg Config) (*Session, error) {
	if len(cfg.Fixtures) == 0 {
		return nil, errors.New(`no fixture: name one, testmain.Main(m, testmain.Fixture("fixtures/NAME"))`)
	}
	if cfg.Record != "" && !runName.MatchString(cfg.Record) {
		return nil, fmt.Errorf("record: %q is no name for a run: want letters, digits, dots, dashes, underscores", cfg.Record)
	}
	cfg.Run = cmp.Or(cfg.Run, setting.RunReplay)
	if cfg.Started.IsZero() {
		cfg.Started = time.Now()
	}
	s := &Session{cfg: cfg}
	for _, dir := range cfg.Fixtures {
		if err := s.add(dir); err != nil {
			return nil, err
		}
	}
	current.Store(s)
	return s, nil
}

// add adds a fixture. Of several each has a folder of its name in those of dumps and of reports.
func (s *Session) add(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	f := &Fixture{runner: runner{dir: dir, name: filepath.Base(abs), out: s.cfg.Out, cfg: &s.cfg}, replay: s.cfg.Replay, goldenDump: s.cfg.GoldenDump}
	for _, other := range s.fixtures {
		if other.name == f.name {
			return fmt.Errorf("the fixtures %s and %s have one name, by which tests, dumps and reports know them: rename one folder",
				other.dir, dir)
		}
	}
	s.fixtures = append(s.fixtures, f)
	if len(s.cfg.Fixtures) == 1 {
		return nil
	}
	for _, to := range []*string{&f.replay, &f.goldenDump} {
		if *to != "" && !isDir(*to) {
			return fmt.Errorf("%s is not a folder: with several fixtures it has one folder for each", *to)
		} else if *to != "" {
			*to = filepath.Join(*to, f.name)
		}
	}
	if f.out != "" && isPackage(f.name) { // whose own tests have that folder
		f.out = filepath.Join(f.out, "_"+f.name)
	} else if f.out != "" {
		f.out = filepath.Join(f.out, f.name)
	}
	return nil
}

// isPackage reports whether a folder has tests.
func isPackage(dir string) bool {
	tests, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return len(tests) > 0
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// Default returns the only fixture; nil if there are several.
func (s *Session) Default() *Fixture {
	if len(s.fixtures) == 1 {
		return s.fixtures[0]
	}
	return nil
}

// Find finds a fixture by its folder or the last element of it.
func (s *Session) Find(name string) (*Fixture, error) {
	var names []string
	for _, f := range s.fixtures {
		if f.name == name || filepath.Clean(f.dir) == filepath.Clean(name) {
			return f, nil
		}
		names = append(names, f.name)
	}
	return nil, fmt.Errorf("TestMain names no fixture %q: it has %s", name, strings.Join(names, ", "))
}

// Unused lists the fixtures that no test compared anything of.
func (s *Session) Unused() (names []string) {
	for _, f := range s.fixtures {
		if !f.used.Load() {
			names = append(names, f.name)
		}
	}
	return names
}

// Close closes all files.
func (s *Session) Close() error {
	var errs []error
	for _, f := range s.fixtures {
		errs = append(errs, f.close())
	}
	current.CompareAndSwap(s, nil)
	return errors.Join(errs...)
}
