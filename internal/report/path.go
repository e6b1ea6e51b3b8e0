package report

import (
	"fmt"
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

// Lines say what ran, and then how it agrees with each run that it was compared with: "matches the
// golden: 34 outputs, worst row rel. L2 3e-7 at …".
func (p *Path) Lines() []string {
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
