package main

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/how-it-judges.md shows of a command is what it prints.
func TestHowItJudges(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the page's command is for a POSIX shell")
	}
	shown := fence.FindAllStringSubmatch(readPage(t, "docs/how-it-judges.md"), -1)
	require.GreaterOrEqual(t, len(shown), 2)
	command, printed := shown[0], shown[1]
	require.Equal(t, []string{"sh", "text"}, []string{command[1], printed[1]}, "a command and what it prints")
	want := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(printed[3])), "\n", `\n`)
	runScript(t, "how-it-judges", fmt.Sprintf("cpdir $EXAMPLES/layercomparison examples/layercomparison\n%sstdout '%s'\ngrep '%s' out/report.json\n",
		scripted(strings.TrimSpace(command[3])), strings.ReplaceAll(want, "'", "''"), `"local_error": ?0\.167\d*, *\n? *"noise": ?4\.1`))
}
