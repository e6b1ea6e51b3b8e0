// Package docs has the page of causes, a part of which the command shows.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed causes.md
var causes string

// Part is a column of a cause's row: what one sees, the mistake, the fix.
type Part struct{ Name, Text string }

// Cause returns what docs/causes.md says about a cause, by its id, or nil if it has no such row.
func Cause(id string) []Part {
	var names []string
	for line := range strings.Lines(causes) {
		cells, ok := row(line)
		switch {
		case !ok:
			names = nil
		case cells == nil: // the line below the names
		case names == nil:
			names = cells
		case strings.Contains(cells[0], "`"+id+"`"):
			var out []Part
			for i, text := range cells[:min(len(cells), len(names))] {
				if text != "" {
					out = append(out, Part{names[i], text})
				}
			}
			return out
		}
	}
	return nil
}

// Causes lists the ids of all rows.
func Causes() []string {
	var out []string
	for line := range strings.Lines(causes) {
		if cells, _ := row(line); cells != nil {
			for i, id := range strings.Split(cells[0], "`") {
				if i%2 == 1 && strings.Contains(id, "/") {
					out = append(out, id)
				}
			}
		}
	}
	return out
}

// row splits a row of a table of Markdown; the line below the names has no cells.
func row(line string) (cells []string, ok bool) {
	line, ok = strings.CutPrefix(strings.TrimSpace(line), "| ")
	if !ok {
		return nil, strings.HasPrefix(line, "|-")
	}
	for _, c := range strings.Split(strings.TrimSuffix(line, "|"), " | ") {
		cells = append(cells, strings.ReplaceAll(strings.TrimSpace(c), `\|`, "|"))
	}
	return cells, true
}
