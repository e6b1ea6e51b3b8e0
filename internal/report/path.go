package report

import (
	"fmt"
	"slices"
	"strings"
)

// Row is a row of a run along an execution path; all numbers count from 0.
type Row struct {
	Path     string `json:"path"`     // of the run, "chunked:4"
	Pass     int    `json:"pass"`     // the forward pass
	Sequence int    `json:"sequence"` // index in token_ids of the candidate
	Position int    `json:"position"` // of the token in its sequence
}

// Path is a run along an execution path.
type Path struct {
	Case       string     `json:"case"`
	Path       string     `json:"path"`
	Passes     int        `json:"passes"`     // forward passes
	Rows       int        `json:"rows"`       // tokens that were fed, in all of them
	Matches    *Agreement `json:"matches"`    // with the golden
	OnePass    *Agreement `json:"one_pass"`   // the candidate's own one pass with the golden; null if it was not given
	Consistent *Agreement `json:"consistent"` // with the candidate's own one pass; null if it was not given
	Repeats    *Agreement `json:"repeats"`    // of repeat: later runs with the first; null for other paths
	First      *Place     `json:"first"`      // where it is wrong first; null where it is not, or not it alone
	Cause      string     `json:"cause"`      // the id of the proven cause there; empty if none is
}

// Place is the first place at which a run along an execution path is wrong and one pass is not.
type Place struct {
	Layer string `json:"layer"`
	Port  string `json:"port"`
	Step  string `json:"step"`
	Row
}

// Agreement says how two runs agree.
type Agreement struct {
	Holds     bool   `json:"holds"`
	BitForBit bool   `json:"bit_for_bit"`
	Outputs   int    `json:"outputs"` // that were compared
	Layer     string `json:"layer"`   // of the worst row
	Port      string `json:"port"`
	Step      string `json:"step"`
	RowRelL2  Float  `json:"row_rel_l2"` // of the worst row
}

// At is ", pass 1, sequence 0, position 7", or "" for a run of one pass.
func (r *Row) At() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(", pass %d, sequence %d, position %d", r.Pass, r.Sequence, r.Position)
}

// Ran is "5 forward passes, 14 rows".
func (p *Path) Ran() string {
	return count(p.Passes, "forward pass") + ", " + count(p.Rows, "row")
}

