// Package session is what parity, testmain and the command share: the open fixtures, their runs,
// and the results so far.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/mapfile"
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
	Wrong    []string // fixtures whose reports say that a layer is wrong, with the headline; known after Finish
	Scopes   sync.Map // what package parity keeps of each test, by its *testing.T
}

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
	f := &Fixture{dir: dir, name: filepath.Base(abs), out: s.cfg.Out, cfg: &s.cfg, replay: s.cfg.Replay, goldenDump: s.cfg.GoldenDump}
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
		if *to != "" && !mapfile.IsFolder(*to) {
			return fmt.Errorf("%s is not a folder: with several fixtures it has one folder for each", *to)
		} else if *to != "" {
			*to = filepath.Join(*to, f.name)
		}
	}
	if f.out == "" {
		return nil
	}
	folder := f.name
	if tests, _ := filepath.Glob(filepath.Join(folder, "*_test.go")); len(tests) > 0 { // whose reports have that folder
		folder = "_" + folder
	}
	f.out = filepath.Join(f.out, folder)
	return nil
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

// Finish writes the reports of all fixtures that were judged, and keeps the run if that was asked
// for.
//
// report.json and report.txt, and infra.txt where the machine is at fault, go to Out; to
// Out/<fixture> where the package has several fixtures. What was judged by parity.Func besides the
// recorded run goes to numbered folders in it.
func (s *Session) Finish(stdout io.Writer) error {
	var errs []error
	for _, f := range s.fixtures {
		for i, j := range f.compared {
			r := f.report(j.c, true)
			r.Tests = f.testsOf(j)
			errs = append(errs, s.write(stdout, f, r, j, i), j.c.Changed())
		}
		if r := f.ServeReport(); r != nil && len(f.compared) == 0 && f.err == nil {
			r.Tests = f.testsOf(&f.idle)
			errs = append(errs, s.write(stdout, f, r, &f.idle, 0))
		}
		if f.err != nil {
			r := &report.Report{Fixture: f.name, Verdict: report.Error, Error: engine.Message(f.err), Tests: f.testsOf(&f.idle)}
			errs = append(errs, s.write(stdout, f, r, &judged{}, len(f.compared)))
		}
		if s.cfg.Record != "" && f.c != nil {
			errs = append(errs, f.record(s.cfg.Record))
		}
	}
	return errors.Join(errs...)
}

// write writes the i-th report of a fixture: in full if a test failed, less what that told already, and as the last
// line its headline.
func (s *Session) write(stdout io.Writer, f *Fixture, r *report.Report, j *judged, i int) error {
	if (j.failed || f.idle.failed) && r.Verdict != report.Error { // a test told that error
		d := r.Document(report.View{Tested: true, Told: j.told})
		d.Title = ""
		if err := d.Text(stdout, report.TextOptions{}); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "parity: %s: %s: %s\n", f.name, strings.ToUpper(string(r.Verdict)), report.Headline(r))
	if r.Verdict == report.Fail {
		s.Wrong = append(s.Wrong, f.name+": "+report.Headline(r))
	}
	dir := f.out
	if dir == "" {
		return engine.WriteStatus("", f.name, errors.Join(f.err, f.servedErr))
	}
	if i > 0 {
		dir = filepath.Join(dir, strconv.Itoa(i)) // tests with functions of their own
	}
	if r.Package = s.cfg.Package; s.cfg.Settings != (report.Settings{}) {
		r.Settings = &s.cfg.Settings
	}
	return errors.Join(report.Save(dir, r), engine.WriteStatus(dir, f.name, errors.Join(f.err, f.servedErr)))
}
