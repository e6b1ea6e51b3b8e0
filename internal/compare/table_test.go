package compare_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

func TestTable(t *testing.T) {
	seen := map[string]string{}
	for _, c := range compare.Table() {
		for what, name := range map[string]string{"key": c.Key, "JSON": c.JSON, "short": c.Short, "name": c.Name} {
			assert.NotEmpty(t, name, "%s: %s", c.Key, what)
			assert.Empty(t, seen[what+name], "%s: %s %q is another's, too", c.Key, what, name)
			seen[what+name] = c.Key
		}
		assert.NoError(t, c.Check(c.Example), "%s: the example is a limit", c.Key)
		assert.NoError(t, c.Check(c.Best), "%s: the strictest limit", c.Key)
		assert.Error(t, c.Check(c.Worst), "%s: what zeros would keep", c.Key)
		assert.Error(t, c.Check(math.Inf(1)), "%s: infinite", c.Key)
		assert.Error(t, c.Check(math.Inf(-1)), "%s: infinite", c.Key)
		assert.Error(t, c.Check(math.NaN()), "%s: no number", c.Key)
		if !c.Switch() {
			assert.Contains(t, c.Rule, c.Key, "the rule names its limit")
		}
		if !c.Counts && !c.Switch() {
			assert.Equal(t, c.Larger(), strings.Contains(c.Rule, "≥ "+c.Key), "%s: %s", c.Key, c.Rule)
			assert.Equal(t, !c.Larger(), strings.Contains(c.Rule, "≤ "+c.Key), "%s: %s", c.Key, c.Rule)
		}
	}
}

func TestLimits(t *testing.T) {
	const zeros = "that accepts zeros in place of the golden, "
	for _, row := range []struct {
		c      *compare.Criterion
		limit  float64
		want   string
		reason string
	}{
		{compare.Atol, 0, "", "exact"},
		{compare.Atol, -1e-9, "want a number from 0, below 1e+06, such as 1e-05", "no element can keep it"},
		{compare.Atol, 1e308, zeros + "want a number from 0, below 1e+06, such as 1e-05", "wider than any tensor"},
		{compare.Rtol, inf, zeros + "want a number from 0, below 1, such as 0.0001", "infinite"},
		{compare.Rtol, 1, zeros + "want a number from 0, below 1, such as 0.0001", "zeros are as far"},
		{compare.RelL2, 1, zeros + "want a number from 0, below 1, such as 0.0001", "zeros are as far"},
		{compare.RelL2, 0.999, "", "odd, but zeros fail"},
		{compare.RowRelL2, 2, zeros + "want a number from 0, below 1, such as 0.0001", "zeros are nearer"},
		{compare.MSE, nan, "want a number from 0, below 1e+12, such as 1e-08", "not a number"},
		{compare.MSE, 1e7, "", "a square may be larger"},
		{compare.KL, 16, zeros + "want a number from 0, below 16, such as 0.001", "of any vocabulary"},
		{compare.Noise, 1e6, zeros + "want a number from 0, below 1e+06, such as 3", "float32 has seven digits"},
		{compare.Cosine, 1, "", "the same direction"},
		{compare.Cosine, 0.1, "", "odd, but zeros fail"},
		{compare.Cosine, 0, zeros + "want a number above 0, up to 1, such as 0.9999", "zeros have that"},
		{compare.Cosine, -1, zeros + "want a number above 0, up to 1, such as 0.9999", "every pair has that"},
		{compare.Cosine, 1.01, "want a number above 0, up to 1, such as 0.9999", "no pair has that"},
		{compare.SNR, 0.1, "", "nearly as much noise as signal"},
		{compare.SNR, -3, zeros + "want a number above 0, such as 60", "noise beyond the signal"},
		{compare.SNR, inf, "want a number above 0, such as 60", "only equal tensors have that: atol 0"},
		{compare.TopK, 1.5, "want a whole number above 0, such as 5", "half an element"},
		{compare.TopK, 0, zeros + "want a whole number above 0, such as 5", "no element is compared"},
		{compare.EqualNaN, 0.5, "want 1, or no equal_nan at all", "a switch"},
	} {
		if err := row.c.Check(row.limit); row.want == "" {
			assert.NoError(t, err, row.reason)
		} else {
			assert.EqualError(t, err, row.want, row.reason)
		}
	}
}

