package report_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/report"
)

func TestNum(t *testing.T) {
	for _, c := range []struct {
		value        float64
		want, reason string
	}{
		{0, "0", "plain"},
		{1, "1", "plain"},
		{0.99812, "0.998", "three digits"},
		{0.0201, "0.0201", "no exponent above 1e-3"},
		{1e-4, "1e-4", "as people write it"},
		{1.4321e-6, "1.43e-6", "no leading zero in the exponent"},
		{-5.5e-10, "-5.5e-10", "no trailing zeros"},
		{1e-10, "1e-10", "the exponent's own zero stays"},
		{123456, "1.23e5", "no plus sign"},
		{9.9999e-4, "1e-3", "rounded up"},
		{math.NaN(), "NaN", "shown as it is"},
		{math.Inf(1), "inf", "shown as it is"},
		{math.Inf(-1), "-inf", "shown as it is"},
	} {
		assert.Equal(t, c.want, report.Num(report.Float(c.value)), "%v: %s", c.value, c.reason)
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		n, all       int
		want, reason string
	}{
		{0, 448, "0", "none"},
		{1, 1000000, "<0.1 %", "one is never none"},
		{420, 448, "93.8 %", "rounded"},
		{999999, 1000000, "99.9 %", "not quite all is never all"},
		{448, 448, "100 %", "all"},
		{0, 0, "0", "an empty tensor"},
	} {
		assert.Equal(t, c.want, report.Percent(c.n, c.all), c.reason)
	}
}

func TestSentence(t *testing.T) {
	for _, c := range []struct{ clause, want, reason string }{
		{"the code of a.b computes something else", "The code of a.b computes something else.", "a clause"},
		{"model.layers.3 gets the right inputs", "model.layers.3 gets the right inputs.", "names stay as they are"},
		{"embed gets the right inputs", "embed gets the right inputs.", "also names without a dot"},
		{"embed: gets the right inputs", "embed: gets the right inputs.", "with punctuation behind"},
		{"rope_theta is 1e6", "rope_theta is 1e6.", "a key of a config"},
		{"3 rows differ", "3 rows differ.", "a number"},
		{"érable", "Érable.", "not only ASCII"},
		{"Done. Or not?", "Done. Or not?", "a sentence already"},
		{"", "", "nothing to say"},
	} {
		assert.Equal(t, c.want, report.Sentence(c.clause, "embed", ""), c.reason)
	}
}
