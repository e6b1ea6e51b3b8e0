package session

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/report"
)

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
			r := f.report(j.c)
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
		s.wrong = append(s.wrong, f.name+": "+report.Headline(r))
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