// Recall decides all criteria that are judged by a report's metrics.
func TestRecall(t *testing.T) {
	g, a := of(t, []float64{4, 3, 2, 1}, 2, 2), of(t, []float64{4, 3, 2, 1.5}, 2, 2)
	r := tensors(t, g, a, compare.Tolerance{})
	for _, c := range compare.Table() {
		if c.Switch() {
			continue
		}
		_, open, err := compare.Criteria{c: c.Example}.Recall(r, compare.Tolerance{}, false)
		require.NoError(t, err)
		assert.Equal(t, !c.Recorded, slices.Contains(open, c.Key+" needs the tensors"), c.Key)
		assert.Equal(t, c.Recorded, c.Rejudges(), c.Key)
	}
	_, _, err := compare.Criteria{}.Recall(r, compare.Tolerance{}, false)
	assert.Error(t, err, "there are no criteria")
	wide := compare.Tolerance{Atol: 1, Rtol: 0.6}
	for _, tt := range []struct {
		counted      compare.Tolerance
		atol, rtol   float64
		exact        bool
		broken, open string
		reason       string
	}{
		{compare.Tolerance{}, 0, 0, false, "max |a−g| is 0.5: not within atol 0", "", "as it was counted"},
		{compare.Tolerance{}, 0, 0, true, "1 of 4 elements (25 %) differ, and integers are compared exactly; the first is element 3", "", "of integers"},
		{compare.Tolerance{}, 0.25, 0.2, false, "not within", "", "the largest is outside"},
		{compare.Tolerance{}, 0.25, 0.25, false, "", "the metrics do not tell", "the largest is at the limit"},
		{compare.Tolerance{}, 0.5, 0, false, "", "the metrics do not tell", "as near as metrics are written"},
		{compare.Tolerance{}, 0.51, 0, false, "", "", "wider than the largest"},
		{compare.Tolerance{}, 0, 0.51, false, "", "the metrics do not tell", "wider than the largest relative one, but of nearly 0"},
		{compare.Tolerance{}, 1e-10, 0.51, false, "", "", "of these, too"},
		{compare.Tolerance{Atol: 0.25, Rtol: 0.3}, 0.25, 0.3, false, "", "", "as it was counted: none"},
		{wide, 0.25, 0.7, false, "", "", "by the relative one"},
		{wide, 0.5, 0.01, false, "", "the metrics do not tell", "narrower than it was counted"},
	} {
		broken, open, err := compare.Criteria{compare.Atol: tt.atol, compare.Rtol: tt.rtol}.Recall(tensors(t, g, a, tt.counted), tt.counted, tt.exact)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, []bool{tt.broken != "", tt.open != ""}, []bool{len(broken) == 1, len(open) == 1}, tt.reason)
		assert.Contains(t, fmt.Sprint(broken), tt.broken, tt.reason)
		assert.Contains(t, fmt.Sprint(open), tt.open, tt.reason)
	}
}

var update = flag.Bool("update", false, "renew the expected files")

// sameTable compares the table of a document that begins with the line head with want, or with
// -update writes it.
func sameTable(t *testing.T, path, head, want string) {
	t.Helper()
	doc, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(doc), head+"\n")
	require.True(t, found, "%s has no table %s", path, head)
	got, after, _ := strings.Cut(rest, "\n\n")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+head+"\n"+want+"\n\n"+after), 0o644))
		return
	}
	assert.Equal(t, want, got, "go test ./internal/compare -update renews %s", path)
}

func TestDocumentedCriteria(t *testing.T) {
	rows := []string{"|---|---|---|---|"}
	for _, c := range compare.Table() {
		anew := map[bool]string{true: " yes "}[c.Rejudges()]
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |%s|", c.Key, strings.ReplaceAll(c.Rule, "|", `\|`), c.Unit, anew))
	}
	sameTable(t, "../../docs/formulas.md", "| limit | asks for | unit | `parity report` |", strings.Join(rows, "\n"))

	doc, err := os.ReadFile("../../docs/report.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(doc), "**Judging again.**")
	require.True(t, found)
	anew, _, _ := strings.Cut(rest, "**Baseline.**")
	for _, c := range compare.Table() {
		if !c.Switch() {
			assert.Contains(t, anew, "`"+c.Key+"`", "docs/report.md says how it is judged again, or that it needs the tensors")
		}
	}
}

func TestDocumentedDefaults(t *testing.T) {
	number := func(v float64) string {
		if v >= 0.1 {
			return fmt.Sprintf("%g", v)
		}
		return strings.Replace(fmt.Sprintf("%.0e", v), "e-0", "e-", 1)
	}
	source, err := os.ReadFile("limits.go")
	require.NoError(t, err)
	whole, row := "| tensor |", "| worst row |"
	for _, d := range []tensor.DType{tensor.F64, tensor.F32, tensor.F16, tensor.BF16, tensor.F8E4M3FN, tensor.F8E5M2} {
		l := compare.Default(d, d).Limits()
		whole, row = whole+" "+number(l.RelL2)+" |", row+" "+number(l.RowRelL2)+" |"
		assert.Regexp(t, `(?m)^//\t\S+ +`+number(l.RelL2)+" +"+number(l.RowRelL2)+`\b`,
			string(source), "%s in the doc comment of Default", d)
	}
	for d, as := range map[tensor.DType]tensor.DType{tensor.F8E8M0FNU: tensor.F8E5M2, tensor.F8E5M2FNUZ: tensor.F8E5M2, tensor.F8E4M3FNUZ: tensor.F8E4M3FN} {
		assert.Equal(t, []compare.Limits{compare.Default(as, as).Limits(), compare.Floor(as, as)}, []compare.Limits{compare.Default(d, d).Limits(), compare.Floor(d, d)},
			"%s is in the column of %s", d, as)
	}
	sameTable(t, "../../docs/formulas.md", "| | float64 | float32 | float16 | bfloat16 | e4m3 | e5m2, e8m0 |",
		strings.Join([]string{"|---|---|---|---|---|---|---|", whole, row}, "\n"))
}
