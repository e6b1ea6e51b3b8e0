package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
)

// What the candidate made of its prompts, and the causes that are known.
func TestPrompts(t *testing.T) {
	info := func(texts ...dump.Text) *dump.Info { return &dump.Info{Text: texts} }
	golden := info(dump.Text{Path: "completion", Prompt: "a", TokenIDs: []int{1, 4, 5}}, dump.Text{Path: "completion", Prompt: "b", TokenIDs: []int{1, 9, 8, 7}})
	rows, causes := report.PromptsOf("hello", golden, info(
		dump.Text{Path: "completion", Prompt: "a", TokenIDs: []int{1, 4, 5}}, dump.Text{Path: "completion", Prompt: "b", TokenIDs: []int{1, 9, 6, 7}},
		dump.Text{Path: "served", Prompt: "a", TokenIDs: []int{1, 1, 4, 5}}, dump.Text{Path: "served", Prompt: "c"}))
	var statuses []report.Status
	for _, r := range rows {
		statuses = append(statuses, r.Status)
		assert.Equal(t, "hello", r.Case)
	}
	assert.Equal(t, []report.Status{report.StatusPass, report.StatusFail, report.StatusFail, report.NotJudged}, statuses)
	assert.Equal(t, []int{-1, 2, 1, -1}, []int{rows[0].First, rows[1].First, rows[2].First, rows[3].First})
	require.Len(t, causes, 1, "of one nothing is known but that it differs")
	assert.Equal(t, "text/bos-twice", causes[0].ID)

	alone := &report.Report{}
	alone.SetPrompts(rows[:1], nil, true)
	assert.Equal(t, report.Pass, alone.Verdict, "a run of nothing else")
	assert.Equal(t, "1 text as the reference makes it; 0 layers, 0 tensors compared", report.Headline(alone))
	beside := &report.Report{}
	beside.SetPrompts(rows[:1], nil, false)
	assert.Empty(t, beside.Verdict, "layers decide, too")
	wrong := tensors(true)
	wrong.SetPrompts(rows, causes, false)
	assert.Equal(t, []string{"the tensors differ, too, first at a: that is judged once the text is right"}, wrong.Notes)
	assert.Equal(t, "text", wrong.Kind)
	assert.Equal(t, "the engine makes another text or other tokens of a prompt: text/bos-twice; 1 layer, 1 tensor compared", report.Headline(wrong))
	_, why := wrong.Next("")
	assert.Equal(t, "mend the tokenizer or the template (text/bos-twice, see docs/causes.md#text), not the model; the report has the details", why)
}

// Of several texts the worst is the headline.
func TestGenerations(t *testing.T) {
	of := func(verdict string) report.Generation {
		at := 1
		return report.Generation{Case: verdict, Verdict: verdict, Text: verdict + " it is", At: &at, Tokens: 8}
	}
	for _, tt := range []struct {
		all    []report.Generation
		want   string
		reason string
	}{
		{[]report.Generation{of("identical")}, "identical it is", "one"},
		{[]report.Generation{of("identical"), of("identical")}, "IDENTICAL: all 16 tokens of 2 texts", "all alike"},
		{[]report.Generation{of("identical"), of("tie"), of("identical")}, "case tie: tie it is", "the worst"},
		{[]report.Generation{of("diverged"), of("logits"), of("too flat")}, "case diverged: diverged it is; first divergence lm_head", "and its place"},
	} {
		r := &report.Report{Verdict: report.Pass, Made: &report.Made{}, Generations: tt.all}
		if tt.all[0].Verdict == "diverged" {
			r.Verdict, r.Kind, r.FirstDivergence = report.Fail, report.KindGeneration, &report.Divergence{Layer: "lm_head"}
		}
		assert.Equal(t, tt.want, report.Headline(r), tt.reason)
	}
}

// What is open is the headline of a run that holds.
func TestIncompleteHeadline(t *testing.T) {
	r := passing()
	r.Verdict = report.Incomplete
	r.Coverage.Open = []string{"a is open"}
	assert.Equal(t, "compared 13 of 15 outputs, which hold; a is open", report.Headline(r))
	r.Coverage.Open = append(r.Coverage.Open, "b", "c")
	assert.Equal(t, "compared 13 of 15 outputs, which hold; a is open (and 2 more)", report.Headline(r))
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, report.Save(dir, failing()))
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	assert.True(t, json.Valid(data))
	data, err = os.ReadFile(filepath.Join(dir, "report.txt"))
	require.NoError(t, err)
	assert.Equal(t, text(t, failing(), report.TextOptions{}), string(data))
	assert.Error(t, report.Save(dir, &report.Report{}), "no verdict")
}
