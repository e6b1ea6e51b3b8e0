package session

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/infra"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
)

// Finish writes the reports of all fixtures that were judged, and keeps the run if that was asked
// for.
//
// report.json and report.txt, and infra.txt where the machine is at fault, go to Out; to
// Out/<fixture> where the package has several fixtures, or where the report of another package's
// fixture is there already. What was judged by parity.Func besides the recorded run goes to
// numbered folders in it.
func (s *Session) Finish(stdout io.Writer) error {
	var errs []error
	for _, f := range s.fixtures {
		for i, c := range f.compared {
			errs = append(errs, s.write(stdout, f, f.report(c), i), c.Changed())
		}
		if f.err != nil {
			errs = append(errs, s.write(stdout, f, &report.Report{Fixture: f.name, Verdict: report.Error, Error: f.err.Error()}, len(f.compared)))
		}
		if s.cfg.Record != "" && f.c != nil {
			errs = append(errs, f.record(s.cfg.Record))
		}
	}
	return errors.Join(errs...)
}

// write writes the i-th report of a fixture, and its headline.
func (s *Session) write(stdout io.Writer, f *Fixture, r *report.Report, i int) error {
	fmt.Fprintf(stdout, "parity: %s: %s: %s\n", f.name, strings.ToUpper(string(r.Verdict)), report.Headline(r))
	if r.Verdict == report.Fail {
		s.wrong = append(s.wrong, f.name+": "+report.Headline(r))
	}
	dir := s.cfg.Out
	if dir == "" {
		return infra.WriteStatus("", f.name, f.err)
	}
	if len(s.fixtures) > 1 || taken(dir, f.name) {
		dir = filepath.Join(dir, f.name)
	}
	if i > 0 {
		dir = filepath.Join(dir, strconv.Itoa(i)) // tests with functions of their own
	}
	return errors.Join(report.Save(dir, r), infra.WriteStatus(dir, f.name, f.err))
}

// taken reports whether a folder has the report of another fixture.
func taken(dir, fixture string) bool {
	f, err := mapfile.Reader(filepath.Join(dir, "report.json"), mapfile.MaxListing)
	if err != nil {
		return false
	}
	defer f.Close()
	r, err := report.Read(f)
	return err == nil && r.Fixture != fixture
}