// OnePass says how the candidate's own one pass agrees with the golden: in one line, unless it is
// judged by goldens of its own beside some path.
func (r *Report) OnePass() (lines []string) {
	for _, p := range r.Paths {
		if p.OnePass == nil {
			continue
		}
		if line := "one pass matches the golden: " + p.OnePass.String(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// String is "model.layers.0, pass 1, sequence 0, position 7".
func (p *Place) String() string { return Clean(p.Layer) + p.At() }

// Finding is one fault, as far as its place and its proven cause tell, that several execution paths
// show, or a single one.
type Finding struct {
	Paths []string // as "decode:8", in the order of the report
	Cause string   // the id of the proven cause; empty if none is
	First *Place   // of the first of the paths
}

// Findings lists the faults of the execution paths, that of the first divergence first. A path that
// is wrong in one pass too has none.
func (r *Report) Findings() (all []Finding) {
	for i := range r.Paths {
		p := &r.Paths[i]
		if p.First == nil {
			continue
		}
		k := slices.IndexFunc(all, func(f Finding) bool { return f.First.Layer == p.First.Layer && f.Cause == p.Cause })
		if k < 0 {
			k = len(all)
			all = append(all, Finding{Cause: p.Cause, First: p.First})
		}
		if !slices.Contains(all[k].Paths, p.Path) {
			all[k].Paths = append(all[k].Paths, p.Path)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return r.verdictRank(a) - r.verdictRank(b) })
	return all
}

// verdictRank is 0 for the finding that the verdict is about, and 1 for others.
func (r *Report) verdictRank(f Finding) int {
	if d := r.FirstDivergence; d != nil && d.Row != nil && d.Layer == f.First.Layer && slices.Contains(f.Paths, d.Path) {
		return 0
	}
	return 1
}

// Names is "decode:8, chunked:4 and batch".
func (f *Finding) Names() string {
	names := make([]string, len(f.Paths))
	for i, p := range f.Paths {
		names[i] = Clean(p)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return names[0]
}

// String is "decode:8 and chunked:4 fail alike at model.layers.0: state/position", or of a single
// path "batch fails at …".
func (f *Finding) String() string {
	text := f.Names() + " fails at "
	if len(f.Paths) > 1 {
		text = f.Names() + " fail alike at "
	}
	text += Clean(f.First.Layer)
	if f.Cause == "" {
		return text + ", no cause is proven"
	}
	return text + ": " + Clean(f.Cause)
}

// findings are the faults in a line each, where the lines of the paths do not say it.
func (r *Report) findings() (lines []string) {
	all := r.Findings()
	for i := range all {
		if len(all) > 1 || len(all[i].Paths) > 1 {
			lines = append(lines, all[i].String())
		}
	}
	return lines
}

// String is "34 outputs, bit for bit", or how far the worst row is off and where; "" where nothing was asked.
func (a *Agreement) String() string {
	if a == nil {
		return ""
	}
	text := count(a.Outputs, "output")
	switch {
	case a.Outputs == 0:
		return "nothing was compared"
	case a.BitForBit:
		return text + ", bit for bit"
	}
	text += fmt.Sprintf(", worst row rel. L2 %s at %s %s, pass %s", num(a.RowRelL2), Clean(a.Layer), Clean(a.Port), Clean(a.Step))
	if !a.Holds {
		return "no, " + text
	}
	return text
}

// short says whether two runs agree, and how far the worst row is off where not.
func (a *Agreement) short() string {
	switch {
	case a == nil || a.Outputs == 0:
		return "nothing was compared"
	case a.Holds:
		return "yes"
	}
	return "no, worst row rel. L2 " + num(a.RowRelL2)
}

func judgedPaths(r *Report) (list []Judged) {
	for i := range r.Paths {
		p := &r.Paths[i]
		j, judged, fails := Judged{Name: p.Path + " " + p.Case}, false, false
		for _, a := range []*Agreement{p.Matches, p.Repeats} {
			if a != nil {
				judged, fails, j.Count = true, fails || !a.Holds, j.Count+a.Outputs
			}
		}
		j.Status = statusOf(judged, fails)
		list = append(list, j)
	}
	return list
}

func pathsHeadline(r *Report) string {
	if d := r.FirstDivergence; r.Verdict == Fail && d != nil && d.Row != nil {
		return "right in one pass, wrong along " + r.along() + ": " + r.first() + "; " + r.compared()
	}
	return tensorsHeadline(r)
}

// paths says what came of each execution path, and which of them show one fault.
func (d *composer) paths() {
	r := d.r
	if len(r.Paths) == 0 {
		return
	}
	s := Section{ID: sectionPaths, Heading: "Execution paths", Lines: lines("", append(r.OnePass(), r.findings()...)...)}
	if d.Tested { // the tests told where
		s.Lines = nil
		for i := range r.Paths {
			p := &r.Paths[i]
			line := Line{Lead: p.Path, Text: p.Ran() + "; matches the golden: " + p.Matches.short()}
			if p.Repeats != nil {
				line.Text += "; equal to its first run: " + p.Repeats.short()
			}
			s.Lines = append(s.Lines, line)
		}
		d.add(s, maxPaths)
		return
	}
	s.Table = &Table{Head: []string{"path", "ran", "matches the golden", "consistent with one pass", "equal to its first run", "first divergence"}}
	n := d.shown(len(r.Paths), maxPaths)
	for i := range r.Paths[:n] {
		p := &r.Paths[i]
		row := []string{p.Path, p.Ran(), p.Matches.String(), p.Consistent.String(), p.Repeats.String(), ""}
		if p.First != nil {
			row[5] = p.First.String()
		}
		s.Table.Rows = append(s.Table.Rows, row)
	}
	s.More = len(r.Paths) - n
	d.Sections = append(d.Sections, s)
}

// path: the execution path is wrong, and not the model.
func (n next) path() (commands, string) {
	if c, why := n.proven(); why != "" {
		return c, why
	}
	return n.redo("the model is right in one pass: look at what the path adds there, the cache, positions, slots, masks or padding",
		"; this judges it again")
}
