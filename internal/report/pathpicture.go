package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// PathPicture is what a picture of path × depth shows: a row for each run, one pass first, whose
// columns are layers in the reference's order, or several neighbours where there are many.
type PathPicture struct {
	Columns []string // the first layer of each
	Worst   float64  // the largest finite error, in units of the limit
	Rows    []PathRow
}

// PathRow is one run in a picture.
type PathRow struct {
	Name  string // "one pass", "decode:8", with the case where a path has several
	Cells []PathCell
	First int    // the column of the first divergence, −1 for none
	Text  string // what the row shows, in words
}

// PathCell is the worst layer of a column.
type PathCell struct {
	Layer string
	Error float64 // in units of the limit; NaN if no layer of the column was compared
}

// Beyond reports whether an error is more than its limit.
func (c PathCell) Beyond() bool { return c.Error > 1 }

// NewPathPicture makes the picture of a report; nil if it has no run along an execution path.
func NewPathPicture(r *Report) *PathPicture {
	d := r.PathDepth
	if d == nil || len(d.Layers) == 0 || len(r.Paths) == 0 {
		return nil
	}
	p := &PathPicture{}
	each := (len(d.Layers) + maxBins - 1) / maxBins
	for i := 0; i < len(d.Layers); i += each {
		p.Columns = append(p.Columns, d.Layers[i])
	}
	runs := slices.Clone(d.Runs)
	slices.SortStableFunc(runs, func(a, b PathError) int { return b.rank() - a.rank() })
	for _, run := range runs {
		row := PathRow{Name: Clean(run.Path), First: -1}
		if run.Path == OnePass {
			row.Name = "one pass"
		} else if n := len(slices.DeleteFunc(slices.Clone(runs), func(o PathError) bool { return o.Path != run.Path })); n > 1 {
			row.Name += " " + Clean(run.Case)
		}
		for i := range p.Columns {
			c := PathCell{Error: math.NaN()}
			for k := i * each; k < min((i+1)*each, len(d.Layers), len(run.Errors)); k++ {
				if e := float64(run.Errors[k]); !math.IsNaN(e) && !(e <= c.Error) {
					c = PathCell{d.Layers[k], e}
				}
			}
			if !math.IsInf(c.Error, 1) && c.Error > p.Worst {
				p.Worst = c.Error
			}
			row.Cells = append(row.Cells, c)
		}
		i := slices.IndexFunc(r.Paths, func(p Path) bool { return p.Path == run.Path && p.Case == run.Case })
		if i >= 0 && r.Paths[i].First != nil {
			row.First = firstOf(d, &run, r.Paths[i].First.Layer) / each
			row.Text = "first divergence " + r.Paths[i].First.String() + "; "
		}
		row.Text += run.text(d.Layers)
		p.Rows = append(p.Rows, row)
	}
	return p
}

func (e *PathError) rank() int {
	if e.Path == OnePass {
		return 1
	}
	return 0
}

// firstOf is the index of the layer of a first divergence: of a container whose code is wrong, the
// first layer in it that shows it.
func firstOf(d *PathDepth, run *PathError, layer string) int {
	for i, e := range run.Errors[:min(len(run.Errors), len(d.Layers))] {
		if label.Within(d.Layers[i], layer) && e > 1 {
			return i
		}
	}
	return max(slices.Index(d.Layers, layer), 0)
}

// text says how many layers are beyond the limit, and which is the worst.
func (e *PathError) text(layers []string) string {
	compared, beyond, worst := 0, 0, -1
	for i, x := range e.Errors[:min(len(e.Errors), len(layers))] {
		if math.IsNaN(float64(x)) {
			continue
		}
		compared++
		if x > 1 {
			beyond++
		}
		if worst < 0 || x > e.Errors[worst] {
			worst = i
		}
	}
	switch {
	case compared == 0:
		return "nothing was compared"
	case beyond == 0:
		return fmt.Sprintf("all %s within the limit, at most %s of it, at %s", count(compared, "layer"), num(e.Errors[worst]), Clean(layers[worst]))
	}
	return fmt.Sprintf("%d of %s beyond the limit, up to %s times it, at %s", beyond, count(compared, "layer"), num(e.Errors[worst]), Clean(layers[worst]))
}
