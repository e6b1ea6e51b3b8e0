package export

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

// paths is the picture of execution paths × depth: a row for each run, one pass first, whose columns are layers in
// the reference's order, or several neighbours where there are many.
type paths struct {
	Columns []string  `json:"columns"` // the first layer of each
	Worst   float64   `json:"worst"`   // finite error, in units of the limit
	Rows    []pathRow `json:"rows"`
}

// pathRow is a run in it.
type pathRow struct {
	Name   string         `json:"n"`           // "one pass", "decode:8", with the case where a path has several
	Errors []report.Float `json:"e"`           // by column, in units of the limit; NaN if no layer of it was compared
	Layers []string       `json:"l,omitempty"` // the worst of each column, where columns are several layers
	First  int            `json:"f"`           // the column of the first divergence, −1 for none
	Text   string         `json:"t"`           // what the row shows, in words
}

func pathsOf(r *report.Report) *paths {
	d := r.PathDepth
	if d == nil || len(d.Layers) == 0 || len(r.Paths) == 0 {
		return nil
	}
	out := &paths{}
	each := (len(d.Layers) + maxColumns - 1) / maxColumns
	for column := range slices.Chunk(d.Layers, each) {
		out.Columns = append(out.Columns, text(column[0]))
	}
	runs := slices.Clone(d.Runs)
	slices.SortStableFunc(runs, func(a, b report.PathError) int { return rank(a) - rank(b) })
	for _, run := range runs[:min(len(runs), maxPaths)] {
		row := pathRow{Name: text(run.Path), First: -1, Text: run.Text(d.Layers)}
		if run.Path == report.OnePass {
			row.Name = "one pass"
		} else if slices.ContainsFunc(runs, func(o report.PathError) bool { return o.Path == run.Path && o.Case != run.Case }) {
			row.Name = text(run.Path + " " + run.Case)
		}
		errors := run.Errors[:min(len(run.Errors), len(d.Layers))]
		for i := range out.Columns {
			worst, at := math.NaN(), ""
			for k := i * each; k < min((i+1)*each, len(errors)); k++ {
				if e := float64(errors[k]); !math.IsNaN(e) && !(e <= worst) {
					worst, at = e, text(d.Layers[k])
				}
			}
			if !math.IsInf(worst, 1) && worst > out.Worst {
				out.Worst = worst
			}
			row.Errors = append(row.Errors, report.Float(worst))
			if each > 1 {
				row.Layers = append(row.Layers, at)
			}
		}
		i := slices.IndexFunc(r.Paths, func(p report.Path) bool { return p.Path == run.Path && p.Case == run.Case })
		if i >= 0 && r.Paths[i].First != nil {
			row.First = firstOf(d.Layers, errors, r.Paths[i].First.Layer) / each
			row.Text = "first divergence " + r.Paths[i].First.String() + "; " + row.Text
		}
		row.Text, row.Errors = text(row.Text), rounded(row.Errors...)
		out.Rows = append(out.Rows, row)
	}
	return out
}

func rank(run report.PathError) int {
	if run.Path == report.OnePass {
		return 0
	}
	return 1
}

// firstOf is the index of the layer of a first divergence: of a container whose code is wrong, the
// first layer in it that shows it.
func firstOf(layers []string, errors []report.Float, layer string) int {
	for i, e := range errors {
		if label.Within(layers[i], layer) && e > 1 {
			return i
		}
	}
	return max(slices.Index(layers, layer), 0)
}
