package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/report"
)

// Finish writes the reports of all fixtures that were judged, and keeps the run if that was asked for.
//
// A fixture's report.json and report.txt go to Out/<fixture>, and to Out itself where the package has one fixture only.
func (s *Session) Finish(stdout io.Writer) error {
	var errs []error
	for _, f := range s.fixtures {
		if f.c == nil {
			continue
		}
		r := f.c.Report(f.name, false)
		if s.cfg.Out != "" {
			errs = append(errs, writeReport(filepath.Join(s.cfg.Out, f.name), r))
			if len(s.fixtures) == 1 {
				errs = append(errs, writeReport(s.cfg.Out, r))
			}
		}
		if s.cfg.Record != "" {
			errs = append(errs, f.record(s.cfg.Record))
		}
		fmt.Fprintln(stdout, report.Headline(r))
	}
	return errors.Join(errs...)
}

// writeReport writes both forms through a temporary file, so that a reader never sees half of one.
func writeReport(dir string, r *report.Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{
		"report.json": func(w io.Writer) error { return report.Write(w, r) },
		"report.txt":  func(w io.Writer) error { return report.Text(w, r, report.TextOptions{}) },
	} {
		f, err := os.CreateTemp(dir, name+".*")
		if err != nil {
			return err
		}
		err = errors.Join(write(f), f.Chmod(0o644), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), filepath.Join(dir, name))
		}
		if err != nil {
			return errors.Join(err, os.Remove(f.Name()))
		}
	}
	return nil
}
