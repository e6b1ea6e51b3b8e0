package report

import (
	"math"
	"slices"
)

// Grid is what runs along execution paths compute at each depth of a model.
type Grid struct {
	Layers []string // in the reference's order
	Rows   []GridRow
}

// GridRow is one run.
type GridRow struct {
	Name  string // "chunked:4", with the case where there are several
	Cells []GridCell
	First int // column of the layer that is wrong first; −1 for none
}

// GridCell is a layer of a run.
type GridCell struct {
	Compared bool
	Holds    bool
	Error    float64 // relative L2 of the worst row
}

// PathGrid puts a report's execution paths beside each other, the candidate's one pass first; nil
// where there are none, or an older report does not have their depth.
func PathGrid(r *Report) *Grid {
	g := &Grid{}
	add := func(name string, depth []LayerError, first *PathFirst) {
		row := GridRow{Name: name, First: -1, Cells: make([]GridCell, len(g.Layers))}
		for _, e := range depth {
			at := slices.Index(g.Layers, e.Layer)
			if at < 0 {
				at = len(g.Layers)
				g.Layers, row.Cells = append(g.Layers, e.Layer), append(row.Cells, GridCell{})
			}
			row.Cells[at] = GridCell{true, e.Holds, float64(e.RowRelL2)}
		}
		if first != nil {
			row.First = slices.Index(g.Layers, first.Layer)
		}
		g.Rows = append(g.Rows, row)
	}
	cases := map[string]bool{}
	for _, p := range r.Paths {
		cases[p.Case] = true
	}
	for _, p := range r.Paths {
		if p.OnePass != nil && p.OnePass.Depth != nil {
			add("one-pass", p.OnePass.Depth, nil)
			break
		}
	}
	for _, p := range r.Paths {
		if p.Matches == nil || p.Matches.Depth == nil {
			continue
		}
		name := p.Path
		if len(cases) > 1 && p.Case != "" {
			name += " " + p.Case
		}
		add(Clean(name), p.Matches.Depth, p.First)
	}
	if len(g.Layers) == 0 {
		return nil
	}
	for i := range g.Rows {
		g.Rows[i].Cells = append(g.Rows[i].Cells, make([]GridCell, len(g.Layers)-len(g.Rows[i].Cells))...)
	}
	return g
}

// Narrow joins neighbouring columns until there are at most n: the cell is the worst of them, the
// name that of the first.
func (g *Grid) Narrow(n int) *Grid {
	every := (len(g.Layers) + n - 1) / n
	if every < 2 {
		return g
	}
	out := &Grid{}
	for i := 0; i < len(g.Layers); i += every {
		out.Layers = append(out.Layers, g.Layers[i])
	}
	for _, row := range g.Rows {
		made := GridRow{Name: row.Name, First: row.First}
		if row.First >= 0 {
			made.First = row.First / every
		}
		for i := 0; i < len(row.Cells); i += every {
			worst := GridCell{Holds: true}
			for _, c := range row.Cells[i:min(i+every, len(row.Cells))] {
				if c.Compared {
					worst = GridCell{true, worst.Holds && c.Holds, max(worst.Error, c.Error)}
				}
			}
			made.Cells = append(made.Cells, worst)
		}
		out.Rows = append(out.Rows, made)
	}
	return out
}

// Color is blue for what holds and orange to red for what does not, the darker the larger the error:
// red, green and blue.
func (c GridCell) Color() (r, g, b uint8) {
	low, high, light, dark := -9.0, -1.0, [3]float64{0xde, 0xeb, 0xf7}, [3]float64{0x42, 0x92, 0xc6}
	if !c.Holds {
		low, high, light, dark = -5, 0.3, [3]float64{0xf0, 0xa0, 0x30}, [3]float64{0x99, 0x10, 0x10}
	}
	share := 1.0
	if !math.IsNaN(c.Error) {
		share = min(max((math.Log10(max(c.Error, math.SmallestNonzeroFloat64))-low)/(high-low), 0), 1)
	}
	at := func(i int) uint8 { return uint8(math.Round(light[i] + share*(dark[i]-light[i]))) }
	return at(0), at(1), at(2)
}
