package testmain

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/setting"
)

// noTest says that -run selects no test of this package, "" where it selects one or is not given: go test calls that ok.
// -run '^$', and any other beside -bench or -fuzz, is how one asks for none.
func noTest() string {
	pattern := setting.TestFlag("test.run")
	if pattern == "" || pattern == "^$" || setting.TestFlag("test.bench") != "" || setting.TestFlag("test.fuzz") != "" {
		return ""
	}
	first, _, _ := strings.Cut(pattern, "/")
	selects, err := regexp.Compile(first)
	if err != nil { // a slash in brackets; go test has said what it makes of it
		return ""
	}
	tests := listed()
	if len(tests) == 0 || slices.ContainsFunc(tests, selects.MatchString) {
		return ""
	}
	return "-run " + pattern + " selects no test of this package, so nothing was judged: it has " + strings.Join(tests, ", ")
}

// listed are the tests of this binary, by its own list; nil where that cannot be had.
func listed() (tests []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, os.Args[0], "-test.list", ".").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "Test") || strings.HasPrefix(line, "Example") || strings.HasPrefix(line, "Fuzz") {
			tests = append(tests, line)
		}
	}
	return tests
}
