package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLiveMLXPage follows docs/mlx.md: each command in it runs, in order, and what the page shows below it is printed, but
// for numbers, and for which layer comes out worst.
func TestLiveMLXPage(t *testing.T) {
	interpreter := live(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mlx.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	build, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "parity"), "../../cmd/parity").CombinedOutput()
	require.NoError(t, err, string(build))
	// What the page takes as given: the model, one that lacks a weight, one with an infinite one, and one whose theta mlx-lm does not read.
	for folder, change := range map[string][]string{"model": nil, "dropped": {"drop", "model.layers.2.mlp.down_proj.weight"},
		"nan": {"scale", "model.layers.1.post_attention_layernorm.weight", "inf"}, "theta": {"theta", "500000"}} {
		python(t, interpreter, append([]string{"testdata/tiny_llama.py", filepath.Join(dir, folder)}, change...)...)
	}
	sh := func(command string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-c", command)
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+strings.Join([]string{bin, filepath.Dir(interpreter), os.Getenv("PATH")}, string(os.PathListSeparator)), "PARITY_PYTHON="+interpreter, "HF_HUB_OFFLINE=1")
		out, _ := c.CombinedOutput() // a failing comparison is what the page shows
		return string(out)
	}
	before := map[string]string{
		"nan_dump":  "parity run --engine mlx --model nan --follow torch_dump -o nan_dump",
		"theta_mlx": `parity run --engine torch --model theta --prompt "The meaning of life" --num-steps 3 -o theta_torch; parity run --engine mlx --model theta --follow theta_torch -o theta_mlx`,
	}
	said, commands := "", 0
	for _, m := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(m[1]) {
			line = strings.TrimSpace(line)
			if command, is := strings.CutPrefix(line, "$ "); is {
				for made, how := range before {
					if _, err := os.Stat(filepath.Join(dir, made)); err != nil && strings.Contains(command, made) {
						sh(how)
					}
				}
				said = sh(command)
				commands++
				continue
			}
			if line, _, _ = strings.Cut(line, "…"); !strings.Contains(shown(said), shown(line)) {
				t.Errorf("docs/mlx.md shows %q; it prints\n%.4000s", line, said)
			}
		}
	}
	assert.Greater(t, commands, 12)
}

// shown is what is compared of a line: numbers and times are the machine's, and so is which layer comes out worst.
func shown(text string) string {
	text = strings.Join(strings.Fields(regexp.MustCompile(`worst row.*`).ReplaceAllString(text, "")), " ")
	return regexp.MustCompile(`[0-9]+([.e+-]*[0-9]+)*`).ReplaceAllString(text, "#")
}
