package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

// A log that shows the digits of every value is judged as a tensor is: a value near zero is noise
// to the last digit.
func TestPrintedInFull(t *testing.T) {
	values := []float32{1, -2, 1e-6, 3}
	for _, tt := range []struct {
		at     int
		add    float32
		pass   bool
		reason string
	}{
		{2, 1e-8, true, "1 % of a value that is nothing beside the others"},
		{0, 1e-3, false, "far beyond float32's noise"},
	} {
		golden := run("torch", port{"m.a-output", toy.Of(t, values, 1, 4)})
		changed := append([]float32(nil), values...)
		changed[tt.at] += tt.add
		actual := run("max", port{"m.a-output", toy.Of(t, changed, 1, 4)})
		actual.Entries[0].Printed = &dump.Printed{Known: []int{0, 1, 2, 3}, Decimals: 9, Relative: true}
		p := find(t, compareRuns(t, golden, actual), "m.a-output")
		assert.Equal(t, tt.pass, p.Base.Pass, tt.reason)
	}
}

// A log that shows some values, to four decimals, tells that something is wrong, and never that all is right.
func TestShortenedLog(t *testing.T) {
	golden := run("torch", port{"m.a-output", toy.Of(t, []float32{1, -2, 5, 3}, 4)}, port{"m.b-output", toy.Of(t, []float32{1, 2}, 2)})
	for _, tt := range []struct {
		shown   []float32
		verdict report.Verdict
		note    string
		reason  string
	}{
		{[]float32{1.00004, -2, 0, 3}, report.Pass, "a log shows 3 of 4 values: they agree, which proves nothing about the rest", "what the decimals hide"},
		{[]float32{1.0002, -2, 0, 3}, report.Fail, "", "more than they hide"},
	} {
		actual := run("max", port{"m.a-output", toy.Of(t, tt.shown, 4)}, port{"m.b-output", toy.Of(t, []float32{1, 2}, 2)})
		actual.Entries[0].Printed = &dump.Printed{Known: []int{0, 1, 3}, Decimals: 4}
		r := compareRuns(t, golden, actual).Report("toy", true)
		assert.Equal(t, tt.verdict, r.Verdict, tt.reason)
		l := row(t, r, "m.a-output")
		assert.Equal(t, tt.note != "", l.Status == report.StatusIgnored, tt.reason)
		assert.Contains(t, l.Note, tt.note, tt.reason)
	}
}
