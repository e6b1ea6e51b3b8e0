package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Brief says in at most 2 kB what a report found and what to do next: for people in a hurry, for a CI's comments and
// for coding agents. docs/report.md says what each key means.
type Brief struct {
	Schema     int         `json:"schema"`
	Fixture    string      `json:"fixture"`
	Verdict    Verdict     `json:"verdict"`
	Stage      string      `json:"stage"`
	Kind       string      `json:"kind"`
	First      *BriefPlace `json:"first_divergence"`
	Cause      *BriefCause `json:"cause"`
	Compared   *int        `json:"compared"`
	Outputs    *int        `json:"outputs"`
	NotJudged  []string    `json:"not_judged"`
	NotCovered []string    `json:"not_covered"`
	Second     *Second     `json:"second"`
	Next       *string     `json:"next"`
	WhyNext    string      `json:"why_next"`

	report *Report
	file   string
}

// BriefPlace is the first divergence, less what is evidence.
type BriefPlace struct {
	Divergence
	Alike []string `json:"alike,omitempty"` // other paths that fail at this layer with this cause
}

// BriefCause is why it happens.
type BriefCause struct {
	ID     string `json:"id"`
	Layer  string `json:"layer"`
	Proven bool   `json:"proven"`
	Text   string `json:"text"`
	Doc    string `json:"doc"`
}

// Second is another layer that makes an error of its own.
type Second struct {
	Layer string      `json:"layer"`
	Text  string      `json:"text"`
	Cause *BriefCause `json:"cause"`
}

// BriefOf returns a report in short; file is where it lies, for the next command.
func BriefOf(r *Report, file string) *Brief {
	b := &Brief{Schema: 1, Fixture: r.Fixture, Verdict: r.Verdict, Stage: "run", Kind: r.Kind,
		NotJudged: orEmpty(r.NotJudged), NotCovered: orEmpty(r.Open()), Second: r.second(), report: r, file: file}
	if r.Verdict != Error { // else nothing could be judged
		b.Stage = r.subject()
	}
	if d := r.FirstDivergence; d != nil {
		b.First = &BriefPlace{}
		_ = json.Unmarshal(encoded(d), b.First) // as it stands in report.json, which was just encoded
		at := &b.First.Divergence
		at.Uncaptured, at.Evidence, at.Growth, at.Piece = nil, nil, nil, nil
		if all := r.Findings(); len(all) > 0 && d.Row != nil {
			b.First.Alike = slices.DeleteFunc(slices.Clone(all[0].Paths), func(path string) bool { return path == d.Path })
		}
	}
	if len(r.Causes) > 0 {
		b.Cause = r.Causes[0].brief()
	}
	if c := r.Coverage; c != nil {
		b.Compared, b.Outputs = &c.Compared, &c.Outputs
	}
	next, why := r.Next(file)
	if b.WhyNext = why; next != "" {
		b.Next = &next
	}
	return shortened(b, math.MaxInt/4)
}

// BrokenBrief is the brief of what left no report: why says what happened.
func BrokenBrief(fixture, why string) *Brief {
	return BriefOf(&Report{Fixture: fixture, Verdict: Error, Error: why}, "")
}

func (c *Cause) brief() *BriefCause {
	return &BriefCause{ID: c.ID, Layer: c.Layer, Proven: c.Proven, Text: joined("; ", c.Text, c.Evidence()), Doc: c.Doc()}
}

// AlsoWrong is how evidence begins that another layer makes an error of its own.
func AlsoWrong(layer string) string { return "also wrong by itself: " + layer + ", " }

// second returns the first layer besides the place that makes an error which is known to be another one; nil if there
// is none. One mistake shows in all layers that are built alike, and in parts of one component: these are another
// fault only where another cause is proven.
func (r *Report) second() *Second {
	d := r.FirstDivergence
	if all := r.Findings(); r.Kind == KindPath && len(all) > 1 {
		f := all[1]
		return &Second{Layer: f.First.Layer, Text: f.String() + "; first in " + strings.TrimPrefix(f.First.At(), ", ")}
	}
	if !r.placed() || r.Kind != "local" && r.Kind != "between" {
		return nil // the other kinds concern the whole run
	}
	layers := slices.Clone(r.Frontier)
	for _, c := range r.Causes {
		layers = append(layers, c.Layer)
	}
	for _, layer := range layers {
		i := slices.IndexFunc(r.Causes, func(c Cause) bool { return c.Layer == layer && c.Proven })
		another := i >= 0 && r.Causes[i].ID != r.Causes[0].ID
		unlike := i < 0 && slices.Contains(r.Frontier, layer) && label.Kind(layer) != label.Kind(d.Layer) &&
			label.Last(layer) != label.Last(d.Layer) && ComponentOf(layer) != ComponentOf(d.Layer)
		near := label.Within(layer, d.Layer) || label.Inside(d.Layer, layer) || layer == d.Before || layer == d.After
		inherited := r.rows(func(l *Layer) bool { return l.Layer == layer && !l.IsInput() && l.inherits() })
		if near || len(inherited) > 0 || !another && !unlike {
			continue
		}
		s := &Second{Layer: layer}
		if another {
			s.Cause = r.Causes[i].brief()
		}
		for _, e := range d.Evidence {
			if text, ok := strings.CutPrefix(e, AlsoWrong(layer)); ok {
				s.Text = text
			}
		}
		return s
	}
	return nil
}

