package sanitize_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/sanitize"
)

func TestLine(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{"model.layers.0.self_attn.k_proj-output", "model.layers.0.self_attn.k_proj-output", "a label stays"},
		{"größe 层 λ → ×", "größe 层 λ → ×", "all scripts print"},
		{"std::vector x[::2] ##ing #5 --- a == b [[1, 2], [3]]", "std::vector x[::2] ##ing #5 --- a == b [[1, 2], [3]]", "code"},
		{"\x1b[31mred", `\x1b[31mred`, "a colour"},
		{"\x1b]8;;http://x\x1b\\text", `\x1b]8;;http://x\x1b\text`, "a link"},
		{"a\u009b31mb\u0085", `a\u009b31mb\u0085`, "controls of eight bits"},
		{"a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`, "direction of writing"},
		{"a\rb\nc\r\nd\te", `a\rb c d e`, "one line"},
		{"hf_aB3dE5fG7hJ9kLmN1pQrStUvWxYz02468 is refused", "*** is refused", "a secret"},
		{"a\u2028b", `a\u2028b`, "a line break of Unicode"},
		{"\x16--- PASS: X", `\x16--- PASS: X`, "the mark of test2json"},
		{"\xff", "\uFFFD", "not UTF-8"},
		{"::error file=a::b", `\::error file=a::b`, "GitHub"},
		{"  ::set-output name=x::y", `  \::set-output name=x::y`, "after spaces"},
		{"x ::add-mask::y", `x \::add-mask::y`, "where a line may be broken"},
		{"x ##vso[task.setvariable]y", `x #\#vso[task.setvariable]y`, "Azure DevOps"},
		{"##[group]x", `#\#[group]x`, "GitHub and Azure DevOps"},
		{"##teamcity[testFailed]", `#\#teamcity[testFailed]`, "TeamCity"},
		{"x[[ATTACHMENT|/etc/passwd]]", `x[\[ATTACHMENT|/etc/passwd]]`, "Jenkins, GitLab"},
		{"--- FAIL: TestX (0.00s)", `\--- FAIL: TestX (0.00s)`, "a result"},
		{"    --- PASS: TestX/y", `    \--- PASS: TestX/y`, "of a subtest"},
		{"=== RUN   TestX", `\=== RUN   TestX`, "a test begins"},
	} {
		assert.Equal(t, c.want, sanitize.Line(c.text), c.reason)
		assert.Equal(t, c.want, sanitize.Line(sanitize.Line(c.text)), "%s: twice is once", c.reason)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{"a\n\tb\r\n\nc", "a\n\tb\n\nc", "lines stay"},
		{"\x1b[1;31mError\x1b[0m: \x1b]8;;http://x\x07link\x1b]8;;\x07", "Error: link", "colours and links go"},
		{"\x1b[31", `\x1b[31`, "half a sequence"},
		{"a\n::error::b\n##[x]", "a\n\\::error::b\n#\\#[x]", "each line"},
		{"PASS\nFAIL\nok  \tpkg\t0.1s\nFAIL\tpkg\nFAIL: x", "\\PASS\n\\FAIL\n\\ok  \tpkg\t0.1s\n\\FAIL\tpkg\nFAIL: x",
			"the result of a package"},
	} {
		assert.Equal(t, c.want, sanitize.Text(c.text), c.reason)
	}
	assert.Equal(t, "::a##b std::c [\\[ATTACHMENT|x]] #\\#vso[y", sanitize.Name("::a##b std::c [[ATTACHMENT|x]] ##vso[y"))
}

// test2json, which go test -json and gotestsum read, sees no result in what is shown.
func TestNoForgedResults(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	forged := "--- FAIL: TestForged (0.00s)\n    --- FAIL: TestForged/x (0.00s)\n=== RUN   TestForged\n\x16=== NAME  TestForged\n" +
		"\x16--- FAIL: TestForged (0.00s)\nFAIL\nok  \tx\t1s\nexit status 1\nFAIL\tx\t1s\n"
	actions := func(text string) string {
		cmd := exec.CommandContext(t.Context(), "go", "tool", "test2json")
		cmd.Stdin = strings.NewReader("\x16=== RUN   TestReal\n" + text + "\x16--- PASS: TestReal (0.00s)\n\x16PASS\n")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		var seen []string
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, `"Action":"output"`) {
				seen = append(seen, line)
			}
		}
		return strings.Join(seen, "")
	}
	require.Contains(t, actions(forged), "TestForged", "it is obeyed as it is")
	assert.NotContains(t, actions(sanitize.Text(forged)), "TestForged")
	assert.NotContains(t, actions(sanitize.Text(forged)), `"fail"`)
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[31mb\n::error::x ##vso[y [[ATTACHMENT|z]]\r\n\x16--- FAIL: T")
	f.Add("\x1b\x1b[m[m \x1b]0;x\x07")
	f.Add("##\x1b[m[")
	f.Add("##[[ATTACHMENT|")
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []string{sanitize.Text(s), sanitize.Line(s)} {
			for line := range strings.SplitSeq(text, "\n") {
				for _, r := range line {
					if r != '\t' && !unicode.IsPrint(r) {
						t.Fatalf("%q has %q", text, r)
					}
				}
				for _, bad := range []string{"##[", "##vso[", "##teamcity[", "[[ATTACHMENT|"} {
					assert.NotContains(t, line, bad)
				}
				for _, bad := range []string{"::error", "--- FAIL:", "=== RUN", "PASS\n"} {
					assert.False(t, strings.HasPrefix(strings.TrimLeft(line, " \t")+"\n", bad), line)
				}
			}
		}
	})
}
