package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/secret"
)

// Write writes r as indented JSON. It sets the schema and counts the summary. A report that
// contradicts itself is refused, see [Read].
func Write(w io.Writer, r *Report) error {
	out := *r
	out.Schema = Schema
	out.Summary = Count(r.Layers)
	out.Stages, out.Bisect = r.JudgedStages(), r.bisect()
	out.Error = secret.OfProcess().Redact(r.Error)
	out.Notes = make([]string, len(r.Notes))
	for i, note := range r.Notes {
		out.Notes[i] = secret.OfProcess().Redact(note)
	}
	out.Unmatched = Unmatched{Golden: orEmpty(r.Unmatched.Golden), Actual: orEmpty(r.Unmatched.Actual)}
	out.Layers = orEmpty(r.Layers)
	if err := out.check(); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(&out); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Read reads what Write wrote. Unknown fields are skipped: later versions may add some. Another
// schema, an unknown verdict or status, and a report that contradicts itself (a pass that compared
// nothing, or that has a failing row) are errors that name the place.
func Read(r io.Reader) (*Report, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var out Report
	if err := json.Unmarshal(data, &out); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		at := int64(0)
		switch {
		case errors.As(err, &syntax) && err.Error() == "unexpected end of JSON input":
			return nil, fmt.Errorf("report: the file ends before the report does, after %d bytes: it was not written to its end", len(data))
		case errors.As(err, &syntax):
			at = syntax.Offset
		case errors.As(err, &kind):
			at = kind.Offset
		}
		return nil, fmt.Errorf("report: not a report.json: %w (after byte %d)", err, at)
	}
	if out.Schema != Schema {
		return nil, fmt.Errorf("report: schema %d, this version reads %d: use the parity that wrote it", out.Schema,
			Schema)
	}
	if err := out.check(); err != nil {
		return nil, err
	}
	return &out, nil
}

// check finds contradictions, so that no reader has to doubt a report. Every writer of this package
// refuses one that has any.
func (r *Report) check() error {
	if !slices.Contains([]Verdict{Pass, Fail, Incomplete, Error}, r.Verdict) {
		return fmt.Errorf("report: unknown verdict %q, want pass, fail, incomplete or error", r.Verdict)
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		if !slices.Contains(statuses, l.Status) {
			return fmt.Errorf("report: layers[%d] (%s %s): unknown status %q, want one of %q", i, l.Layer, l.Port,
				l.Status, statuses)
		}
		if r.holds() && l.failing() {
			return fmt.Errorf("report: verdict %s, but layers[%d] (%s %s) has status %q", r.Verdict, i, l.Layer, l.Port,
				l.Status)
		}
	}
	switch failed := r.FailedStage(); {
	case r.holds() && failed != "":
		return fmt.Errorf("report: verdict %s, but that of %s is fail", r.Verdict, failed)
	case r.holds() && Count(r.Layers).Compared == 0 && r.firstStage(StatusPass) == "":
		return fmt.Errorf("report: verdict %s, but nothing was compared", r.Verdict)
	case r.holds() && r.Verdict != r.covered():
		return fmt.Errorf("report: verdict %s, but coverage says %s", r.Verdict, r.covered())
	}
	return nil
}

// holds reports whether all that was judged holds.
func (r *Report) holds() bool { return r.Verdict == Pass || r.Verdict == Incomplete }

// covered returns the verdict of a run in which all that was judged holds.
func (r *Report) covered() Verdict {
	if len(r.Open()) > 0 {
		return Incomplete
	}
	return Pass
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Save writes report.json and report.txt into a folder, which it makes; a reader never sees half of
// one.
func Save(dir string, r *Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := mapfile.Replace(filepath.Join(dir, "report.json"), 0o644,
		func(w io.Writer) error { return Write(w, r) }); err != nil {
		return err
	}
	return mapfile.Replace(filepath.Join(dir, "report.txt"), 0o644,
		func(w io.Writer) error { return Text(w, r, TextOptions{}) })
}

// Float is a float64 that JSON can hold whatever it is. A finite value is a JSON number with all
// its digits; NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity", which
// Python's float() and JavaScript's Number() read.
type Float float64

// MarshalJSON writes f as a number, or as one of the three strings.
func (f Float) MarshalJSON() ([]byte, error) {
	v := float64(f)
	switch {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes; any other string is an error that quotes it. Null
// leaves f as it is.
func (f *Float) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "null":
		return nil
	case `"NaN"`:
		*f = Float(math.NaN())
		return nil
	case `"Infinity"`:
		*f = Float(math.Inf(1))
		return nil
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
		return nil
	}
	var v float64
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf(`%s is not a number, nor "NaN", "Infinity" or "-Infinity"`, data)
	}
	*f = Float(v)
	return nil
}