// JSON returns the brief as one line of JSON, at most 2,048 bytes with its line break.
func (b *Brief) JSON() []byte {
	return fit(func(n int) []byte {
		out := shortened(b, n)
		if out.Next = b.Next; b.Next != nil && n == leastText { // a command that is cut is none
			out.Next, out.WhyNext = nil, tooLong
		}
		return encoded(out)
	})
}

const tooLong = "the next command is too long to stand here"

func encoded(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings and numbers can be written
	}
	return out.Bytes()
}

// Text returns the report in a few lines, at most 2,048 bytes. No line is broken: the command can be copied.
func (b *Brief) Text() []byte {
	return fit(func(n int) []byte {
		d := b.report.Document(View{Short: true, File: b.file})
		d.Fixture, d.Title = middle(d.Fixture, max(2*n, leastName)), middle(d.Title, max(2*n, leastName))
		for i := range d.Sections {
			d.Sections[i].shorten(n)
		}
		var out bytes.Buffer
		_ = d.Text(&out, TextOptions{Width: math.MaxInt32}) // a buffer takes everything
		return out.Bytes()
	})
}

func (d *composer) another() {
	s := d.r.second()
	if s == nil {
		return
	}
	out := Section{Heading: "Second fault", Lines: []Line{{Code: s.Layer, Text: s.Text}}}
	if c := s.Cause; c != nil {
		out.Lines = append(out.Lines, Line{Lead: Cause{Proven: c.Proven}.word(), Code: c.ID, Text: c.Text + "; see " + c.Doc})
	}
	d.add(out, len(out.Lines))
}

// shorten leaves the first lines of a section, each of at most n bytes.
func (s *Section) shorten(n int) {
	if most := max(n/leastName, 2); len(s.Lines) > most+1 {
		s.More += len(s.Lines) - most
		s.Lines = s.Lines[:most]
	}
	s.Heading = middle(s.Heading, leastName)
	s.Lines = slices.Clone(s.Lines)
	for i := range s.Lines {
		l := &s.Lines[i]
		switch {
		case l.Paste && n == leastText:
			*l = Line{Lead: l.Lead, Text: tooLong}
		case !l.Paste:
			l.Text = middle(strings.TrimSpace(Clean(l.Text)), n)
		}
		l.Code = middle(Clean(l.Code), max(2*n, leastName))
	}
}

// fit returns the longest form that a brief may take: what a string or a list may take is halved until it does.
func fit(write func(n int) []byte) (out []byte) {
	for n := maxBrief; n >= leastText; n /= 2 {
		if out = write(n); len(out) <= maxBrief {
			break
		}
	}
	return out
}

// middle keeps both ends of a text that costs at most n, and says how much is between them.
func middle(s string, n int) string {
	if quotedLen(s) <= n {
		return s
	}
	r := []rune(s)
	half := len(r) / 2
	for quotedLen(string(r[:half])+string(r[len(r)-half:])) > n-12 {
		half = half * 9 / 10
	}
	return fmt.Sprintf("%s…+%d…%s", string(r[:half]), len(r)-2*half, string(r[len(r)-half:]))
}

// shortened is a copy in which all strings are clean, and each, and each list of them, is cut to n bytes of JSON; the
// verdict and what is as short as most names stay whole.
func shortened[T any](of T, n int) T { return shorten(reflect.ValueOf(of), n).Interface().(T) }

func shorten(v reflect.Value, n int) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch out.Set(v); {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(shorten(v.Elem(), n))
	case v.Kind() == reflect.Struct:
		for _, f := range out.Fields() {
			if f.CanSet() {
				f.Set(shorten(f, n))
			}
		}
	case v.Kind() == reflect.String && v.Type() != reflect.TypeFor[Verdict]():
		out.SetString(middle(Clean(v.String()), max(n, leastName)))
	case v.Kind() == reflect.Slice && v.Len() > 0:
		list := []string{}
		for i := range v.Len() {
			s := Clean(v.Index(i).String())
			if n -= quotedLen(s); n < 0 {
				list = append(list, fmt.Sprintf("… and %d", v.Len()-i))
				break
			}
			list = append(list, s)
		}
		out.Set(reflect.ValueOf(list))
	}
	return out
}
