package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	switch err := json.Unmarshal(data, &out); {
	case err != nil && err.Error() == "unexpected end of JSON input":
		return nil, fmt.Errorf("report: the file ends before the report does, after %d bytes: it was not written to its end", len(data))
	case err != nil:
		return nil, fmt.Errorf("report: not a report.json: %w", err)
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

// check finds contradictions, so that no reader has to doubt a report: every writer here refuses them.
func (r *Report) check() error {
	if severity[r.Verdict] == 0 {
		return fmt.Errorf("report: unknown verdict %q, want pass, fail, incomplete or error", r.Verdict)
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		switch where := fmt.Sprintf("layers[%d] (%s %s)", i, l.Layer, l.Port); {
		case !slices.Contains(statuses, l.Status):
			return fmt.Errorf("report: %s: unknown status %q, want one of %q", where, l.Status, statuses)
		case r.holds() && l.Status.failing():
			return fmt.Errorf("report: verdict %s, but %s has status %q", r.Verdict, where, l.Status)
		}
	}
	switch failed := r.FailedStage(); {
	case !r.holds():
	case failed != "":
		return fmt.Errorf("report: verdict %s, but that of %s is fail", r.Verdict, failed)
	case r.vacuous():
		return fmt.Errorf("report: verdict %s, but nothing was compared", r.Verdict)
	case r.Verdict != r.covered():
		return fmt.Errorf("report: verdict %s, but coverage says %s", r.Verdict, r.covered())
	}
	return nil
}

// vacuous reports whether nothing was compared.
func (r *Report) vacuous() bool {
	return Count(r.Layers).Compared == 0 && r.firstStage(StatusPass) == ""
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

// Save writes report.json and report.txt into a folder, which it makes; no reader sees half of one.
func Save(dir string, r *Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err := mapfile.Replace(filepath.Join(dir, "report.json"), 0o644, func(w io.Writer) error { return Write(w, r) })
	if err != nil {
		return err
	}
	return mapfile.Replace(filepath.Join(dir, "report.txt"), 0o644, func(w io.Writer) error { return Text(w, r, TextOptions{}) })
}

// Float is a float64 that JSON can hold whatever it is. A finite value is a JSON number with all
// its digits; NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity", which
// Python's float() and JavaScript's Number() read.
type Float float64

// MarshalJSON writes f as a number, or as one of the three strings.
func (f Float) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		text := strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+")
		return json.Marshal(strings.Replace(text, "Inf", "Infinity", 1))
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads what MarshalJSON writes; an error quotes what is no number. Null leaves f as it is.
func (f *Float) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err != nil {
		return fmt.Errorf(`%s is not a number, nor "NaN", "Infinity" or "-Infinity"`, data)
	}
	*f = Float(v)
	return nil
}
