package setting_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/setting"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		to     setting.Value
		words  []string
		want   string
		reason string
	}{
		{new(setting.Run), []string{"replay", "cpu", "gpu"}, "want replay, cpu or gpu", "run"},
		{new(setting.Mode), []string{"standard", "both"}, "want standard or both", "mode"},
		{new(setting.Inherited), []string{"skip", "fail"}, "want skip or fail", "inherited"},
		{new(setting.Update), []string{"none", "new", "all"}, "want none, new or all", "update"},
		{new(setting.Diagnose), []string{"off", "fast", "full"}, "want off, fast or full", "diagnose"},
	} {
		for _, word := range append(c.words, "") {
			require.NoError(t, c.to.UnmarshalText([]byte(word)), c.reason)
			text, err := c.to.MarshalText()
			require.NoError(t, err, c.reason)
			assert.Equal(t, word, string(text), c.reason)
		}
		require.NoError(t, c.to.UnmarshalText([]byte(c.words[1])))
		for _, wrong := range []string{"other", " " + c.words[0], c.words[0] + ","} {
			assert.EqualError(t, c.to.UnmarshalText([]byte(wrong)), c.want, c.reason)
			text, _ := c.to.MarshalText()
			assert.Equal(t, c.words[1], string(text), "%s: an error changes nothing", c.reason)
		}
	}
}

func TestBudgetGrows(t *testing.T) {
	assert.Zero(t, setting.DiagnoseOff.Budget())
	assert.Less(t, setting.DiagnoseOff.Budget(), setting.DiagnoseFast.Budget())
	assert.Less(t, setting.DiagnoseFast.Budget(), setting.DiagnoseFull.Budget())
	assert.Equal(t, setting.DiagnoseFull.Budget(), setting.Diagnose("").Budget(), "the default")
}
