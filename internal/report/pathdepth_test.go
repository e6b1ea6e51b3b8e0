package report_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
)

// depthRows are outputs of n layers, whose names begin with a prefix.
func depthRows(n int, prefix string) (rows []report.Layer) {
	for i := range n {
		rows = append(rows, report.Layer{Layer: fmt.Sprint(prefix, i), Port: "output", Kind: "output", Status: report.StatusPass, Case: "a", Step: "0",
			Standard: &report.Metrics{RelL2: 1e-5, RowRelL2: 2e-5, N: 4}, Tolerance: &report.Tolerance{Criteria: compare.Criteria{compare.RowRelL2: 1e-4}}})
	}
	return rows
}

// Layers that only a later run has stand after those that they follow there.
func TestPathDepthOrder(t *testing.T) {
	var d report.PathDepth
	d.Add("one", "a", depthRows(3, "l"))
	d.Add("two", "a", append(append(depthRows(2, "l"), depthRows(2, "m")...), depthRows(3, "l")[2]))
	assert.Equal(t, []string{"l0", "l1", "m0", "m1", "l2"}, d.Layers)
	for _, run := range d.Runs {
		assert.Len(t, run.Errors, 5)
	}
}

func BenchmarkPathDepthAdd(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			runs := [][]report.Layer{depthRows(n, "l"), depthRows(n, "m")}
			for b.Loop() {
				var d report.PathDepth
				for i, rows := range runs {
					d.Add(fmt.Sprint(i), "a", rows)
				}
			}
		})
	}
}
