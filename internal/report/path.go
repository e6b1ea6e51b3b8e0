package report

import (
	"fmt"
	"slices"
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
	First      *PathFirst `json:"first"`      // where it is wrong first; null if it is not, or not alone
}

// PathFirst is the first divergence of a run along an execution path that is right in one pass.
type PathFirst struct {
	Layer string `json:"layer"`
	Port  string `json:"port"`
	*Row
	Cause  string `json:"cause"`  // id of the first cause; empty: none was found
	Proven bool   `json:"proven"` // the cause is
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

	// Depth has each layer with outputs that were compared, in the reference's order; null where only
	// the whole counts.
	Depth []LayerError `json:"depth,omitempty"`
}

// LayerError is the worst of a layer's outputs in all forward passes of a run.
type LayerError struct {
	Layer    string `json:"layer"`
	RowRelL2 Float  `json:"row_rel_l2"` // of the worst row; "Infinity" where a NaN or an infinity has no match
	Holds    bool   `json:"holds"`      // all of them are within their tolerances
}

// At is ", pass 1, sequence 0, position 7", or "" for a run of one pass.
func (r *Row) At() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(", pass %d, sequence %d, position %d", r.Pass, r.Sequence, r.Position)
}

// PathLines are the lines of each path of a report. A path that fails as an earlier one does says so.
func PathLines(r *Report) (lines [][]string) {
	for i := range r.Paths {
		p := r.Paths[i]
		if i > 0 {
			p.OnePass = nil // the same for all
		}
		out := p.lines()
		if f := p.First; f != nil && len(r.Paths) > 1 { // of one alone the headline says it
			as := slices.IndexFunc(r.Paths[:i], func(o Path) bool { return f.isLike(o.First) })
			text := "first wrong at " + f.String()
			if as >= 0 {
				text = fmt.Sprintf("fails as %s does, first at %s", Clean(r.Paths[as].Path), f)
			}
			out = append(out, text)
		}
		lines = append(lines, out)
	}
	return lines
}

// isLike reports whether two paths have one fault: the same layer, output and cause.
func (f *PathFirst) isLike(o *PathFirst) bool {
	return o != nil && o.Layer == f.Layer && o.Port == f.Port && o.Cause == f.Cause
}

// String is "model.layers.0.self_attn, pass 1, sequence 0, position 7: state/slot, proven".
func (f *PathFirst) String() string {
	text := Clean(f.Layer) + f.At()
	if f.Cause != "" {
		text += ": " + Clean(f.Cause)
		if f.Proven {
			text += ", proven"
		}
	}
	return text
}

// alike lists the paths of a report that fail as its verdict says, by name.
func (r *Report) alike() (names []string) {
	d := r.FirstDivergence
	for i := range r.Paths {
		f := r.Paths[i].First
		if f == nil || f.Layer != d.Layer || f.Port != d.Port {
			continue
		}
		if name := Clean(r.Paths[i].Path); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !slices.Contains(names, Clean(d.Path)) {
		names = append([]string{Clean(d.Path)}, names...)
	}
	return names
}

// lines say what ran, and then how it agrees with each run that it was compared with: "matches the
// golden: 34 outputs, worst row rel. L2 3e-7 at …".
func (p *Path) lines() []string {
	lines := []string{fmt.Sprintf("path %s: %s, %s", Clean(p.Path), several(p.Passes, "forward pass", "es"), several(p.Rows, "row", "s"))}
	for _, of := range []struct {
		what string
		*Agreement
	}{{"matches the golden", p.Matches}, {"one pass matches the golden", p.OnePass},
		{"consistent with one pass", p.Consistent}, {"equal to its first run", p.Repeats}} {
		if of.Agreement != nil {
			lines = append(lines, of.what+": "+of.Agreement.String())
		}
	}
	return lines
}

// String is "34 outputs, bit for bit", or how far the worst row is off and where.
func (a *Agreement) String() string {
	text := several(a.Outputs, "output", "s")
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

func several(n int, what, plural string) string {
	if n == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d %s%s", n, what, plural)
}
