package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
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

// String is "model.layers.0, pass 1, sequence 0, position 7".
func (p *Place) String() string { return Clean(p.Layer) + p.At() }

// String is "34 outputs, bit for bit", or how far the worst row is off and where.
func (a *Agreement) String() string {
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

// Finding is one fault, as far as place and proven cause tell, that one or several execution paths show.
type Finding struct {
	Paths []string // as "decode:8", in the order of the report
	Cause string   // the id of the proven cause; empty if none is
	First *Place   // of the first of the paths
}

// Findings lists the faults of the paths, the first divergence's first. A path that is wrong in one pass has none.
func (r *Report) Findings() (all []Finding) {
	for _, p := range r.Paths {
		if p.First == nil {
			continue
		}
		k := slices.IndexFunc(all, func(f Finding) bool { return f.First.Layer == p.First.Layer && f.Cause == p.Cause })
		if k < 0 {
			k, all = len(all), append(all, Finding{Cause: p.Cause, First: p.First})
		}
		if !slices.Contains(all[k].Paths, p.Path) {
			all[k].Paths = append(all[k].Paths, p.Path)
		}
	}
	if d := r.FirstDivergence; d != nil && d.Row != nil {
		first := func(f Finding) bool { return d.Layer == f.First.Layer && slices.Contains(f.Paths, d.Path) }
		if i := slices.IndexFunc(all, first); i > 0 {
			all = slices.Concat(all[i:i+1], all[:i], all[i+1:])
		}
	}
	return all
}

// Names is "decode:8, chunked:4 and batch".
func (f *Finding) Names() string {
	last := len(f.Paths) - 1
	return Clean(joined(" and ", strings.Join(f.Paths[:last], ", "), f.Paths[last]))
}

// String is "decode:8 and chunked:4 fail alike at model.layers.0: state/position", or "batch fails at …".
func (f *Finding) String() string {
	fails, cause := " fails at ", ", no cause is proven"
	if len(f.Paths) > 1 {
		fails = " fail alike at "
	}
	if f.Cause != "" {
		cause = ": " + Clean(f.Cause)
	}
	return f.Names() + fails + Clean(f.First.Layer) + cause
}

func judgedPaths(r *Report) (list []Judged) {
	for _, p := range r.Paths {
		j := Judged{Name: p.Path + " " + p.Case, Status: NotJudged}
		for _, a := range []*Agreement{p.Matches, p.Repeats} {
			if a != nil {
				j.Count, j.Status = j.Count+a.Outputs, statusOf(true, !a.Holds || j.Status.failing())
			}
		}
		list = append(list, j)
	}
	return list
}

func pathsHeadline(r *Report) string {
	d := r.FirstDivergence
	if r.Verdict != Fail || d == nil || d.Row == nil {
		return tensorsHeadline(r)
	}
	along := Clean(d.Path)
	if all := r.Findings(); len(all) > 0 && len(all[0].Paths) > 1 && slices.Contains(all[0].Paths, d.Path) {
		along = all[0].Names() + " alike"
	}
	return "right in one pass, wrong along " + along + ": " + r.first() + "; " + r.compared()
}

// paths says how the candidate's own one pass agrees with the golden, which execution paths show one fault, and what
// came of each; below failing tests, which told where, the last alone.
func (d *composer) paths() {
	s := Section{ID: sectionPaths, Heading: "Execution paths"}
	for _, p := range d.r.Paths {
		if p.OnePass == nil || d.Tested {
			continue
		}
		if line := (Line{Text: "one pass matches the golden: " + p.OnePass.String()}); !slices.Contains(s.Lines, line) {
			s.Lines = append(s.Lines, line)
		}
	}
	all := d.r.Findings()
	for _, f := range all {
		if !d.Tested && (len(all) > 1 || len(f.Paths) > 1) {
			s.Lines = append(s.Lines, Line{Text: f.String()})
		}
	}
	limit := maxRows + len(s.Lines)
	for _, p := range d.r.Paths {
		said := []string{count(p.Passes, "forward pass") + ", " + count(p.Rows, "row")}
		say := func(what string, a *Agreement) {
			if a == nil {
				return
			}
			how := a.String()
			if d.Tested {
				how, _, _ = strings.Cut(how, " at ")
			}
			said = append(said, what+": "+how)
		}
		say("matches the golden", p.Matches)
		say("equal to its first run", p.Repeats)
		if !d.Tested {
			say("consistent with one pass", p.Consistent)
			if p.First != nil {
				said = append(said, "first divergence "+p.First.String())
			}
		}
		s.Lines = append(s.Lines, Line{Lead: p.Path, Text: strings.Join(said, "; ")})
	}
	d.add(s, limit)
}

// path: the execution path is wrong, and not the model.
func (n next) path() (commands, string) {
	if n.isProven() {
		return n.proven()
	}
	return n.redo("the model is right in one pass: look at what the path adds there, the cache, positions, slots, masks or padding",
		"; this judges it again")
}

// OnePass is the path of the candidate's own run of one pass.
const OnePass = "one-pass"

// PathDepth is how far the runs along execution paths are off in each layer: a picture of path × depth shows it.
type PathDepth struct {
	Layers []string    `json:"layers"` // those with an output, as the runs have them: the one pass has all, in the reference's order
	Runs   []PathError `json:"runs"`   // the candidate's own one pass first, where it was given
}

// PathError is the error of one run along the depth.
type PathError struct {
	Path   string  `json:"path"` // "decode:8", or [OnePass]
	Case   string  `json:"case"`
	Errors []Float `json:"errors"` // by layer; NaN where the layer was not compared
}

// Add adds a run by its rows: a layer is off by its worst output in all passes, in units of the limit ([Layer.Units]).
func (d *PathDepth) Add(path, caseName string, rows []Layer) {
	var layers []string
	var errors []Float
	for i := range rows {
		if l := &rows[i]; !l.IsInput() && l.Kind != label.RoleComputed.String() {
			layers, errors = append(layers, l.Layer), append(errors, l.Units())
		}
	}
	d.add(path, caseName, layers, errors)
}

// Join adds the runs of another report, but for those that are there.
func (d *PathDepth) Join(other *PathDepth) {
	for _, run := range other.Runs {
		if !slices.ContainsFunc(d.Runs, func(r PathError) bool { return r.Path == run.Path && r.Case == run.Case }) {
			d.add(run.Path, run.Case, other.Layers, run.Errors)
		}
	}
}

func (d *PathDepth) add(path, caseName string, layers []string, errors []Float) {
	at := map[string]int{}
	for i, layer := range d.Layers {
		at[layer] = i
	}
	run := PathError{Path: path, Case: caseName, Errors: slices.Repeat([]Float{nan}, len(d.Layers))}
	for i, layer := range layers[:min(len(layers), len(errors))] {
		if math.IsNaN(float64(errors[i])) {
			continue
		}
		k, known := at[layer]
		if !known {
			k, d.Layers, run.Errors = len(d.Layers), append(d.Layers, layer), append(run.Errors, nan)
			at[layer] = k
		}
		if !(run.Errors[k] >= errors[i]) {
			run.Errors[k] = errors[i]
		}
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		r.Errors = append(r.Errors, slices.Repeat([]Float{nan}, len(d.Layers)-len(r.Errors))...)
	}
	d.Runs = append(d.Runs, run)
}

// Text says how many layers are beyond the limit, and which is the worst.
func (e *PathError) Text(layers []string) string {
	compared, beyond, worst := 0, 0, Float(-1)
	at := ""
	for i, x := range e.Errors[:min(len(e.Errors), len(layers))] {
		if x >= 0 { // else it was not compared
			compared++
		}
		if x > 1 {
			beyond++
		}
		if x > worst {
			worst, at = x, layers[i]
		}
	}
	if compared == 0 {
		return "nothing was compared"
	}
	return fmt.Sprintf("%d of %s beyond the limit, the worst is off by %s times it, at %s", beyond, count(compared, "layer"), num(worst), Clean(at))
}
