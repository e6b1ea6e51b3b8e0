package setting_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/setting"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		to     flag.Value
		words  []string
		want   string
		reason string
	}{
		{setting.Flag(new(setting.Run)), []string{"replay", "cpu", "gpu"}, "want replay, cpu or gpu", "run"},
		{setting.Flag(new(setting.Mode)), []string{"standard", "both"}, "want standard or both", "mode"},
		{setting.Flag(new(setting.Inherited)), []string{"skip", "fail"}, "want skip or fail", "inherited"},
		{setting.Flag(new(setting.Update)), []string{"none", "new", "all"}, "want none, new or all", "update"},
		{setting.Flag(new(setting.Diagnose)), []string{"off", "fast", "full"}, "want off, fast or full", "diagnose"},
	} {
		for _, word := range append(c.words, "") {
			require.NoError(t, c.to.Set(word), c.reason)
			assert.Equal(t, word, c.to.String(), c.reason)
		}
		require.NoError(t, c.to.Set(c.words[1]))
		for _, wrong := range []string{"other", " " + c.words[0], c.words[0] + ","} {
			assert.EqualError(t, c.to.Set(wrong), c.want, c.reason)
			assert.Equal(t, c.words[1], c.to.String(), "%s: an error changes nothing", c.reason)
		}
	}
	var text string
	require.NoError(t, setting.Flag(&text).Set("any folder"), "a text without words")
	assert.Equal(t, "any folder", text)
}

func TestBudgetGrows(t *testing.T) {
	assert.Zero(t, setting.DiagnoseOff.Budget())
	assert.Less(t, setting.DiagnoseOff.Budget(), setting.DiagnoseFast.Budget())
	assert.Less(t, setting.DiagnoseFast.Budget(), setting.DiagnoseFull.Budget())
	assert.Equal(t, setting.DiagnoseFull.Budget(), setting.Diagnose("").Budget(), "the default")
}
